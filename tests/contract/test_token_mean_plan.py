"""A loss that is divided by what all examples count has its forward pass where the backward is.

The count of all tokens is known before the first product: a plan that goes forward on the way to it
keeps all activations of all examples in memory until it goes back, for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf

WIDTH, LENGTH, LAYERS = 48, 16, 3


def of_all(weights: Any) -> Any:
    context = tf.distribute.get_replica_context()
    return context.all_reduce("sum", tf.reduce_sum(weights))


def token_mean(losses: Any, weights: Any) -> Any:
    return tf.nn.compute_weighted_mean_loss(losses * weights, weights)


def by_hand(losses: Any, weights: Any) -> Any:
    return tf.reduce_sum(losses * weights) / of_all(weights)


def constant(losses: Any, weights: Any) -> Any:
    return tf.reduce_sum(losses * weights) / 1000.0


def spread(losses: Any, weights: Any) -> Any:
    """Needs all losses before any gradient: the mean of their squared distance from their mean."""
    total = of_all(weights)
    mean = tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(losses * weights))
    return tf.reduce_sum(tf.square(losses - mean / total) * weights) / total


Step = Callable[[Any, Any], Any]


def program(loss: Callable[[Any, Any], Any], replicas: int) -> tuple[Step, list[Any], Any]:
    """A step of a network of tokens, its weights, and its strategy."""
    rng = np.random.default_rng(1)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        kernels = [
            tf.Variable(rng.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32))
            for _ in range(LAYERS)
        ]
        optimizer = tf.keras.optimizers.SGD(0.5)

    def replica_step(x: Any, lengths: Any) -> Any:
        weights = tf.sequence_mask(lengths, LENGTH, dtype=tf.float32)
        with tf.GradientTape() as tape:
            y = x
            for kernel in kernels:
                y = tf.tanh(tf.matmul(y, kernel))
            value = loss(tf.reduce_mean(tf.square(y - x), -1), weights)
        gradients = tape.gradient(value, kernels)
        optimizer.apply_gradients(zip(gradients, kernels, strict=True))
        return value

    @tf.function
    def step(x: Any, lengths: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica_step, args=(x, lengths)), axis=None)

    return step, kernels, strategy


def batch(strategy: Any, examples: int) -> Any:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(examples, LENGTH, WIDTH)).astype(np.float32)
    lengths = rng.integers(0, LENGTH + 1, examples).astype(np.int32)
    data = tf.data.Dataset.from_tensor_slices((x, lengths)).batch(examples)
    (found,) = strategy.experimental_distribute_dataset(data)
    return found


def loops_with_products(plan: str) -> int:
    parts = re.split(r"^  (?=[a-z])", plan, flags=re.M)
    return sum(part.startswith("loop over the examples") and "matmul" in part for part in parts)


def stored(plan: str) -> float:
    """Bytes that steps leave to others."""
    found = re.search(r"memory between steps: ([\d.]+) (bytes|KiB|MiB)", plan)
    assert found is not None, plan
    return float(found[1]) * {"bytes": 1, "KiB": 2**10, "MiB": 2**20}[found[2]]


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("loss", [token_mean, by_hand], ids=["helper", "by hand"])
def test_one_loop_goes_forward_and_back(loss: Any, replicas: int) -> None:
    step, _, strategy = program(loss, replicas)
    inputs = batch(strategy, 64)
    plan = str(step.explain(*inputs))  # type: ignore[attr-defined]
    assert loops_with_products(plan) == 1, plan
    other, _, strategy = program(constant, replicas)
    least = stored(str(other.explain(*batch(strategy, 64))))  # type: ignore[attr-defined]
    activations = 64 * LENGTH * WIDTH * 4
    assert stored(plan) < least + 0.2 * activations, plan


def test_memory_does_not_grow_with_the_batch() -> None:
    step, _, strategy = program(token_mean, 1)
    few, many = (
        stored(str(step.explain(*batch(strategy, count))))  # type: ignore[attr-defined]
        for count in (16, 1024)
    )
    activations = (1024 - 16) * LENGTH * WIDTH * 4  # of one layer
    assert many < few + 0.1 * activations


def test_losses_that_need_all_others_first_keep_two_loops() -> None:
    step, _, strategy = program(spread, 2)
    plan = str(step.explain(*batch(strategy, 64)))  # type: ignore[attr-defined]
    assert loops_with_products(plan) == 2, plan


@pytest.mark.parametrize("loss", [token_mean, by_hand, spread], ids=["helper", "by hand", "spread"])
@pytest.mark.parametrize("examples", [64, 1])
def test_replicas_give_the_bits_of_one(loss: Any, examples: int) -> None:
    found = []
    for replicas in (1, 2, 3):
        step, kernels, strategy = program(loss, replicas)
        inputs = batch(strategy, examples)
        losses = [np.asarray(step(*inputs)) for _ in range(3)]
        found.append(
            b"".join([*(v.tobytes() for v in losses), *(k.numpy().tobytes() for k in kernels)])
        )
    assert found[0] == found[1] == found[2]
    assert not np.isnan(np.frombuffer(found[0], np.float32)).any()
