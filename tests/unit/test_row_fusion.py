"""Reductions along the last axes fuse with what is around them, and keep every bit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import examples, local, shares, strategy

import samegrad as tf
from samegrad import _core
from samegrad._function import trace as _trace

LENGTHS = [1, 7, 8, 15, 16, 17, 1000, 8192]


@pytest.fixture(autouse=True)
def _fused_as_before() -> Iterator[None]:
    yield
    _trace.OPTIONS.fuse_elementwise = True


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean(centred * centred, -1, keepdims=True)
    return centred * tf.math.rsqrt(variance + 1e-5) * scale + offset


def rms_norm(x: Any, scale: Any, offset: Any) -> Any:
    return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-5) * scale + offset


def softmax(x: Any, scale: Any, offset: Any) -> Any:
    return tf.nn.softmax(x * 0.5 + offset) * scale


def log_softmax(x: Any, scale: Any, offset: Any) -> Any:
    return tf.nn.log_softmax(x * scale) + offset


def logsumexp(x: Any, scale: Any, offset: Any) -> Any:
    largest = tf.stop_gradient(tf.reduce_max(x, -1, keepdims=True))
    total = tf.reduce_sum(tf.exp(x - largest) * scale + offset * offset, -1, keepdims=True)
    return x - (tf.math.log(total) + largest)


def masked(x: Any, scale: Any, offset: Any) -> Any:
    """Without the axis of the row, and a mask that not all rows have."""
    kept = tf.where(x > offset, x, -1e9)
    whole = tf.cast(tf.reduce_any(x > offset, -1, keepdims=True), x.dtype)
    return tf.nn.softmax(kept) * whole * scale


ROWS = [layer_norm, rms_norm, softmax, log_softmax, logsumexp, masked]
OVER_ROWS = pytest.mark.parametrize("rows", ROWS, ids=lambda f: f.__name__)


def numbers(length: int, count: int = 5, dtype: str = "float32") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(length)
    x, weights = rng.normal(size=(2, count, 3, length)).astype(dtype)
    return x, weights, *rng.normal(size=(2, length)).astype(dtype)


def with_gradients(rows: Callable[..., Any]) -> Callable[..., Any]:
    """The value, and the derivatives of its weighted sum."""

    def step(x: Any, weights: Any, scale: Any, offset: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch([x, scale, offset])
            y = rows(x, scale, offset)
            total = tf.reduce_sum(y * weights)
        return [y, *tape.gradient(total, [x, scale, offset])]

    return step


def arrays(values: list[Any]) -> list[np.ndarray]:
    return [np.asarray(v) for v in values if v is not None]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@OVER_ROWS
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("batched", [True, False], ids=["examples", "plain"])
def test_fused_is_unfused_and_eager_to_the_bit(rows: Any, length: int, batched: bool) -> None:
    x, weights, scale, offset = numbers(length)
    made = [examples(v) if batched else tf.constant(v) for v in (x, weights)]
    made += [tf.constant(v) for v in (scale, offset)]
    step = with_gradients(rows)
    fused = tf.function(step)
    found = arrays(fused(*made))
    assert "fused_rows" in str(fused.explain(*made))
    _trace.OPTIONS.fuse_elementwise = False
    unfused = tf.function(lambda *args: step(*args))
    assert_same(found, arrays(unfused(*made)))
    assert "fused" not in str(unfused.explain(*made))
    assert_same(found, arrays(step(*made)))


@OVER_ROWS
@pytest.mark.parametrize("cuts", [[8], [5, 9], [1, 1, 14], [16]])
def test_replicas_have_the_rows_and_sums_of_one_device(rows: Any, cuts: list[int]) -> None:
    x, weights, scale, offset = numbers(17, count=16)

    def step(x: Any, weights: Any) -> list[Any]:
        y, dx, *sums = with_gradients(rows)(x, weights, tf.constant(scale), tf.constant(offset))
        context = tf.distribute.get_replica_context()
        return [y, dx, *[context.all_reduce("SUM", s) for s in sums if s is not None]]

    def run(cuts: list[int]) -> list[np.ndarray]:
        parts = [shares(*np.split(v, cuts)) for v in (x, weights)]
        found = strategy(len(cuts) + 1).run(step, args=tuple(parts))
        each = [local(value) for value in found]
        return [np.concatenate(v) for v in each[:2]] + [v[0] for v in each[2:]]

    assert_same(run(cuts), run([]))


@OVER_ROWS
def test_values_are_numpys(rows: Any) -> None:
    x, _, scale, offset = numbers(11, dtype="float64")
    found = tf.function(rows)(examples(x), tf.constant(scale), tf.constant(offset)).numpy()
    mean = x.mean(-1, keepdims=True)

    def soft(v: np.ndarray) -> np.ndarray:
        e = np.exp(v - v.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    expected = {
        layer_norm: lambda: (x - mean) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + offset,
        rms_norm: lambda: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale + offset,
        softmax: lambda: soft(x * 0.5 + offset) * scale,
        log_softmax: lambda: np.log(soft(x * scale)) + offset,
        masked: lambda: (
            soft(np.where(x > offset, x, -1e9)) * (x > offset).any(-1, keepdims=True) * scale
        ),
    }
    if rows is logsumexp:
        e = np.exp(x - x.max(-1, keepdims=True)) * scale + offset**2
        with np.errstate(invalid="ignore"):
            value = x - (np.log(e.sum(-1, keepdims=True)) + x.max(-1, keepdims=True))
    else:
        value = expected[rows]()
    np.testing.assert_allclose(found, value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rows", [layer_norm, rms_norm, softmax, log_softmax])
def test_first_and_second_derivatives(rows: Any) -> None:
    x, weights, scale, offset = numbers(5, count=2, dtype="float64")
    check_derivatives(
        tf.function(lambda x: tf.reduce_sum(rows(x, tf.constant(scale), offset) * weights)), x
    )


@pytest.mark.parametrize("length", [0, 1, 9])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_no_example_one_and_many_and_rows_of_nothing(length: int, count: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, length)).astype(np.float32)

    def rows(x: Any) -> list[Any]:
        total = tf.reduce_sum(tf.exp(x) * 2.0, -1, keepdims=True)
        return [total + 1.0, x * total, tf.nn.softmax(x - total), tf.reduce_max(x * 3.0, 1) + 1.0]

    fused = tf.function(rows)
    assert "fused_rows" in str(fused.explain(examples(x)))
    found, expected = arrays(fused(examples(x))), arrays(rows(examples(x)))
    assert [v.shape for v in found] == [(count, 1), (count, length), (count, length), (count,)]
    assert_same(found, expected)


def test_what_is_not_finite_stays_in_its_row() -> None:
    x, weights, scale, offset = numbers(16)
    x[0, 0, 3], x[1, 1, 0], x[2, 2, 5] = np.nan, np.inf, -np.inf
    for rows in ROWS:
        step = with_gradients(rows)
        made = [examples(x), examples(weights), tf.constant(scale), tf.constant(offset)]
        found, expected = arrays(tf.function(step)(*made)), arrays(step(*made))
        assert_same(found, expected)
        assert np.isfinite(found[0][3:]).all()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool", "float64"])
def test_rows_of_other_types(dtype: str) -> None:
    x = (np.arange(60).reshape(4, 3, 5) * 37 % 11).astype(dtype)

    def rows(x: Any) -> list[Any]:
        if dtype == "bool":
            other = tf.logical_not(x)
            return [tf.math.logical_xor(tf.reduce_any(other, -1, keepdims=True), x)]
        largest = tf.reduce_max(x + x, [-2, -1], keepdims=True)
        return [tf.reduce_sum(tf.maximum(x, largest - x) * x, [1, 2]), largest * x]

    assert "fused_rows" in str(tf.function(rows).explain(examples(x)))
    assert_same(arrays(tf.function(rows)(examples(x))), arrays(rows(examples(x))))


def test_a_square_has_rows_and_columns() -> None:
    """What there is one of for each row may have the shape of what there is for each column."""
    x = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)

    def rows(x: Any) -> list[Any]:
        sums = tf.reduce_sum(tf.exp(x), -1)
        columns = x * sums + tf.reduce_sum(x, -1, keepdims=True)
        return [columns, tf.reduce_sum(columns, -1) * sums]

    assert "fused_rows" in str(tf.function(rows).explain(tf.constant(x)))
    assert_same(arrays(tf.function(rows)(tf.constant(x))), arrays(rows(tf.constant(x))))


def test_an_update_by_rows_is_written_where_they_are_read() -> None:
    """Rows of a variable are normalized in place; a row that is read by all is not."""
    start = np.random.default_rng(0).normal(size=(40, 17)).astype(np.float32)
    v, w = tf.Variable(start), tf.Variable(start[0])

    @tf.function
    def step(x: Any) -> None:
        total = tf.reduce_sum(v * v, -1, keepdims=True)
        v.assign(v * tf.math.rsqrt(total) + w * x)

    step(tf.constant(0.5))
    total = (start * start).sum(-1, keepdims=True)
    np.testing.assert_allclose(v.numpy(), start / np.sqrt(total) + start[0] * 0.5, rtol=1e-5)


def test_a_gradient_that_rows_of_it_change_is_not_cut_into_blocks() -> None:
    """The update of a large weight goes block by block, but not through its rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 128)).astype(np.float32)
    start = rng.normal(size=(128, 513)).astype(np.float32)

    def trained() -> np.ndarray:
        v = tf.Variable(start)

        @tf.function
        def step(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.tanh(tf.matmul(x, v)))
            g = tape.gradient(loss, v)
            v.assign_sub(g - tf.reduce_mean(g, -1, keepdims=True))

        step(examples(x))
        return v.numpy()

    found = trained()
    _trace.OPTIONS.fuse_elementwise = False
    np.testing.assert_array_equal(found, trained())


