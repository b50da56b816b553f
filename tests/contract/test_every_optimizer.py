"""What holds for every optimizer; a new one is tested as soon as it is public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from public_classes import public_classes

import samegrad as tf

optimizers = tf.keras.optimizers
NAMES = public_classes(optimizers, optimizers.Optimizer)
VARIANTS: list[dict[str, Any]] = [
    {},
    {"clipnorm": 0.1},
    {"clipvalue": 0.1},
    {"global_clipnorm": 0.1},
]
X = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)


def make(name: str, **options: Any) -> Any:
    """An optimizer; one that is made of another takes the options for that."""
    kind = getattr(optimizers, name)
    if kind is optimizers.LossScaleOptimizer:
        return kind(optimizers.SGD(**options))
    return kind(**options)


def train(name: str, replicas: int, options: dict[str, Any], steps: int = 5) -> tuple[Any, Any]:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        w = tf.Variable(np.ones((3, 2), np.float32), name="w")
        b = tf.Variable(np.zeros(2, np.float32), name="b")
        optimizer = make(name, learning_rate=0.1, **options)

    def step(rows: Any) -> None:
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(tf.square(tf.matmul(rows, w) + b - 1.0), axis=1)
            loss = tf.nn.compute_average_loss(losses)
        gradients = tape.gradient(loss, [w, b])
        optimizer.apply_gradients(zip(gradients, [w, b], strict=True))

    run = tf.function(lambda rows: strategy.run(step, args=(rows,)))
    dataset = tf.data.Dataset.from_tensor_slices(X).batch(16).repeat(steps)
    for rows in strategy.experimental_distribute_dataset(dataset):
        run(rows)
    return optimizer, [w.numpy(), b.numpy()]


def loss_of(weights: list[np.ndarray]) -> float:
    return float(np.square(X @ weights[0] + weights[1] - 1).sum(axis=1).mean())


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_replicas_give_the_bits_of_one_device(name: str, options: dict[str, Any]) -> None:
    _, expected = train(name, 1, options)
    for replicas in (2, 4):
        for one, other in zip(expected, train(name, replicas, options)[1], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_goes_down_and_steps_are_counted(name: str) -> None:
    optimizer, weights = train(name, 2, {}, steps=20)
    assert loss_of(weights) < loss_of([np.ones((3, 2)), np.zeros(2)])
    assert int(optimizer.iterations) == 20


@pytest.mark.parametrize("name", NAMES)
def test_its_configuration_makes_an_equal_one(name: str) -> None:
    optimizer = make(name, learning_rate=0.3)
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_of_another_shape_is_refused_and_nothing_changes(name: str) -> None:
    w = tf.Variable(np.ones((3, 2), np.float32))
    optimizer = make(name)
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        optimizer.apply_gradients([(tf.zeros((2, 3)), w)])
    np.testing.assert_array_equal(w, np.ones((3, 2), np.float32))


@pytest.mark.parametrize("name", NAMES)
def test_no_gradient_at_all_is_an_error(name: str) -> None:
    w = tf.Variable(1.0)
    with pytest.raises(ValueError, match="no variable has a gradient"):
        make(name).apply_gradients([(None, w)])
