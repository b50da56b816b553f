"""Values per replica that a traced function finds outside."""

import numpy as np
import pytest

import samegrad as tf


def per_replica(strategy, parts):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )


PARTS = {
    "numbers": [[1.0], [2.0], [5.0]],
    "rows": [np.arange(6.0).reshape(3, 2), np.arange(4.0).reshape(2, 2), np.ones((1, 2))],
    "rows of some": [np.arange(6.0).reshape(3, 2), np.ones((3, 2)), np.zeros((0, 2))],
    "scalars": [np.float32(1), np.float32(2), np.float32(4)],
    "integers": [[1, 2], [3, 4], [5, 6]],
}


@pytest.fixture(params=["traced", "eager"])
def wrap(request):
    tf.config.run_functions_eagerly(request.param == "eager")
    yield tf.function
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("name", PARTS)
def test_a_captured_value_is_gathered_reduced_and_run(name, replicas, wrap):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    parts = [np.asarray(part) for part in PARTS[name][:replicas]]
    value = per_replica(strategy, parts)
    calls = {
        "run": lambda: strategy.run(lambda x: x * 2, args=(value,)),
        "reduce rows": lambda: strategy.reduce("SUM", value, axis=0),
        "mean of rows": lambda: strategy.reduce("MEAN", value, axis=0),
        "reduce": lambda: strategy.reduce("SUM", value, axis=None),
        "gather": lambda: strategy.gather(value, axis=0),
    }
    if parts[0].ndim == 0:
        del calls["reduce rows"], calls["mean of rows"], calls["gather"]
    if len({part.shape for part in parts}) > 1:
        del calls["reduce"]
    for call in calls.values():
        expected = strategy.experimental_local_results(call())
        found = wrap(call)
        for _ in range(2):
            for a, b in zip(strategy.experimental_local_results(found()), expected, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy(), strict=True)


def test_a_captured_batch_and_an_argument_have_examples_of_their_own():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    captured = per_replica(strategy, [np.ones((2, 3)), np.ones((2, 3))])

    @tf.function
    def sums(batch):
        def step(x, y):
            return tf.reduce_sum(x, 0), tf.reduce_sum(y)

        rows, total = strategy.run(step, args=(batch, captured))
        gathered = strategy.gather(captured, axis=0)
        return (
            strategy.reduce("SUM", rows, axis=None),
            strategy.reduce("SUM", total, None),
            gathered,
        )

    for rows in (4, 3, 1, 8):
        data = tf.data.Dataset.from_tensor_slices(np.ones((rows, 3))).batch(rows)
        (batch,) = strategy.experimental_distribute_dataset(data)
        found, total, gathered = sums(batch)
        assert found.numpy().tolist() == [rows] * 3
        assert float(total) == 12.0
        assert gathered.shape == (4, 3)
    assert sums.experimental_get_tracing_count() == 1


def test_a_function_of_any_lengths_captures_values():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    captured = per_replica(strategy, [np.ones((2, 3), "float32"), np.ones((1, 3), "float32")])

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def total(x):
        everything = tf.reduce_sum(strategy.gather(captured, axis=0))
        return everything + tf.reduce_sum(x) + tf.cast(tf.shape(x)[1], tf.float32)

    assert [float(total(tf.ones([2, n]))) for n in (1, 3, 5)] == [12.0, 18.0, 24.0]
    assert total.experimental_get_tracing_count() == 1


def test_captured_values_of_one_function_keep_their_order():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    a, b = (per_replica(strategy, [np.float32(x), np.float32(x + 1)]) for x in (1, 10))

    @tf.function
    def both(x):
        first = strategy.reduce("SUM", b, axis=None)
        return (
            first * 100.0
            + strategy.reduce("SUM", a, axis=None)
            + x
            + strategy.reduce("SUM", b, None)
        )

    assert [float(both(tf.constant(x))) for x in (0.5, 0.25)] == [2124.5, 2124.25]
    assert "reduce" in str(both.explain(tf.constant(0.5)))


def test_replicas_that_are_traced_apart_capture_the_same_values():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    captured = per_replica(strategy, [np.float32(3), np.float32(4)])

    @tf.function
    def scaled(batch):
        def step(x, factor):
            return tf.reduce_sum(x) * factor * float(int(x.shape[0]))

        return strategy.reduce("SUM", strategy.run(step, args=(batch, captured)), axis=None)

    data = tf.data.Dataset.from_tensor_slices(np.ones(3, "float32")).batch(3)
    (batch,) = strategy.experimental_distribute_dataset(data)
    assert float(scaled(batch)) == 2 * 3 * 2 + 1 * 4 * 1


def test_the_gradient_flows_through_a_reduction_of_captured_values():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    w = tf.Variable(2.0)
    captured = per_replica(strategy, [[1.0], [2.0]])

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            loss = w * tf.reduce_sum(strategy.gather(captured, axis=0))
        return tape.gradient(loss, w)

    assert float(gradient()) == 3.0


def test_python_runs_a_function_of_a_dataset_that_reduces_a_captured_value():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    captured = per_replica(strategy, [[1.0], [2.0]])
    data = tf.data.Dataset.range(2).map(
        lambda x: tf.cast(x, tf.float32) + strategy.reduce("SUM", captured, axis=0)
    )
    assert [float(x) for x in data] == [3.0, 4.0]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_value_can_be_captured_in_a_body(replicas):
    """The function gets an argument, whose number of examples is a size, while a body is traced."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)

    def batch(count):
        dataset = tf.data.Dataset.from_tensor_slices(rows[:count]).batch(count)
        return next(iter(strategy.experimental_distribute_dataset(dataset)))

    x, y = batch(5), batch(3)

    def total(value):
        return tf.reduce_sum(strategy.reduce("SUM", value, axis=0))

    @tf.function
    def of_loops(use):
        result = tf.constant(0.0)
        for i in tf.range(2):
            kept = tf.boolean_mask(rows, rows[:, 0] > tf.cast(i, tf.float32))  # a size of its own
            for _ in tf.range(3):
                result += total(x)
            result += 0.0 * tf.reduce_sum(kept)
            if use:
                result += total(y)
        return result

    @tf.function
    def of_a_branch(use):
        return tf.reduce_sum(strategy.gather(y, axis=0)) if use else total(x)

    whole, three = rows.sum(), rows[:3].sum()
    assert of_loops(tf.constant(True)).numpy() == 6 * whole + 2 * three
    assert of_loops(tf.constant(False)).numpy() == 6 * whole
    assert of_a_branch(tf.constant(True)).numpy() == three
    assert of_a_branch(tf.constant(False)).numpy() == whole
