"""Optimizers as programs for TensorFlow 2.4 to 2.15 spell them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras

import samegrad as tf
from samegrad.keras import optimizers as of_samegrad

optimizers = keras.optimizers


def _steps(optimizer: Any, count: int = 3) -> float:
    v = tf.Variable(1.0)
    for _ in range(count):
        optimizer.apply_gradients([(tf.constant(1.0), v)])
    return float(v.numpy())


def test_lr_is_the_learning_rate() -> None:
    with pytest.warns(UserWarning, match="learning_rate=") as caught:
        optimizer = optimizers.SGD(lr=0.25)
    assert caught[0].filename == __file__
    assert float(optimizer.lr) == 0.25
    optimizer.lr = 0.5
    assert float(optimizer.learning_rate) == 0.5
    assert _steps(optimizer) == -0.5


def test_decay_divides_by_one_and_the_steps() -> None:
    with pytest.warns(UserWarning, match="InverseTimeDecay"):
        optimizer = optimizers.SGD(0.5, decay=1.0)
    assert _steps(optimizer) == pytest.approx(1 - 0.5 - 0.5 / 2 - 0.5 / 3)
    again = optimizers.SGD.from_config(optimizer.get_config())
    assert _steps(again) == pytest.approx(1 - 0.5 - 0.5 / 2 - 0.5 / 3)
    assert _steps(optimizers.SGD(0.5, decay=0.0)) == -0.5
    with pytest.raises(ValueError, match="decay needs a learning rate that is a number"):
        optimizers.SGD(optimizers.schedules.ExponentialDecay(1.0, 1, 0.5), decay=0.1)


@pytest.mark.parametrize("rate", [1, np.float32(1), np.int64(1), tf.Variable(1.0)])
def test_learning_rates_of_any_kind_of_number(rate: Any) -> None:
    assert _steps(optimizers.SGD(rate)) == -2.0


def test_minimize() -> None:
    v = tf.Variable(3.0)
    assert int(optimizers.SGD(0.5).minimize(lambda: v * v, [v])) == 1
    assert float(v.numpy()) == 0.0
    v.assign(1.0)
    with tf.GradientTape() as tape:
        loss = v * v
    optimizers.SGD(0.25).minimize(loss, lambda: [v], tape=tape)
    assert float(v.numpy()) == 0.5
    optimizers.SGD(0.25).minimize(lambda: v * 1.0, [v], grad_loss=[tf.constant(4.0)])
    assert float(v.numpy()) == -0.5
    with pytest.raises(ValueError, match="needs the tape that recorded the loss"):
        optimizers.SGD().minimize(loss, [v])
    with pytest.raises(TypeError, match="as a GradientTape"):
        optimizers.SGD().minimize(loss, [v], tape=3)
    with pytest.raises(TypeError, match="a list of variables"):
        optimizers.SGD().minimize(lambda: v, 3)


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_minimize_sums_over_the_replicas(replicas: int) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        v, optimizer = tf.Variable(1.0), optimizers.SGD(0.5)
    step = tf.function(lambda: strategy.run(lambda: optimizer.minimize(lambda: 1.0 * v, [v])))
    step()
    assert float(v.numpy()) == 1.0 - 0.5 * replicas


def trained(loss: Any, variables: list[Any], replicas: int) -> list[np.ndarray]:
    """`variables` after two updates by a loss without a tape; each replica has the whole loss."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    optimizer = optimizers.SGD(0.5 / replicas)

    def replica_step() -> None:
        optimizer.minimize(loss(), var_list=variables)

    tf.config.set_loss_normalization_check("off")
    try:
        step = tf.function(lambda: strategy.run(replica_step))
        for _ in range(2):
            step()
    finally:
        tf.config.set_loss_normalization_check("warn")
    assert int(optimizer.iterations) == 2
    return [v.numpy() for v in variables]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_traced_loss_needs_no_tape(replicas: int) -> None:
    """The figures are those of TensorFlow 1's GradientDescentOptimizer(0.5).minimize."""
    v, frozen, other = tf.Variable([1.0, 2.0]), tf.Variable(3.0, trainable=False), tf.Variable(1.0)

    def loss() -> Any:
        return tf.reduce_sum(v * v) * frozen / 6.0

    (found,) = trained(loss, [v], replicas)
    np.testing.assert_allclose(found, [0.25, 0.5], rtol=1e-6)
    v.assign([1.0, 2.0])
    with pytest.warns(UserWarning, match="Gradients do not exist for variables"):
        found, kept = trained(loss, [v, other], replicas)
    np.testing.assert_allclose(found, [0.25, 0.5], rtol=1e-6)
    assert kept == 1.0
    v.assign([1.0, 2.0])  # that one of them is not trainable does not matter where it is named
    found, one = trained(lambda: tf.reduce_sum(v) * frozen, [v, frozen], replicas)
    np.testing.assert_allclose(one, 3.0 - 1.5 - (3.0 - 3.0) / 2, rtol=1e-6)
    np.testing.assert_allclose(found, [1.0 - 1.5 - 0.75, 2.0 - 1.5 - 0.75], rtol=1e-6)
    v.assign([1.0, 2.0])  # named twice, updated twice
    found, again = trained(lambda: tf.reduce_sum(v) * 1.0, [v, v], replicas)
    np.testing.assert_allclose(found, [-1.0, 0.0], rtol=1e-6)
    np.testing.assert_array_equal(found, again)
    with pytest.raises(ValueError, match="must be variables to train: got none"):
        trained(loss, [], replicas)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        trained(loss, [other], replicas)


