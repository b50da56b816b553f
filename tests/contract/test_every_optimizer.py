"""What holds for every optimizer; a new one is tested as soon as it is public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from public_classes import public_classes

import samegrad as tf

optimizers = tf.keras.optimizers
NAMES = public_classes(optimizers, optimizers.Optimizer)
each = pytest.mark.parametrize("name", NAMES)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"clipnorm": 0.1},
    {"clipvalue": 0.1},
    {"global_clipnorm": 0.1},
    {"weight_decay": 0.05, "use_ema": True, "ema_momentum": 0.7, "ema_overwrite_frequency": 2},
    {"gradient_accumulation_steps": 2},
]
X = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)


def make(name: str, **options: Any) -> Any:
    """An optimizer; one that is made of others gives them the options."""
    kind = getattr(optimizers, name)
    if kind is optimizers.LossScaleOptimizer:
        return kind(optimizers.SGD(**options), initial_scale=8.0, dynamic_growth_steps=2)
    if kind is optimizers.MultiOptimizer:
        chosen = optimizers.OptimizerMap(optimizers.SGD(**options))
        chosen["b"] = optimizers.Adam(**options)
        return kind(chosen)
    return kind(**options)


def train(name: str, replicas: int, options: dict[str, Any], steps: int = 5) -> tuple[Any, Any]:
    """The optimizer and the weights after steps of a linear model."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        w = tf.Variable(np.ones((3, 2), np.float32), name="w")
        b = tf.Variable(np.zeros(2, np.float32), name="b")
        optimizer = make(name, **{"learning_rate": 0.1, **options})

    def step(rows: Any) -> None:
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(tf.square(tf.matmul(rows, w) + b - 1.0), axis=1)
            loss = optimizer.scale_loss(tf.nn.compute_average_loss(losses))
        gradients = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(gradients, [w, b], strict=True))

    run = tf.function(lambda rows: strategy.run(step, args=(rows,)))
    dataset = tf.data.Dataset.from_tensor_slices(X).batch(16).repeat(steps)
    for rows in strategy.experimental_distribute_dataset(dataset):
        run(rows)
    return optimizer, [w.numpy(), b.numpy()]


def loss_of(weights: list[np.ndarray]) -> float:
    return float(np.square(X @ weights[0] + weights[1] - 1).sum(axis=1).mean())


@pytest.mark.parametrize("options", VARIANTS, ids=lambda options: "-".join(options) or "plain")
@each
def test_replicas_give_the_bits_of_one_device(name: str, options: dict[str, Any]) -> None:
    optimizer, expected = train(name, 1, options)
    assert (expected[0] != 1).all()
    assert all(np.isfinite(weights).all() for weights in expected)
    for replicas in (2, 3):
        other, found = train(name, replicas, options)
        for one, two in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, two)
        for one, two in zip(optimizer.variables, other.variables, strict=True):
            np.testing.assert_array_equal(one.numpy(), two.numpy(), err_msg=one.path)


@each
def test_the_loss_goes_down_and_steps_are_counted(name: str) -> None:
    optimizer, weights = train(name, 2, {}, steps=20)
    assert loss_of(weights) < loss_of([np.ones((3, 2)), np.zeros(2)])
    assert int(optimizer.iterations) == 20


@each
def test_accumulated_gradients_move_weights_at_the_last_step_only(name: str) -> None:
    options = {"gradient_accumulation_steps": 3}
    before, after = (train(name, 2, options, steps=steps)[1] for steps in (2, 3))
    np.testing.assert_array_equal(before[0], np.ones((3, 2)))
    assert (after[0] != 1).all()


@each
def test_its_configuration_makes_an_equal_one(name: str) -> None:
    optimizer = make(name, learning_rate=0.25)
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


@each
def test_an_unknown_argument_is_named(name: str) -> None:
    kind = getattr(optimizers, name)
    first = {
        optimizers.LossScaleOptimizer: [optimizers.SGD()],
        optimizers.MultiOptimizer: [optimizers.OptimizerMap(optimizers.SGD())],
    }
    with pytest.raises((TypeError, ValueError), match="colour"):
        kind(*first.get(kind, []), colour="red")


@each
def test_a_gradient_of_another_shape_is_refused_and_nothing_changes(name: str) -> None:
    w = tf.Variable(np.ones((3, 2), np.float32))
    optimizer = make(name)
    with pytest.raises(ValueError, match=r"\(2, 3\) for .* \(3, 2\)"):
        optimizer.apply_gradients([(tf.zeros((2, 3)), w)])
    np.testing.assert_array_equal(w, np.ones((3, 2), np.float32))


@each
def test_no_gradient_at_all_is_an_error(name: str) -> None:
    w = tf.Variable(1.0)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        make(name).apply_gradients([(None, w)])


@each
def test_a_variable_without_a_gradient_is_named_and_stays(name: str) -> None:
    w, lonely = tf.Variable(np.ones((3, 2), np.float32)), tf.Variable(1.0, name="lonely")
    optimizer = make(name)
    with pytest.warns(UserWarning, match="Gradients do not exist for variables.*lonely"):
        optimizer.apply_gradients([(tf.ones((3, 2)), w), (None, lonely)])
    assert float(lonely) == 1.0 and (w.numpy() != 1).any()
