"""Where Python needs a number of examples and replicas have different ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_values import both_ways, cut, results

import samegrad as tf

SHARES = [(4, 3), (2, 1, 1), (1, 0), (3, 0), (1, 37)]
DATA = np.random.default_rng(11).normal(size=(40, 5)).astype(np.float32)
Step = Callable[[Any], Any]


def split(shares: tuple[int, ...]) -> list[np.ndarray]:
    return cut(DATA, shares)


def run(step: Step, shares: tuple[int, ...], traced: bool) -> list[np.ndarray]:
    return results(step, split(shares), traced)


of_shares = pytest.mark.parametrize("shares", SHARES, ids=str)


NUMBERS: dict[str, Step] = {
    "len": lambda v: float(len(v)),
    "range(len)": lambda v: sum(1.0 for _ in range(len(v))),
    "range(shape)": lambda v: sum(1.0 for _ in range(v.shape[0])),
    "int": lambda v: float(int(v.shape[0])),
    "int of a tensor": lambda v: float(int(tf.shape(v)[0])),
    "float": lambda v: float(v.shape[0]),
    "float of a tensor": lambda v: float(tf.shape(v)[0]),
    "index": lambda v: [float(i) for i in range(50)][v.shape[0]],
    "slice of a list": lambda v: float(len([0] * 50)) - len(([0] * 50)[v.shape[0] :]),
    "math": lambda v: math.sqrt(v.shape[0]) ** 2,
    "np.zeros": lambda v: float(np.zeros(v.shape[0]).size),
    "np.ones(shape)": lambda v: float(np.ones(v.shape).sum()) / 5,
    "np.sqrt": lambda v: float(np.sqrt(v.shape[0]) ** 2),
    "np.array": lambda v: float(np.array(v.shape[0])),
    "np.float32": lambda v: float(np.float32(v.shape[0])),
    "array of numpy": lambda v: float((np.ones(2) * v.shape[0])[0]),
}


@both_ways
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("shares", [(3, 3), (7,), *SHARES], ids=str)
def test_a_number_for_python_is_that_of_the_replica(
    name: str, shares: tuple[int, ...], traced: bool
) -> None:
    got = run(lambda v: v * NUMBERS[name](v), shares, traced)
    for part, result in zip(split(shares), got, strict=True):
        np.testing.assert_allclose(result, part * len(part), rtol=1e-6)


@both_ways
@pytest.mark.parametrize(
    "ask",
    [
        lambda v: v.shape[0] == 4,
        lambda v: v.shape[0] != 4,
        lambda v: v.shape[0] > 3,
        lambda v: v.shape[0] <= 3,
        lambda v: v.shape[0] - 3,
        lambda v: np.int64(4) == v.shape[0],
        lambda v: max(v.shape[0], 3) == 3,
    ],
    ids=["==", "!=", ">", "<=", "bool", "numpy", "max"],
)
@of_shares
def test_an_answer_for_python_is_that_of_the_replica(
    ask: Step, shares: tuple[int, ...], traced: bool
) -> None:
    got = run(lambda v: v * 2.0 if ask(v) else v + 1.0, shares, traced)
    for part, result in zip(split(shares), got, strict=True):
        np.testing.assert_array_equal(result, part * 2 if ask(part) else part + 1)


@both_ways
def test_operators_with_numbers_of_numpy_give_sizes_of_each_replica(traced: bool) -> None:
    got = run(lambda v: v * (np.float32(2) * v.shape[0]) + (np.int64(3) - v.shape[0]),
              (4, 3), traced)  # fmt: skip
    for part, result in zip(split((4, 3)), got, strict=True):
        np.testing.assert_allclose(result, part * (2 * len(part)) + (3 - len(part)), rtol=1e-6)


def loop_over_range(v: Any) -> Any:
    total = tf.zeros([5])
    for i in tf.range(tf.shape(v)[0]):
        total = total + tf.exp(v[i])
    return total


def loop_over_rows(v: Any) -> Any:
    total = tf.zeros([5])
    for row in v:
        total = total + tf.exp(row)
    return total


@of_shares
@pytest.mark.parametrize("step", [loop_over_range, loop_over_rows])
def test_a_loop_of_the_step_over_examples_ends_where_the_replica_has_no_more(
    step: Step, shares: tuple[int, ...]
) -> None:
    got = run(step, shares, traced=True)
    for part, result in zip(split(shares), got, strict=True):
        np.testing.assert_allclose(result, np.exp(part).sum(0), rtol=1e-5)
        (alone,) = run(step, (len(part),), traced=True) if part is split(shares)[0] else (result,)
        np.testing.assert_array_equal(result, alone)


@of_shares
def test_a_loop_of_the_step_over_examples_trains(shares: tuple[int, ...]) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=len(shares))
    with strategy.scope():
        w = tf.Variable(np.float32([0.1, -0.2, 0.3, 0.4, -0.5]))
        optimizer = tf.keras.optimizers.SGD(0.05)
    parts = split(shares)
    values = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(parts[context.replica_id_in_sync_group])
    )

    def step(v: Any) -> None:
        with tf.GradientTape() as tape:
            total = tf.constant(0.0)
            for i in tf.range(tf.shape(v)[0]):
                total = total + tf.reduce_sum(v[i] * w) ** 2
        optimizer.apply_gradients([(tape.gradient(total, w), w)])

    expected = w.numpy().astype(np.float64)
    train = tf.function(lambda v: strategy.run(step, (v,)))
    for _ in range(3):
        train(values)
        rows = np.concatenate(parts).astype(np.float64)
        expected = expected - 0.05 * 2 * rows.T @ (rows @ expected)
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-4, atol=1e-6)


@of_shares
def test_a_branch_that_a_replica_does_not_take_may_be_an_error_there(
    shares: tuple[int, ...],
) -> None:
    """Nested: the row with index 2 is there for some replicas only."""

    def step(v: Any) -> Any:
        n = tf.shape(v)[0]
        inner = lambda: tf.cond(n > 2, lambda: tf.gather(v, 2), lambda: tf.gather(v, 0))  # noqa: E731
        return tf.cond(n > 0, inner, lambda: tf.zeros([5]))

    got = run(step, shares, traced=False)
    for part, result in zip(split(shares), got, strict=True):
        row = part[2] if len(part) > 2 else part[0] if len(part) else np.zeros(5)
        np.testing.assert_array_equal(result, row)


def test_a_replica_prints_in_the_rounds_that_it_does(capfd: pytest.CaptureFixture[str]) -> None:
    def step(v: Any) -> Any:
        i = tf.constant(0)
        for row in v:
            tf.print("row", i, tf.reduce_sum(row) < 1e9)
            i = i + 1
        return i

    assert [int(n) for n in run(step, (3, 1), traced=True)] == [3, 1]
    assert capfd.readouterr().err.count("row") == 4
