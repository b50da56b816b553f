"""Steps that train where each number of examples has its trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_values import both_ways, cut, distributed, on

import samegrad as tf

SHARES = [(4, 3), (2, 1, 1), (1, 0), (0, 2), (3, 0), (5, 5, 3), (1, 9, 4, 4)]
RNG = np.random.default_rng(11)
DATA = RNG.normal(size=(40, 6)).astype(np.float32)
W = RNG.normal(size=(6, 3)).astype(np.float32)
Step = Callable[..., Any]

of_shares = pytest.mark.parametrize("shares", SHARES, ids=str)


def split(shares: tuple[int, ...]) -> list[np.ndarray]:
    return cut(DATA, shares)


def loss_of(v: Any, w: Any, total: int) -> Any:
    z = tf.matmul(v, w)
    loss = 0.0
    for i in range(len(v)):
        loss = loss + tf.reduce_sum(tf.tanh(z[i]) * z[i])
    return loss / total


def reference_gradient(v: np.ndarray, w: np.ndarray, total: int) -> np.ndarray:
    v, w = v.astype(np.float64), w.astype(np.float64)
    z = v @ w
    return v.T @ (np.tanh(z) + z * (1 - np.tanh(z) ** 2)) / total


@both_ways
@of_shares
def test_sgd_follows_numpy(shares: tuple[int, ...], traced: bool) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
    with strategy.scope():
        w = tf.Variable(W)
        optimizer = tf.keras.optimizers.SGD(0.5)
    total = sum(shares)

    def step(v: Any) -> None:
        with tf.GradientTape() as tape:
            loss = loss_of(v, w, total)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    train = on(strategy, step, traced)
    expected = W.astype(np.float64)
    whole = np.concatenate(split(shares))
    for _ in range(3):
        train(distributed(strategy, split(shares)))
        expected = expected - 0.5 * reference_gradient(whole, expected, total)
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5, atol=1e-6)


@both_ways
@of_shares
def test_adam_follows_one_replica(shares: tuple[int, ...], traced: bool) -> None:
    total = sum(shares)

    def train(parts: list[np.ndarray]) -> np.ndarray:
        strategy = tf.distribute.MirroredStrategy(replicas=len(parts))
        with strategy.scope():
            w = tf.Variable(W)
            optimizer = tf.keras.optimizers.Adam(0.1)

        def step(v: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_of(v, w, total)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        run = on(strategy, step, traced)
        for _ in range(4):
            run(distributed(strategy, parts))
        return np.asarray(w.numpy())

    parts = split(shares)
    np.testing.assert_allclose(train(parts), train([np.concatenate(parts)]), rtol=2e-4, atol=1e-5)


@both_ways
@of_shares
def test_a_reduction_in_the_middle_of_a_step(shares: tuple[int, ...], traced: bool) -> None:
    """What comes behind it needs what was computed before it, in another way on each replica."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
    with strategy.scope():
        w = tf.Variable(W)
    parts = split(shares)

    def step(v: Any) -> Any:
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            z = tf.matmul(v, w)
            rows = [tf.tanh(z[i]) * z[i] for i in range(len(v))]
            mine = tf.add_n(rows) if rows else tf.zeros([3])
            count = context.all_reduce("sum", float(len(v)))
            loss = tf.reduce_sum(mine) / count
        total = context.all_reduce("sum", mine)
        gradient = context.all_reduce("sum", tape.gradient(loss, w))
        w.assign_sub(0.5 * gradient)
        return total, count, total * (len(v) + 1.0)

    totals, counts, more = on(strategy, step, traced)(distributed(strategy, parts))
    whole = np.concatenate(parts).astype(np.float64)
    z = whole @ W
    want = (np.tanh(z) * z).sum(0)
    for r, part in enumerate(parts):
        got = [strategy.experimental_local_results(x)[r].numpy() for x in (totals, counts, more)]
        np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-6)
        assert got[1] == len(whole)
        np.testing.assert_allclose(got[2], want * (len(part) + 1), rtol=1e-5, atol=1e-6)
    expected = W - 0.5 * reference_gradient(whole, W, len(whole))
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_tape_around_run() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        w = tf.Variable(W)
    values = distributed(strategy, split((4, 3)))

    def around(step: Step) -> Any:
        @tf.function
        def gradient(v: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = strategy.reduce("SUM", strategy.run(step, (v,)), axis=None)
            return tape.gradient(loss, w)

        return strategy.reduce("SUM", gradient(values), axis=None).numpy()

    def at_once(v: Any) -> Any:
        z = tf.matmul(v, w)
        return tf.reduce_sum(tf.tanh(z) * z) / 7

    np.testing.assert_allclose(
        around(lambda v: loss_of(v, w, 7)), around(at_once), rtol=1e-5, atol=1e-6
    )


def test_the_short_last_batch_of_a_dataset() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        w = tf.Variable(W)
        optimizer = tf.keras.optimizers.SGD(0.1)
    data = tf.data.Dataset.from_tensor_slices(DATA[:17]).batch(7)
    batches = strategy.experimental_distribute_dataset(data)

    def step(v: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(v, w, 7)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    @tf.function
    def epoch() -> Any:
        total = 0.0
        for batch in batches:
            total += strategy.reduce("SUM", strategy.run(step, (batch,)), axis=None)
        return total

    expected = W.astype(np.float64)
    for _ in range(2):
        epoch()
        for first in (0, 7, 14):
            rows = DATA[first : min(first + 7, 17)]
            expected = expected - 0.1 * reference_gradient(rows, expected, 7)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_layers_train_on_unequal_shares() -> None:
    def train(parts: list[np.ndarray]) -> list[np.ndarray]:
        tf.keras.utils.set_random_seed(4)
        strategy = tf.distribute.MirroredStrategy(replicas=len(parts))
        with strategy.scope():
            model = tf.keras.Sequential(
                [
                    tf.keras.layers.Dense(5, activation="tanh"),
                    tf.keras.layers.Dropout(0.3),
                    tf.keras.layers.Dense(2),
                ]
            )
            model.build((None, 6))
            optimizer = tf.keras.optimizers.Adam(0.05)
            metric = tf.keras.metrics.Mean()

        def step(v: Any) -> Any:
            with tf.GradientTape() as tape:
                y = model(v, training=True)
                loss = 0.0
                for i in range(len(v)):
                    loss = loss + tf.reduce_sum(y[i] * y[i]) / 9.0
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            metric.update_state(tf.reduce_sum(y, axis=1))
            return loss

        run = on(strategy, step, True)
        for _ in range(3):
            run(distributed(strategy, parts))
        return [*(v.numpy() for v in model.trainable_variables), metric.result().numpy()]

    one = train([DATA[:9]])
    for shares in ((5, 4), (6, 0, 3)):
        for got, want in zip(train(split(shares)), one, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)


@of_shares
def test_loops_and_branches_of_the_step_around_run(shares: tuple[int, ...]) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
    with strategy.scope():
        w = tf.Variable(W)
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    total = sum(shares)

    def step(v: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(v, w, total)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss

    @tf.function
    def steps(v: Any, count: Any) -> Any:
        losses = 0.0
        for i in tf.range(count):
            if i % 2 == 0:
                losses += strategy.reduce("SUM", strategy.run(step, (v,)), axis=None)
            else:
                losses += 2.0 * strategy.reduce("SUM", strategy.run(step, (v,)), axis=None)
        return losses

    expected, velocity, losses = W.astype(np.float64), np.zeros_like(W, np.float64), 0.0
    whole = np.concatenate(split(shares)).astype(np.float64)
    got = steps(distributed(strategy, split(shares)), tf.constant(5))
    for i in range(5):
        z = whole @ expected
        losses += (1 + i % 2) * (np.tanh(z) * z).sum() / total
        velocity = 0.9 * velocity - 0.1 * reference_gradient(whole, expected, total)
        expected = expected + velocity
    np.testing.assert_allclose(float(got), losses, rtol=1e-5)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_variable_of_all_is_not_assigned_in_a_loop_what_each_replica_counts() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        count = tf.Variable(0.0)

    @tf.function
    def steps(v: Any) -> Any:
        for _ in tf.range(2):
            strategy.run(count_all, (v,))
        return 0

    def count_all(v: Any) -> None:
        count.assign_add(tf.distribute.get_replica_context().all_reduce("sum", float(len(v))))

    steps(distributed(strategy, split((4, 3))))
    assert float(count.numpy()) == 14

    def count_own(v: Any) -> None:
        tf.distribute.get_replica_context().all_reduce("sum", float(len(v)))
        count.assign_add(float(len(v)))

    @tf.function
    def wrong(v: Any) -> Any:
        for _ in tf.range(2):
            strategy.run(count_own, (v,))
        return 0

    with pytest.raises(RuntimeError, match="is one variable for all replicas"):
        wrong(distributed(strategy, split((4, 3))))


def test_a_loop_with_collectives_that_reads_what_differs_is_an_error() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def step(v: Any) -> Any:
        context = tf.distribute.get_replica_context()
        mine = weighted_sum(v)
        total = tf.constant(0.0)
        for _ in tf.range(3):
            total = total + context.all_reduce("sum", mine)
        return total

    run = tf.function(lambda v: strategy.run(step, (v,)))
    with pytest.raises(NotImplementedError, match=r"while_loop .*took another way before it"):
        run(distributed(strategy, split((4, 3))))


def weighted_sum(v: Any) -> Any:
    return sum(tf.reduce_sum(v[i]) * (i + 1.0) for i in range(len(v)))
