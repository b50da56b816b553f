"""Changes of a variable's rows inside `Strategy.run` are those of TensorFlow."""

import json
import pathlib

import numpy as np
import pytest
import variable_scatter_cases as cases

import samegrad as tf

RECORDED = json.loads(
    pathlib.Path(__file__).with_name("tensorflow_variable_scatter.json").read_text()
)["results"]


def of_rows(case):
    """Return TensorFlow's answer; of scatter_nd_*, which it lacks, that for the same rows."""
    method, *rest = case
    if rest[-1] or RECORDED[cases.key(*case)] == "AttributeError":
        method = method.replace("scatter_nd_", "scatter_")
    return RECORDED[cases.key(method, *rest)]


def expected(case):
    """Return the error where replicas would have other values: a variable is one for all."""
    _, aggregation, replicas, rows, in_scope = case
    if in_scope and aggregation == "NONE" and rows == "own" and replicas > 1:
        return "RuntimeError"
    return of_rows(case)


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: cases.key(*case))
def test_rows_change_a_variable_as_in_tensorflow(case):
    found = cases.result(tf, tf.distribute.MirroredStrategy(replicas=case[2]), case)
    wanted = expected(case)
    if isinstance(wanted, str):
        assert found == wanted
        return
    # TensorFlow has a copy for each replica, unless the variable is of no strategy.
    assert len(found) == 1 and not isinstance(found, str)
    for copy in wanted:
        np.testing.assert_allclose(found[0], copy, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("method", ["scatter_update", "scatter_max", "scatter_nd_min"])
def test_a_refusal_names_the_variable_and_its_aggregation(method):
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0], name="table", aggregation=tf.VariableAggregation.MEAN)
    change = getattr(v, method)
    slices = tf.IndexedSlices(tf.constant([3.0]), tf.constant([0]))
    given = ([[0]], [3.0]) if "nd" in method else (slices,)
    with pytest.raises(NotImplementedError, match=r"\[table\] scatter_\w+ .*got MEAN"):
        strategy.run(change, args=given)
    change(*given)  # there is one value outside


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("how", ["add", "mul", "div"])
def test_rows_of_examples_have_the_bits_of_one_device(how, replicas):
    generator = np.random.default_rng(7)
    ids = generator.integers(0, 6, 37)
    rows = generator.uniform(0.5, 1.5, (37, 3)).astype("float32")
    table = generator.normal(size=(6, 3)).astype("float32")

    def trained(count):
        strategy = tf.distribute.MirroredStrategy(replicas=count)
        with strategy.scope():
            v = tf.Variable(table, aggregation=tf.VariableAggregation.SUM)
        data = tf.data.Dataset.from_tensor_slices((ids, rows)).batch(37)
        change = getattr(v, f"scatter_{how}")
        step = tf.function(
            lambda i, x: strategy.run(lambda i, x: change(tf.IndexedSlices(x, i)), args=(i, x))
        )
        for i, x in strategy.experimental_distribute_dataset(data):
            step(i, x)
        return v.numpy()

    assert trained(replicas).tobytes() == trained(1).tobytes()


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize(
    ("aggregation", "values"),
    [("SUM", [3.0, 9.0, 18.0]), ("MEAN", [3.0, 4.5, 6.0]), ("ONLY_FIRST_REPLICA", [3.0] * 3)],
)
def test_a_part_gets_the_aggregation_of_the_values(aggregation, values, replicas):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0, 0.1, 4.0], aggregation=tf.VariableAggregation[aggregation])

    def step():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        v[1:2].assign([tf.cast(tf.convert_to_tensor(number), tf.float32) * 3.0 + 3.0])

    strategy.run(step)
    np.testing.assert_array_equal(
        v.numpy(), np.float32([1.0, values[replicas - 1], 0.1, 4.0]), strict=True
    )


def test_the_first_replica_chooses_the_element():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    with strategy.scope():
        v = tf.Variable([1.0, 2.0, 3.0], aggregation=first)

    def step():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        v[number + 1].assign(tf.cast(number, tf.float32) + 7.0)

    strategy.run(step)
    assert v.numpy().tolist() == [1.0, 7.0, 3.0]
