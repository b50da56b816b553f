"""Batches normalized by the moments of all replicas: bitwise identical to one device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf

BATCH, STEPS = 32, 3


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.run_functions_eagerly(False)
    tf.config.threading.set_intra_op_parallelism_threads(0)


def normalized(y: Any, scale: Any, offset: Any) -> Any:
    """Over all examples and pixels."""
    context = tf.distribute.get_replica_context()
    count = float(BATCH) * y.shape[1] * y.shape[2]
    mean = context.all_reduce("SUM", tf.reduce_sum(y, [0, 1, 2]) / count)
    distance = y - mean
    variance = context.all_reduce("SUM", tf.reduce_sum(distance * distance, [0, 1, 2]) / count)
    return tf.nn.relu(distance * (tf.math.rsqrt(variance + 1e-5) * scale) + offset)


def trained(replicas: int) -> list[bytes]:
    """The weights and the losses of some steps of a residual network."""
    rng = np.random.default_rng(1)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    shapes = [(3, 3, 3, 24), (24,), (24,), (3, 3, 24, 24), (24,), (24,), (24, 5)]
    with strategy.scope():
        weights = [tf.Variable((0.2 * rng.normal(size=s)).astype("float32")) for s in shapes]
    images = rng.normal(size=(BATCH, 18, 18, 3)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((images, rng.integers(0, 5, BATCH)))
    batches = iter(strategy.experimental_distribute_dataset(dataset.batch(BATCH).repeat()))

    def step(x: Any, labels: Any) -> Any:
        a, scale, offset, b, scale2, offset2, out = weights
        with tf.GradientTape() as tape:
            y = normalized(tf.nn.conv2d(x, a, 1, "SAME"), scale + 1.0, offset)
            y = y + normalized(tf.nn.conv2d(y, b, 1, "SAME"), scale2 + 1.0, offset2)
            logits = tf.matmul(tf.reduce_mean(y, [1, 2]), out)
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.nn.compute_average_loss(each, global_batch_size=BATCH)
        context = tf.distribute.get_replica_context()
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * context.all_reduce("SUM", gradient))
        return loss

    @tf.function
    def run(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, args=batch), axis=None)

    losses = [run(next(batches)).numpy().tobytes() for _ in range(STEPS)]
    return [*losses, *(weight.numpy().tobytes() for weight in weights)]


@pytest.fixture(scope="module")
def alone() -> list[bytes]:
    return trained(1)


@pytest.mark.parametrize("replicas", [2, 3, 8])
def test_normalization_over_replicas_has_the_bits_of_one(replicas, alone):
    assert trained(replicas) == alone


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("replicas", [1, 4])
def test_threads_change_no_bit_of_normalization(threads, replicas, alone):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    assert trained(replicas) == alone


@pytest.mark.parametrize("replicas", [1, 2])
def test_eager_normalization_has_the_bits_of_a_function(replicas, alone):
    tf.config.run_functions_eagerly(True)
    assert trained(replicas) == alone
