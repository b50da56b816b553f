"""Tape, optimizers, metrics."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

from .values import batches, local, mirrored, per_replica

optimizers = tf.keras.optimizers


@pytest.mark.parity("tape: unconnected is None, or zeros")
def test_unconnected_gradients() -> None:
    x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = y * y
    assert tape.gradient(z, x) is None
    zeros = tape.gradient(z, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert zeros.numpy().tolist() == [0.0, 0.0]


@pytest.mark.parity("tape: a second use of a non-persistent tape is a RuntimeError")
def test_a_tape_is_used_once() -> None:
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent"):
        tape.gradient(y, x)


@pytest.mark.parity("tape: a vector target is summed, nested sources keep their structure")
def test_targets_and_sources() -> None:
    x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        z = x * y
    found = tape.gradient(z, {"x": x, "more": [y]})
    assert found["x"].numpy().tolist() == [3.0, 3.0] and float(found["more"][0]) == 3.0


@pytest.mark.parity("tape: tapes nest, watch, stop_recording, jacobian")
def test_what_tapes_can_do() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        slope = inner.gradient(y, x)
    assert float(outer.gradient(slope, x)) == 18.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * 2.0
        y = y + z
    assert float(tape.gradient(y, x)) == 6.0
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.jacobian(y, v).numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parity("tape: in run gradients are local")
def test_gradients_in_run_are_those_of_the_replica() -> None:
    strategy = mirrored()
    with strategy.scope():
        v = tf.Variable(2.0)

    def fn(x):
        with tf.GradientTape() as tape:
            y = v * x
        return tape.gradient(y, v)

    assert local(
        strategy, strategy.run(fn, args=(per_replica(strategy, np.float32(1), np.float32(3)),))
    ) == [1.0, 3.0]


@pytest.mark.parity("tape: gradients of gathers add up over replicas")
def test_gradients_of_gathers_add_up() -> None:
    strategy = mirrored()
    with strategy.scope():
        table = tf.Variable(np.zeros(4))

    def fn(values, indices):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.gather(table, indices) * values)
        return tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(y, table))

    values = per_replica(strategy, [1.0, 2.0], [2.0, 3.0])
    indices = per_replica(strategy, [0, 1], [1, 2])
    found = strategy.run(fn, args=(values, indices))
    assert local(strategy, found)[0] == [1.0, 4.0, 3.0, 0.0]


@pytest.mark.parity("optimizers: gradients are summed over replicas, one iteration")
def test_an_update_sums_the_gradients_once() -> None:
    strategy = mirrored()
    with strategy.scope():
        v, optimizer = tf.Variable(0.0), optimizers.SGD(0.1)
    gradients = per_replica(strategy, np.float32(1), np.float32(2))
    strategy.run(lambda g: optimizer.apply_gradients([(g, v)]), args=(gradients,))
    assert float(v) == pytest.approx(-0.3) and int(optimizer.iterations) == 1


@pytest.mark.parity("optimizers: apply_gradients in cross-replica context is a RuntimeError")
def test_updates_belong_into_run() -> None:
    strategy = mirrored()
    with strategy.scope():
        v, optimizer = tf.Variable(0.0), optimizers.SGD(0.1)
        with pytest.raises(RuntimeError, match="run"):
            optimizer.apply_gradients([(tf.constant(1.0), v)])


@pytest.mark.parity("optimizers: some None are warned of, all None are refused")
def test_missing_gradients() -> None:
    v, w = tf.Variable(1.0, name="v"), tf.Variable(1.0, name="lonely")
    with pytest.warns(UserWarning, match="lonely"):
        optimizers.SGD(0.1).apply_gradients([(tf.constant(1.0), v), (None, w)])
    assert float(v) == pytest.approx(0.9) and float(w) == 1.0
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizers.SGD(0.1).apply_gradients([(None, w)])


@pytest.mark.parity("optimizers: clipping comes after the sum")
@pytest.mark.parametrize(
    ("options", "expected"),
    [({"clipnorm": 1.0}, -1.0), ({"clipvalue": 2.0}, -2.0), ({"global_clipnorm": 0.5}, -0.5)],
)
def test_the_sum_is_clipped(options, expected) -> None:
    strategy = mirrored()
    with strategy.scope():
        v, optimizer = tf.Variable(0.0), optimizers.SGD(1.0, **options)
    gradients = per_replica(strategy, np.float32(3), np.float32(4))
    strategy.run(lambda g: optimizer.apply_gradients([(g, v)]), args=(gradients,))
    assert float(v) == pytest.approx(expected)


@pytest.mark.parity("metrics: Mean over range(10).batch(2) 4.5, range(9).batch(4) 4.0")
@pytest.mark.parametrize(("count", "batch", "expected"), [(10, 2, 4.5), (9, 4, 4.0)])
def test_a_mean_merges_sums_and_counts(count, batch, expected) -> None:
    strategy = mirrored()
    with strategy.scope():
        metric = tf.keras.metrics.Mean()
    dataset = tf.data.Dataset.range(count).batch(batch)
    for x in strategy.experimental_distribute_dataset(dataset):
        strategy.run(lambda v: metric.update_state(tf.cast(v, "float32")), args=(x,))
    assert float(metric.result()) == expected


@pytest.mark.parity("metrics: result inside run is that of all replicas, reset_state")
def test_a_result_inside_run_is_that_of_all_replicas() -> None:
    strategy = mirrored()
    with strategy.scope():
        metric = tf.keras.metrics.Mean()

    def fn(x):
        metric.update_state(x)
        return metric.result()

    found = strategy.run(fn, args=(per_replica(strategy, np.float32([1]), np.float32([3, 5])),))
    assert local(strategy, found) == [3.0, 3.0] and float(metric.result()) == 3.0
    metric.reset_state()
    assert float(metric.result()) == 0.0


@pytest.mark.parity("metrics: a scalar of each replica counts as what it is of all examples")
@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (tf.reduce_mean, 3.0),
        (tf.reduce_sum, 9.0),
        (lambda x: tf.reduce_sum(x) * (1.0 / 3), 3.0),
        (tf.nn.compute_average_loss, 3.0),
    ],
    ids=["mean", "sum", "sum by the batch", "share"],
)
def test_a_scalar_counts_as_what_it_is_of_all_examples(scalar, expected) -> None:
    strategy = mirrored()
    with strategy.scope():
        metric = tf.keras.metrics.Mean()
    x = per_replica(strategy, np.float32([1]), np.float32([3, 5]))
    strategy.run(lambda v: metric.update_state(scalar(v)), args=(x,))
    assert float(metric.result()) == pytest.approx(expected)


@pytest.mark.parity("metrics: a scalar that does not show its examples is rejected")
def test_a_scalar_of_which_the_step_shows_nothing_is_refused() -> None:
    strategy = mirrored()
    metric = tf.keras.metrics.Mean()
    x = per_replica(strategy, np.float32([1]), np.float32([3, 5]))
    with pytest.raises(ValueError, match="mean over the examples.*give one value per example"):
        strategy.run(lambda v: metric.update_state(tf.reduce_max(v)), args=(x,))


def linear(strategy, rows: int, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """The weights of a linear model after one epoch, and those of NumPy on the true mean."""
    tf.keras.backend.set_floatx("float64")
    try:
        rng = np.random.default_rng(0)
        x, y = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 1))
        with strategy.scope():
            w, optimizer = tf.Variable(np.zeros((3, 1))), optimizers.SGD(0.1)
        reference = np.zeros((3, 1))

        def step(inputs, targets):
            with tf.GradientTape() as tape:
                errors = tf.reduce_sum(tf.square(tf.matmul(inputs, w) - targets), axis=1)
                loss = tf.nn.compute_average_loss(errors)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])

        dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch)
        for pair in strategy.experimental_distribute_dataset(dataset):
            strategy.run(step, args=pair)
        for i in range(0, rows, batch):
            a, b = x[i : i + batch], y[i : i + batch]
            reference -= 0.1 * 2 * a.T @ (a @ reference - b) / len(a)
        return w.numpy(), reference
    finally:
        tf.keras.backend.set_floatx("float32")


@pytest.mark.parity("training: ragged batches give the weights of NumPy on 1, 2, 3, 4 replicas")
@pytest.mark.parametrize(("rows", "batch"), [(66, 32), (9, 4)])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_ragged_batches_give_the_weights_of_the_true_mean(replicas, rows, batch) -> None:
    found, expected = linear(mirrored(replicas), rows, batch)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_batches_of_the_linear_example_are_ragged() -> None:
    sizes = [len(x[0]) for x in batches(mirrored(1), tf.data.Dataset.range(66).batch(32))]
    assert sizes == [32, 32, 2]
