"""One update for several batches has the true denominator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf

optimizers = tf.keras.optimizers
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(66, 3)), RNG.normal(size=(66, 1))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    tf.keras.backend.set_floatx("float64")
    yield
    tf.keras.backend.set_floatx("float32")


class Training:
    """A linear model, its accumulator, and the step of a batch."""

    def __init__(self, replicas: int, steps: int, optimizer: Any = None) -> None:
        self.strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with self.strategy.scope():
            self.w = tf.Variable(np.zeros((3, 1)))
            self.optimizer = optimizer or optimizers.SGD(0.1)
            self.accumulator = optimizers.GradientAccumulator(self.optimizer, steps=steps)
        self.step = tf.function(lambda batch: self.strategy.run(self._replica_step, args=batch))
        self.flush = tf.function(lambda: self.strategy.run(self.accumulator.flush))

    def _replica_step(self, x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(tf.square(tf.matmul(x, self.w) - y))
        gradient = tape.gradient(total, self.w)
        self.accumulator.apply_gradients([(gradient, self.w)], count=tf.shape(x)[0])

    def batches(self, size: int) -> Any:
        dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(size)
        return self.strategy.experimental_distribute_dataset(dataset)

    def epoch(self, size: int) -> np.ndarray:
        for batch in self.batches(size):
            self.step(batch)
        self.flush()
        return self.w.numpy()


def reference(window: int) -> np.ndarray:
    """NumPy: an update on the true mean of each window of examples."""
    w = np.zeros((3, 1))
    for at in range(0, len(X), window):
        x, y = X[at : at + window], Y[at : at + window]
        w -= 0.1 * 2 * x.T @ (x @ w - y) / len(x)
    return w


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize(("size", "steps"), [(8, 4), (5, 3), (66, 1), (10, 100), (32, 2)])
def test_a_window_gives_the_update_of_one_batch_with_all_its_examples(
    replicas: int, size: int, steps: int
) -> None:
    training = Training(replicas, steps)
    found = training.epoch(size)
    np.testing.assert_allclose(found, reference(size * steps), rtol=1e-12, atol=1e-12)
    windows = -(-len(X) // (size * steps))
    assert int(training.optimizer.iterations) == windows
    assert int(training.accumulator.pending) == 0


def test_nothing_is_updated_before_the_window_is_full() -> None:
    training = Training(2, 3)
    seen = []
    for batch in training.batches(8):
        training.step(batch)
        seen.append(int(training.optimizer.iterations))
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2, 3]
    before = training.w.numpy()
    training.flush()  # the window is empty
    np.testing.assert_array_equal(training.w.numpy(), before)
    assert int(training.optimizer.iterations) == 3


def test_limits_apply_to_the_joined_gradient() -> None:
    training = Training(2, 2, optimizers.SGD(1.0, clipnorm=1e-3))
    found = training.epoch(33)
    assert np.linalg.norm(found) == pytest.approx(1e-3)


def test_weights_may_count_instead_of_examples() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        w = tf.Variable(0.0, dtype="float64")
        accumulator = optimizers.GradientAccumulator(optimizers.SGD(1.0), steps=2)

    def step(x: Any, weights: Any) -> None:
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(w * x * weights)
        gradient = tape.gradient(total, w)
        accumulator.apply_gradients([(gradient, w)], count=tf.reduce_sum(weights))

    values, weights = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 0.0, 2.0, 0.5])
    dataset = tf.data.Dataset.from_tensor_slices((values, weights)).batch(2)
    for batch in strategy.experimental_distribute_dataset(dataset):
        strategy.run(step, args=batch)
    assert float(w) == pytest.approx(-(values @ weights) / weights.sum(), rel=1e-14)


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_checkpoint_in_the_middle_of_a_window_goes_on(tmp_path: Any, replicas: int) -> None:
    first = Training(2, 3)
    for batch in list(first.batches(8))[:4]:
        first.step(batch)
    path = tf.train.Checkpoint(a=first.accumulator, w=first.w).save(tmp_path / "ckpt")
    second = Training(replicas, 3)
    tf.train.Checkpoint(a=second.accumulator, w=second.w).restore(path)
    for batch in list(second.batches(8))[4:]:
        second.step(batch)
    second.flush()
    np.testing.assert_allclose(second.w.numpy(), reference(24), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("steps", [0, -1, 1.5, True, None])
def test_senseless_windows_are_refused(steps: Any) -> None:
    with pytest.raises(ValueError, match="above 0"):
        optimizers.GradientAccumulator(optimizers.SGD(), steps=steps)


def test_the_count_is_a_scalar_and_the_place_is_run() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        w = tf.Variable(1.0, dtype="float64")
        accumulator = optimizers.GradientAccumulator(optimizers.SGD(), steps=2)
        with pytest.raises(RuntimeError, match=r"strategy\.run"):
            accumulator.apply_gradients([(tf.constant(1.0), w)], count=1)
    with pytest.raises(ValueError, match="scalar"):
        accumulator.apply_gradients([(tf.constant(np.float64(1)), w)], count=[1, 2])