def test_long_rows_are_left_to_their_own_kernels() -> None:
    x = examples(np.ones((2, 20000), np.float32))
    plan = str(tf.function(lambda x: x - tf.reduce_sum(tf.exp(x), -1, keepdims=True)).explain(x))
    assert "fused_rows" not in plan


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("labels_dtype", ["int32", "int64", "uint8"])
@pytest.mark.parametrize(("on", "off", "dtype"), [(0.9, 0.1, "float32"), (True, False, "bool")])
def test_one_hot_rows_are_made_where_they_are_read(
    length: int, labels_dtype: str, on: Any, off: Any, dtype: str
) -> None:
    """Also of labels that name no class, and of labels that the loop makes itself."""
    x, weights, _, _ = numbers(length)
    labels = np.random.default_rng(length).integers(0, min(length + 2, 256), (5, 3))
    labels[0, 0] = 0
    labels[1, 1] = 255 if labels_dtype == "uint8" else -1

    def step(x: Any, labels: Any, weights: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            chosen = tf.one_hot(labels, length, on, off, dtype=dtype)
            again = tf.one_hot(tf.cast(labels, "int32") + 1, length, on, off, dtype=dtype)
            if dtype == "bool":
                targets = tf.cast(tf.math.logical_or(chosen, again), x.dtype)
            else:
                targets = chosen - again
            each = -tf.reduce_sum(targets * tf.nn.log_softmax(x), -1)
            total = tf.reduce_sum(each * weights[..., 0])
        return [each, tape.gradient(total, x)]

    made = [examples(x), examples(labels.astype(labels_dtype)), examples(weights)]
    fused = tf.function(step)
    found = arrays(fused(*made))
    plan = str(fused.explain(*made))
    assert "one_hot" in plan
    assert not re.search(r"%\d+ one_hot", plan)  # no node of its own
    assert_same(found, arrays(step(*made)))


def test_one_hot_rows_of_smoothed_labels_are_nowhere_in_memory() -> None:
    """The loss of a Transformer: all its rows, forward and back, and no array of the targets."""
    words, tokens = 8192, 40
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, tokens, words)).astype(np.float32)
    labels = rng.integers(0, words, (4, tokens)).astype(np.int32)

    def step(x: Any, labels: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            smooth = tf.one_hot(labels, words, 0.9, 0.1 / (words - 1))
            each = tf.nn.softmax_cross_entropy_with_logits(smooth, x)
            weights = tf.cast(labels != 0, tf.float32)
            loss = tf.reduce_sum(each * weights) / tf.reduce_sum(weights)
        return [loss, tape.gradient(loss, x)]

    fused = tf.function(step)
    found = arrays(fused(examples(x), examples(labels)))
    plan = str(fused.explain(examples(x), examples(labels)))
    assert not re.search(r"%\d+ one_hot", plan)
    assert_same(found, arrays(step(examples(x), examples(labels))))


def test_a_loss_per_token_goes_forward_and_back_in_one_pass_over_its_rows() -> None:
    """What the gradient is spread over has the type of the weights, not of the losses."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 5, 300)).astype(np.float32)
    labels = rng.integers(0, 300, (8, 5)).astype(np.int32)

    def step(x: Any, labels: Any) -> list[Any]:
        context = tf.distribute.get_replica_context()
        with tf.GradientTape() as tape:
            tape.watch(x)
            each = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 300), x)
            weights = tf.cast(labels != 0, tf.float32)
            tokens = context.all_reduce("SUM", tf.reduce_sum(weights))
            loss = tf.reduce_sum(each * weights) / tokens
        return [context.all_reduce("SUM", loss), tape.gradient(loss, x)]

    two = strategy(2)
    parts = (shares(x[:4], x[4:]), shares(labels[:4], labels[4:]))
    plan = str(two.explain(step, args=parts))
    assert plan.count("log_softmax") == plan.count("fused_rows") == 1, plan
    loss, dx = (local(v) for v in two.run(step, args=parts))
    alone = [local(v)[0] for v in strategy(1).run(step, args=(shares(x), shares(labels)))]
    np.testing.assert_array_equal(loss[0], alone[0])
    np.testing.assert_array_equal(np.concatenate(dx), alone[1])


@pytest.mark.parametrize("name", ["fused_elementwise", "fused_rows"])
def test_a_call_of_a_fused_operation_is_an_error(name: str) -> None:
    with pytest.raises(TypeError, match=rf"\[{name}\] passes create the operation"):
        getattr(_core.ops, name)(tf.ones([2]), names="exp")
