"""Gradients that the replicas are given: summed and applied in one pass over the weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._function import trace as _trace


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.threading.set_intra_op_parallelism_threads(0)
    _trace.OPTIONS.fuse_updates = True


def per_replica(strategy: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """A variable with a value per replica, each other numbers."""
    with strategy.scope():
        held = tf.Variable(
            np.zeros(shape, dtype),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    base = np.random.default_rng(0).normal(size=shape).astype(dtype)

    def fill() -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        held.assign(tf.sin(base * (1.0 + tf.cast(replica, dtype))))

    strategy.run(fill)
    return held


def train(
    replicas: int, shape: tuple[int, ...], dtype: str = "float32", op: str = "SUM", steps: int = 3
) -> tuple[list[np.ndarray], str]:
    """The weights and moments afterwards, and the plan."""
    strategy = tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(replicas)])
    gradient = per_replica(strategy, shape, dtype)
    with strategy.scope():
        w, m = (tf.Variable(np.full(shape, value, dtype)) for value in (1.0, 0.0))

    @tf.function
    def step() -> None:
        def update() -> None:
            g = tf.distribute.get_replica_context().all_reduce(op, gradient.read_value())
            m.assign(0.9 * m + g)
            w.assign_sub(0.01 * m)

        strategy.run(update)

    for _ in range(steps):
        step()
    return [w.numpy(), m.numpy()], str(step.explain())


def tree_sum(values: list[np.ndarray]) -> np.ndarray:
    """The sum in the order of the tree: the left half is the larger one."""
    if len(values) == 1:
        return values[0]
    left = (len(values) + 1) // 2
    return tree_sum(values[:left]) + tree_sum(values[left:])


@pytest.mark.parametrize("replicas", [2, 3, 8])
@pytest.mark.parametrize("shape", [(200, 150), (9001,), (1, 30000), (3, 100, 33)])
def test_the_sum_is_applied_block_by_block_with_the_bits_of_separate_steps(
    shape: tuple[int, ...], replicas: int
) -> None:
    together, plan = train(replicas, shape)
    assert "block by block" in plan
    _trace.OPTIONS.fuse_updates = False
    apart, plan = train(replicas, shape)
    assert "block by block" not in plan
    for a, b in zip(together, apart, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sum_is_that_of_the_tree(dtype: str) -> None:
    shape, replicas = (200, 150), 5
    (_, moment), plan = train(replicas, shape, dtype, steps=1)
    assert "block by block" in plan
    base = np.random.default_rng(0).normal(size=shape).astype(dtype)
    sines = [tf.sin(base * np.asarray(1 + r, dtype)).numpy() for r in range(replicas)]
    np.testing.assert_array_equal(moment, tree_sum(sines))


def test_a_mean_divides_the_sum() -> None:
    (_, total), _ = train(4, (200, 150), steps=1)
    (_, mean), plan = train(4, (200, 150), op="MEAN", steps=1)
    assert "block by block" in plan
    np.testing.assert_array_equal(mean, total / np.float32(4))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(threads: int) -> None:
    expected, _ = train(3, (700, 900))
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    found, _ = train(3, (700, 900))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_small_gradients_are_summed_together() -> None:
    _, plan = train(2, (10, 10))
    assert "all-reduce" in plan
    assert "block by block" not in plan


def test_a_sum_that_is_read_twice_is_stored() -> None:
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    gradient = per_replica(strategy, (200, 150), "float32")
    with strategy.scope():
        w = tf.Variable(np.zeros((200, 150), np.float32))

    @tf.function
    def step() -> Any:
        def update() -> Any:
            g = tf.distribute.get_replica_context().all_reduce("SUM", gradient.read_value())
            w.assign_sub(g)
            return tf.norm(g)

        return strategy.run(update)

    norm = strategy.experimental_local_results(step())[0]
    np.testing.assert_allclose(norm, np.linalg.norm(w.numpy()), rtol=1e-5)
    assert "block by block" not in str(step.explain())
