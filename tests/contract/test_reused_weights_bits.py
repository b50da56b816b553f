"""Weights used more than once, transformed or regularized: bitwise identical to one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.testing import assert_same_bits

Loss = Callable[[Any, Any], Any]
Program = Callable[[], tuple[list[Any], Loss]]
# Sizes that no tile, lane or leaf divides; the rows have numbers of very different sizes.
EXAMPLES, WIDTH, HIDDEN, WORDS = 96, 7, 13, 29


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.run_functions_eagerly(False)
    tf.config.threading.set_intra_op_parallelism_threads(0)


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(EXAMPLES, WIDTH)) * np.exp(rng.normal(size=(EXAMPLES, 1)))
    return rows.astype(np.float32), rng.integers(0, WORDS, (EXAMPLES, 3))


def weight(*shape: int, seed: int = 0) -> Any:
    numbers = np.random.default_rng(seed).normal(size=shape) * 0.3
    return tf.Variable(numbers.astype(np.float32))


def mean(losses: Any) -> Any:
    return tf.nn.compute_average_loss(losses)


def tied() -> tuple[list[Any], Loss]:
    w = weight(WIDTH, HIDDEN)

    def loss(rows: Any, words: Any) -> Any:
        decoded = tf.matmul(tf.tanh(rows @ w), w, transpose_b=True)
        return mean(tf.reduce_sum((decoded - rows) ** 2, axis=1))

    return [w], loss


def siamese() -> tuple[list[Any], Loss]:
    w, b = weight(WIDTH, HIDDEN), weight(HIDDEN, seed=1)

    def embed(rows: Any) -> Any:
        return tf.tanh(rows @ w + b)

    def loss(rows: Any, words: Any) -> Any:
        apart = embed(rows) - embed(rows[:, ::-1] * 0.7)
        return mean(tf.reduce_sum(apart**2, axis=1))

    return [w, b], loss


def critic() -> tuple[list[Any], Loss]:
    w, out = weight(WIDTH, HIDDEN), weight(HIDDEN, 1, seed=1)

    def score(rows: Any) -> Any:
        return tf.squeeze(tf.tanh(rows @ w) @ out, axis=1)

    def loss(real: Any, words: Any) -> Any:
        fake = tf.sin(real * 3.0)
        between = 0.3 * real + 0.7 * fake
        with tf.GradientTape() as tape:
            tape.watch(between)
            scores = score(between)
        slopes = tf.sqrt(tf.reduce_sum(tape.gradient(scores, between) ** 2, axis=1) + 1e-6)
        penalty = mean((slopes - 1.0) ** 2)
        return mean(score(fake)) - mean(score(real)) + 10.0 * penalty

    return [w, out], loss


def tied_embedding() -> tuple[list[Any], Loss]:
    table, w = weight(WORDS, HIDDEN), weight(HIDDEN, HIDDEN, seed=1)

    def loss(rows: Any, words: Any) -> Any:
        states = tf.tanh(tf.reduce_sum(tf.gather(table, words[:, :2]), axis=1) @ w)
        logits = tf.matmul(states, table, transpose_b=True)
        return mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=words[:, 2], logits=logits)
        )

    return [table, w], loss


def regularized() -> tuple[list[Any], Loss]:
    w, v = weight(WIDTH, HIDDEN), weight(HIDDEN, 1, seed=1)

    def loss(rows: Any, words: Any) -> Any:
        fit = mean(tf.squeeze(tf.tanh(rows @ w) @ v, axis=1) ** 2)
        penalties = [tf.reduce_sum(w * w) * 0.01, tf.reduce_sum(tf.abs(v)) * 0.003]
        return fit + tf.nn.scale_regularization_loss(penalties)

    return [w, v], loss


def transformed() -> tuple[list[Any], Loss]:
    w, g, low, high = weight(WIDTH, HIDDEN), weight(HIDDEN, seed=1), weight(2), weight(WORDS, 1)
    left, right = weight(HIDDEN, 3, seed=3), weight(3, HIDDEN, seed=4)

    def loss(rows: Any, words: Any) -> Any:
        positive = w * w + 0.2
        unit = tf.exp(g) * w / tf.sqrt(tf.reduce_sum(w * w, axis=0))
        states = tf.tanh(rows @ positive) + rows @ unit + rows @ tf.nn.relu(w)
        states = states @ (left @ right) + tf.concat([low, g[:11] * 3.0], axis=0)
        scale = tf.reduce_sum(tf.gather(high, [1, 4, 1, 28]))
        return mean(tf.reduce_sum(states**2, axis=1)) * tf.exp(scale) * 0.1

    return [w, g, low, high, left, right], loss


def unrolled() -> tuple[list[Any], Loss]:
    w, u = weight(WIDTH, HIDDEN), weight(HIDDEN, HIDDEN, seed=1)

    def loss(rows: Any, words: Any) -> Any:
        state = tf.tanh(rows @ w)
        for _ in range(5):
            state = tf.tanh(state @ u + rows @ w)
        return mean(tf.reduce_sum(state**2, axis=1))

    return [w, u], loss


def in_cond() -> tuple[list[Any], Loss]:
    w, v = weight(WIDTH, HIDDEN), weight(HIDDEN, HIDDEN, seed=1)

    def loss(rows: Any, words: Any) -> Any:
        state = tf.tanh(rows @ w)
        state = tf.cond(
            tf.reduce_sum(w) > 0.0,
            lambda: tf.tanh(state @ v) @ (v * v + 0.1) + rows @ w + rows @ (w * 0.3),
            lambda: tf.tanh(state @ v),
        )
        return mean(tf.reduce_sum(state**2, axis=1)) + tf.reduce_sum(v) * 0.0

    return [w, v], loss


def in_while() -> tuple[list[Any], Loss]:
    w, u = weight(WIDTH, HIDDEN), weight(HIDDEN, HIDDEN, seed=1)

    def loss(rows: Any, words: Any) -> Any:
        def body(i: Any, state: Any, total: Any) -> Any:
            state = tf.tanh(state @ u + rows @ (w * w + 0.2))
            return i + 1, state, total + mean(tf.reduce_sum(state**2, axis=1))

        start = (tf.constant(0), tf.tanh(rows @ w), tf.constant(0.0))
        return tf.while_loop(lambda i, state, total: i < 4, body, start)[2]

    return [w, u], loss


PROGRAMS: list[Program] = [
    tied, siamese, critic, tied_embedding, regularized, transformed, unrolled, in_cond, in_while,
]  # fmt: skip


Result = tuple[list[np.ndarray], list[float]]


def train(program: Program, replicas: int, batch: int = 48, steps: int = 5) -> Result:
    tf.random.set_seed(3)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    dataset = tf.data.Dataset.from_tensor_slices(data()).batch(batch).repeat()
    with strategy.scope():
        variables, loss_of = program()
        optimizer = tf.keras.optimizers.Adam(1e-2)

    def step(rows: Any, words: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(rows, words)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return loss

    @tf.function
    def distributed(inputs: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, args=inputs), axis=None)

    batches = iter(strategy.experimental_distribute_dataset(dataset))
    losses = [float(distributed(next(batches))) for _ in range(steps)]
    assert all(np.isfinite(losses)) and len(set(losses)) == steps
    return [v.numpy() for v in variables], losses


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_replicas_give_the_bits_of_one_device(program: Program) -> None:
    one = train(program, 1)
    for replicas in (2, 3, 8):
        assert_same_bits(one, train(program, replicas))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_unequal_batches_of_any_number_of_replicas_do(program: Program) -> None:
    for batch in (7, 37):
        one = train(program, 1, batch=batch)
        for replicas in (2, 3, 4, 5):
            assert_same_bits(one, train(program, replicas, batch=batch))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_explain_says_that_they_do(program: Program) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    with strategy.scope():
        variables, loss_of = program()
        optimizer = tf.keras.optimizers.SGD(1e-2)

    def step(rows: Any, words: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(rows, words)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return tf.distribute.get_replica_context().all_reduce("sum", loss)

    dataset = tf.data.Dataset.from_tensor_slices(data()).batch(48)
    batch = next(iter(strategy.experimental_distribute_dataset(dataset)))
    plan = strategy.explain(step, args=batch)
    assert plan.bitwise, plan.reasons


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_functions_run_eagerly_give_the_same_bits(program: Program) -> None:
    expected = train(program, 2)
    tf.config.run_functions_eagerly(True)
    assert_same_bits(expected, train(program, 1))
    weights, losses = train(program, 2)
    if program is in_while:  # parts that leave a loop as parts are summed by reduce outside
        np.testing.assert_allclose(losses, expected[1], rtol=1e-6)
        losses = expected[1]
    assert_same_bits(expected, (weights, losses))


def train_one_operation_at_a_time(program: Program, batch: int = 48, steps: int = 5) -> Result:
    tf.random.set_seed(3)
    variables, loss_of = program()
    optimizer = tf.keras.optimizers.Adam(1e-2)
    losses = []
    dataset = tf.data.Dataset.from_tensor_slices(data()).batch(batch).repeat()
    for rows, words in dataset.take(steps):
        with tf.GradientTape() as tape:
            loss = loss_of(rows, words)
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        losses.append(float(loss))
    return [v.numpy() for v in variables], losses


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_operations_one_at_a_time_give_the_bits_of_replicas(program: Program) -> None:
    assert_same_bits(train(program, 4), train_one_operation_at_a_time(program))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_threads_and_passes_change_no_bit(program: Program) -> None:
    from samegrad._function import trace as _trace

    expected = train(program, 4)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    assert_same_bits(expected, train(program, 4))
    names = [name for name in dir(_trace.OPTIONS) if not name.startswith("_")]
    assert "fold_constants" in names
    for name in names:
        setattr(_trace.OPTIONS, name, False)
        try:
            assert_same_bits(expected, train(program, 4))
        finally:
            setattr(_trace.OPTIONS, name, True)
