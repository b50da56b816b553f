"""Eight replicas and a global batch of 64: each sees 8 examples, and there is one update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf

REPLICAS, GLOBAL_BATCH, RATE = 8, 64, 0.1


@pytest.fixture(autouse=True)
def _floatx() -> Iterator[None]:
    yield
    tf.keras.backend.set_floatx("float32")


def data(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(GLOBAL_BATCH, 6)).astype(dtype)
    return x, np.tanh(x @ rng.normal(size=(6, 2))).astype(dtype)


def train(replicas: int, dtype: str, steps: int = 5) -> tuple[list[np.ndarray], list[int]]:
    """The weights, and how many examples each replica saw."""
    tf.keras.backend.set_floatx(dtype)
    tf.random.set_seed(2)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential([layers.Dense(16, activation="tanh"), layers.Dense(2)])
        model.build((None, 6))
        optimizer = tf.keras.optimizers.Adam(RATE)
    losses = tf.keras.losses.MeanSquaredError(reduction="none")

    def step(x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(losses(y, model(x)), global_batch_size=GLOBAL_BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    seen: list[int] = []
    dataset = tf.data.Dataset.from_tensor_slices(data(dtype)).batch(GLOBAL_BATCH).repeat(steps)
    for batch in strategy.experimental_distribute_dataset(dataset):
        seen = [len(part) for part in strategy.experimental_local_results(batch[0])]
        strategy.run(step, args=batch)
    assert int(optimizer.iterations) == steps
    return [v.numpy() for v in model.trainable_variables], seen


def test_eight_replicas_see_eight_examples_each_and_give_the_bits_of_one_device() -> None:
    one, alone = train(1, "float32")
    eight, seen = train(REPLICAS, "float32")
    assert (alone, seen) == ([64], [8] * REPLICAS)
    for a, b in zip(one, eight, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("replicas", [3, REPLICAS])
def test_replicas_give_the_bits_of_one_device_in_float64(replicas: int) -> None:
    for a, b in zip(train(1, "float64")[0], train(replicas, "float64")[0], strict=True):
        np.testing.assert_array_equal(a, b)


def linear_update(gradients: list[np.ndarray]) -> np.ndarray:
    """A linear model after updates with these gradients, one after the other."""
    w = np.zeros((6, 2))
    for gradient in gradients:
        w -= RATE * gradient
    return w


def test_the_wrong_ways_give_other_weights() -> None:
    x, y = data("float64")
    shares = list(zip(np.split(x, REPLICAS), np.split(y, REPLICAS), strict=True))

    def gradient(a: np.ndarray, b: np.ndarray, w: np.ndarray, count: int) -> np.ndarray:
        return 2 * a.T @ (a @ w - b) / count

    zero = np.zeros((6, 2))
    right = linear_update([sum(gradient(a, b, zero, GLOBAL_BATCH) for a, b in shares)])
    same_eight_times = linear_update([gradient(x, y, zero, GLOBAL_BATCH)] * REPLICAS)
    one_after_the_other = zero.copy()
    for a, b in shares:
        one_after_the_other -= RATE * gradient(a, b, one_after_the_other, len(a))
    summed_means = linear_update([sum(gradient(a, b, zero, len(a)) for a, b in shares)])

    strategy = tf.distribute.MirroredStrategy(replicas=REPLICAS)
    with strategy.scope():
        w = tf.Variable(zero)
        optimizer = tf.keras.optimizers.SGD(np.float64(RATE))

    def step(a: Any, b: Any) -> None:
        with tf.GradientTape() as tape:
            errors = tf.reduce_sum(tf.square(tf.matmul(a, w) - b), axis=1)
            loss = tf.nn.compute_average_loss(errors)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    tf.keras.backend.set_floatx("float64")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(GLOBAL_BATCH)
    for batch in strategy.experimental_distribute_dataset(dataset):
        strategy.run(step, args=batch)

    def distance(other: np.ndarray) -> float:
        return float(np.linalg.norm(other - right) / np.linalg.norm(right))

    assert distance(w.numpy()) < 1e-7
    assert distance(same_eight_times) == pytest.approx(7.0)
    assert distance(summed_means) == pytest.approx(7.0)
    assert distance(one_after_the_other) > 1.0
