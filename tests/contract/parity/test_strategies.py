"""Strategies: which there are, and what stands for the others."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

from .values import local, mirrored

STRATEGIES = [
    pytest.param(lambda: mirrored(1), id="mirrored-1"),
    pytest.param(lambda: mirrored(3), id="mirrored-3"),
    pytest.param(lambda: tf.distribute.OneDeviceStrategy("/cpu:0"), id="one-device"),
    pytest.param(tf.distribute.get_strategy, id="default"),
]


@pytest.mark.parity("strategies: mirrored, one device and the default one train alike")
@pytest.mark.parametrize("make", STRATEGIES)
def test_every_strategy_trains_to_the_same_weights(make) -> None:
    strategy = make()
    with strategy.scope():
        w = tf.Variable(np.zeros((2, 1)))
        optimizer = tf.keras.optimizers.SGD(np.float64(0.25))
    x = np.arange(14.0).reshape(7, 2) / 7

    def step(rows):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(tf.square(rows @ w - 1.0), axis=1))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    dataset = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(x).batch(4)
    )
    for batch in dataset:
        loss = strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None)
    expected = np.zeros((2, 1))
    for rows in (x[:4], x[4:]):
        last = np.square(rows @ expected - 1).mean()
        expected -= 0.25 * 2 * rows.T @ (rows @ expected - 1) / len(rows)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-6)
    assert float(loss) == pytest.approx(last)


@pytest.mark.parity("strategies: Strategy is abstract")
def test_a_strategy_is_one_of_its_kinds() -> None:
    with pytest.raises(TypeError, match="abstract"):
        tf.distribute.Strategy()  # type: ignore[abstract]
    assert isinstance(mirrored(), tf.distribute.Strategy)


@pytest.mark.parity("strategies: those of other machines say what to use today")
@pytest.mark.parametrize("place", [tf.distribute, tf.distribute.experimental])
def test_strategies_of_other_machines_name_the_one_of_this(place) -> None:
    with pytest.raises(AttributeError, match=r"MirroredStrategy\(replicas=8\).* under mpirun"):
        place.ParameterServerStrategy  # noqa: B018


@pytest.mark.parity("strategies: a program that looks for a TPU finds none and goes on")
def test_looking_for_a_tpu_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="MirroredStrategy"):
        tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")


@pytest.mark.parity("strategies: names of logical CPUs")
def test_logical_devices_are_made_and_named() -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    assert tf.config.list_physical_devices("GPU") == []
    configurations = [tf.config.LogicalDeviceConfiguration() for _ in range(2)]
    tf.config.set_logical_device_configuration(cpu, configurations)
    try:
        names = [device.name for device in tf.config.list_logical_devices("CPU")]
        strategy = tf.distribute.MirroredStrategy(names)
        assert strategy.num_replicas_in_sync == 2
        assert tf.distribute.MirroredStrategy().num_replicas_in_sync == 2
        assert tf.distribute.MirroredStrategy([]).num_replicas_in_sync == 2
        assert strategy.extended.worker_devices == tuple(names)
    finally:
        tf.config.set_logical_device_configuration(cpu, configurations[:1])


@pytest.mark.parity("strategies: options and cross-device operations change nothing")
def test_options_are_taken() -> None:
    distribute = tf.distribute
    strategy = distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=distribute.HierarchicalCopyAllReduce(num_packs=2)
    )
    options = distribute.RunOptions(experimental_enable_dynamic_batch_size=False)
    found = strategy.run(lambda: tf.constant(2.0), options=options)
    assert float(strategy.reduce("SUM", found, axis=None)) == 4.0
    dataset = strategy.experimental_distribute_dataset(
        tf.data.Dataset.range(4).batch(4), distribute.InputOptions()
    )
    assert [local(strategy, batch) for batch in dataset] == [[[0, 1], [2, 3]]]


@pytest.mark.parity("strategies: extended.update, reduce_to and variable_created_in_scope")
def test_what_libraries_use() -> None:
    strategy = mirrored()
    with strategy.scope():
        v = tf.Variable(1.0)
        strategy.extended.update(v, lambda variable, x: variable.assign_add(x), args=(2.0,))
    assert float(v) == 3.0
    assert strategy.extended.variable_created_in_scope(v)
    assert not strategy.extended.variable_created_in_scope(tf.Variable(1.0))
    values = strategy.run(lambda: tf.constant(2.0))
    assert float(strategy.extended.reduce_to("SUM", values, v)) == 4.0
    (twice,) = strategy.extended.batch_reduce_to("MEAN", [(values, v)])
    assert float(twice) == 2.0


def test_a_strategy_is_shown_with_its_replicas():
    shown = repr(tf.distribute.MirroredStrategy(replicas=3))
    assert shown == "<samegrad.distribute.MirroredStrategy replicas=3>"
    assert repr(tf.distribute.get_strategy()).endswith("Strategy replicas=1>")
