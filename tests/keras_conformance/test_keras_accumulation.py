"""One update for several batches: the mean over the micro-batches of their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras

import samegrad as tf

optimizers = keras.optimizers
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(66, 3)), RNG.normal(size=(66, 1))


class Training:
    """A linear model and the step of a micro-batch."""

    def __init__(self, replicas: int, steps: int, dtype: str = "float64", **more: Any) -> None:
        self.dtype = dtype
        self.strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with self.strategy.scope():
            self.w = tf.Variable(np.zeros((3, 1), dtype))
            self.optimizer = optimizers.SGD(0.1, gradient_accumulation_steps=steps, **more)
        self.step = tf.function(lambda batch: self.strategy.run(self._replica_step, args=batch))

    def _replica_step(self, x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(tf.square(tf.matmul(x, self.w) - y), axis=1)
            loss = tf.nn.compute_average_loss(losses)
        self.optimizer.apply_gradients([(tape.gradient(loss, self.w), self.w)])

    def batches(self, size: int) -> Any:
        """The examples in batches; the last one may be smaller."""
        arrays = X.astype(self.dtype), Y.astype(self.dtype)
        dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(size)
        return self.strategy.experimental_distribute_dataset(dataset)

    def epoch(self, size: int) -> Any:
        """The weights after all batches."""
        for batch in self.batches(size):
            self.step(batch)
        return self.w.numpy()


def reference(size: int, steps: int) -> Any:
    """NumPy: an update by the mean over full windows of the gradients of their batches."""
    w, window = np.zeros((3, 1)), []
    for at in range(0, len(X), size):
        x, y = X[at : at + size], Y[at : at + size]
        window.append(2 * x.T @ (x @ w - y) / len(x))
        if len(window) == steps:
            w, window = w - 0.1 * np.mean(window, axis=0), []
    return w


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize(("size", "steps"), [(8, 4), (5, 3), (11, 2), (13, 6), (32, 3)])
def test_a_window_gives_the_mean_over_its_batches(
    float64: None, replicas: int, size: int, steps: int
) -> None:
    training = Training(replicas, steps)
    found = training.epoch(size)
    np.testing.assert_allclose(found, reference(size, steps), rtol=1e-12, atol=1e-12)
    assert int(training.optimizer.iterations) == -(-len(X) // size) // steps


def test_bits_do_not_depend_on_the_number_of_replicas() -> None:
    first, *others = [Training(n, 3, "float32").epoch(16).tobytes() for n in (1, 2, 3, 4)]
    assert all(other == first for other in others)


def test_nothing_is_updated_before_the_window_is_full(float64: None) -> None:
    training = Training(2, 3)
    seen, weights = [], []
    for batch in training.batches(8):
        training.step(batch)
        seen.append(int(training.optimizer.iterations))
        weights.append(training.w.numpy().tobytes())
    assert seen == [0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert len(set(weights)) == 4


def test_limits_apply_to_the_mean_of_the_window(float64: None) -> None:
    training = Training(2, 2, clipnorm=1e-3)
    assert np.linalg.norm(training.epoch(33)) == pytest.approx(1e-4)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_a_checkpoint_in_the_middle_of_a_window_goes_on(
    float64: None, tmp_path: Any, replicas: int
) -> None:
    first = Training(2, 3)
    for batch in list(first.batches(8))[:4]:
        first.step(batch)
    path = tf.train.Checkpoint(o=first.optimizer, w=first.w).save(tmp_path / "ckpt")
    second = Training(replicas, 3)
    tf.train.Checkpoint(o=second.optimizer, w=second.w).restore(path)
    for batch in list(second.batches(8))[4:]:
        second.step(batch)
    np.testing.assert_allclose(second.w.numpy(), reference(8, 3), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_bad_batch_leaves_the_window_as_it_was(bad: float) -> None:
    w = tf.Variable(1.0)
    inner = optimizers.SGD(0.5, gradient_accumulation_steps=2)
    optimizer = optimizers.LossScaleOptimizer(inner, initial_scale=1.0)
    for gradient in (1.0, bad, 3.0):
        optimizer.apply_gradients([(tf.constant(gradient), w)])
    assert (float(w.numpy()), int(optimizer.iterations)) == (0.0, 1)


@pytest.mark.parametrize("steps", [-1, 1, 1.5])
def test_senseless_windows_are_refused(steps: Any) -> None:
    with pytest.raises(ValueError, match=">= 2"):
        optimizers.SGD(gradient_accumulation_steps=steps)