def test_a_function_as_loss_trains_what_is_named_and_not_trainable() -> None:
    frozen = tf.Variable(3.0, trainable=False)
    optimizers.SGD(0.5).minimize(lambda: frozen * 2.0, var_list=[frozen])
    assert float(frozen.numpy()) == 2.0


def test_a_loss_without_a_tape_in_loops_and_branches() -> None:
    v, optimizer = tf.Variable([1.0, 2.0]), optimizers.SGD(0.25)

    @tf.function
    def in_a_loop(rounds: Any) -> Any:
        for _ in tf.range(rounds):
            optimizer.minimize(tf.reduce_sum(v * v), var_list=[v])
        return rounds

    in_a_loop(tf.constant(3))
    np.testing.assert_array_equal(v.numpy(), [0.125, 0.25])

    @tf.function
    def in_a_branch(wanted: Any) -> Any:
        if wanted:
            optimizer.minimize(tf.reduce_sum(v * v), var_list=[v])
        return wanted

    for wanted in (False, True):
        in_a_branch(tf.constant(wanted))
    np.testing.assert_array_equal(v.numpy(), [0.0625, 0.125])

    @tf.function
    def computed_outside_of_it(wanted: Any) -> Any:
        loss = tf.reduce_sum(v * v)
        if wanted:
            optimizer.minimize(loss, var_list=[v])
        return wanted

    with pytest.raises(ValueError, match="in the branch or loop that trains them"):
        computed_outside_of_it(tf.constant(True))
    np.testing.assert_array_equal(v.numpy(), [0.0625, 0.125])


def test_a_loss_of_a_function_that_is_called_needs_no_tape() -> None:
    v, optimizer = tf.Variable(2.0), optimizers.SGD(0.25)
    loss = tf.function(lambda: v * v)
    tf.function(lambda: optimizer.minimize(loss(), var_list=[v]))()
    assert float(v.numpy()) == 1.0


def test_compute_gradients_gives_what_apply_gradients_takes() -> None:
    v = tf.Variable(3.0)
    for optimizer in (
        optimizers.SGD(0.5),
        optimizers.SGD(0.5, loss_scale_factor=8.0),
        optimizers.LossScaleOptimizer(optimizers.SGD(0.5)),
    ):
        v.assign(3.0)
        pairs = optimizer.compute_gradients(lambda: v * v, [v])
        assert pairs[0][1] is v
        optimizer.apply_gradients(pairs)
        assert float(v.numpy()) == 0.0


def test_variables_is_a_list_that_may_be_called() -> None:
    optimizer = optimizers.Adam()
    assert len(optimizer.variables) == len(optimizer.variables()) == 2
    optimizer.build([tf.Variable(1.0)])
    assert len(optimizer.variables()) == 4
    scaled = optimizers.LossScaleOptimizer(optimizer)
    scaled.build([tf.Variable(1.0)])
    assert scaled.variables() == scaled.variables


def test_weights_are_read_and_set_as_arrays() -> None:
    one, other = optimizers.Adam(0.1), optimizers.Adam(0.1)
    v, w = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    for _ in range(2):
        one.apply_gradients([(tf.constant([1.0, 3.0]), v)])
    other.build([w])
    other.set_weights(one.get_weights())
    w.assign(v)
    for optimizer, variable in ((one, v), (other, w)):
        optimizer.apply_gradients([(tf.constant([2.0, 1.0]), variable)])
    np.testing.assert_array_equal(v.numpy(), w.numpy())


def test_slots() -> None:
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable(1.0, name="b")
    optimizer = optimizers.Adam()
    with pytest.raises(ValueError, match="no slot 'm'"):
        optimizer.get_slot(a, "m")
    optimizer.apply_gradients([(tf.constant(1.0), b), (tf.constant([1.0, 1.0]), a)])
    assert tuple(optimizer.get_slot(a, "m").shape) == (2,)
    assert float(optimizer.get_slot(b, "m").numpy()) == pytest.approx(0.1)
    assert set(optimizer.get_slot_names()) >= {"m", "v"}
    with pytest.raises(ValueError, match="there is "):
        optimizer.get_slot(a, "accumulator")


@pytest.mark.parametrize("module", ["legacy", "experimental"])
@pytest.mark.parametrize(
    "name",
    ["Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "Optimizer", "RMSprop", "SGD"],
)
def test_older_modules_have_the_optimizers_of_today(module: str, name: str) -> None:
    assert getattr(getattr(of_samegrad, module), name) is getattr(optimizers, name)
