"""Sorting, the largest and searching are NumPy's; equal elements keep their order, NaN is last."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import examples, local, shares, strategy

import samegrad as tf

TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
DIRECTION = pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Few different ones, so that many are equal; both ends of the range."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(2, size=shape).astype(bool)
    if dtype.startswith("float"):
        some = np.array([-np.inf, -2.5, -0.0, 0.0, 1e-45, 1.0, 3e38, np.inf, np.nan])
    else:
        limits = np.iinfo(dtype)
        some = np.array([limits.min, 0, 1, 100, limits.max])
    return rng.choice(some.astype(dtype), size=shape)


def numpys_order(x: np.ndarray, axis: int, direction: str) -> np.ndarray:
    """NumPy's stable order; descending: by ranks, NaN last."""
    if direction == "ASCENDING":
        return np.argsort(x, axis=axis, kind="stable")
    ranks = -np.unique(x, return_inverse=True)[1].reshape(x.shape)
    ranks[x != x] = 1
    return np.argsort(ranks, axis=axis, kind="stable")


@DTYPES
@DIRECTION
@TRACED
@pytest.mark.parametrize(("shape", "axis"), [
    ((7,), 0), ((1,), 0), ((0,), 0), ((3, 40), -1), ((40, 3), 0), ((2, 600, 3), 1), ((3, 0), 1),
    ((0, 3), 1), ((2, 5, 4), -2),
])  # fmt: skip
def test_an_order_is_numpys(dtype, direction, shape, axis, traced):
    x = numbers(dtype, shape)
    wrapped = tf.function if traced else lambda f: f
    expected = numpys_order(x, axis, direction)
    order = wrapped(lambda v: tf.argsort(v, axis, direction))(tf.constant(x)).numpy()
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, expected)
    values = wrapped(lambda v: tf.sort(v, axis, direction))(tf.constant(x)).numpy()
    assert values.dtype == x.dtype
    np.testing.assert_array_equal(values, np.take_along_axis(x, expected, axis))


@DTYPES
@DIRECTION
def test_a_long_line_is_numpys(dtype, direction):
    rng = np.random.default_rng(1)
    x = numbers(dtype, (100_000,))
    if dtype.startswith("float"):
        x = np.where(rng.uniform(size=x.shape) < 0.9, rng.normal(size=x.shape), x).astype(dtype)
    elif dtype != "bool":
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, size=x.shape, dtype=dtype, endpoint=True)
    order = tf.argsort(tf.constant(x), direction=direction).numpy()
    np.testing.assert_array_equal(order, numpys_order(x, 0, direction))


@DIRECTION
@TRACED
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_derivatives_flow_to_where_the_elements_were(direction, axis, traced):
    x = np.array([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
    check_derivatives(
        lambda v: tf.square(tf.sort(v, axis=axis, direction=direction)), x, traced=traced
    )
    check_derivatives(lambda v: tf.square(tf.math.top_k(v, k=2).values), x, traced=traced)


@DTYPES
@TRACED
@pytest.mark.parametrize("k", [0, 1, 2, 5, 40])
def test_the_largest_are_the_first_of_the_descending_order(dtype, k, traced):
    x = numbers(dtype, (3, 40))
    found = (tf.function if traced else lambda f: f)(lambda v: tf.math.top_k(v, k))(tf.constant(x))
    expected = numpys_order(x, -1, "DESCENDING")[:, :k]
    assert found.indices.numpy().dtype == np.int32
    np.testing.assert_array_equal(found.indices.numpy(), expected)
    np.testing.assert_array_equal(found.values.numpy(), np.take_along_axis(x, expected, -1))


@pytest.mark.parametrize("k", [1, 10, 1000, 50_000, 100_000])
def test_the_largest_of_many(k):
    x = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    values, indices = tf.nn.top_k(x, k, index_type=tf.int64)
    np.testing.assert_array_equal(values.numpy(), np.sort(x)[::-1][:k])
    assert indices.numpy().dtype == np.int64
    np.testing.assert_array_equal(x[indices.numpy()], values.numpy())


@TRACED
@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3, 9])
def test_targets_among_the_largest(k, traced):
    scores = np.float32([[0.1, 0.9, 0.5], [0.5, 0.5, 0.5], [np.nan, 1, 2], [1, np.inf, 3],
                         [0.3, 0.2, 0.1], [0.3, 0.2, 0.1]])  # fmt: skip
    targets = np.int32([2, 1, 2, 2, 3, -1])
    run = (tf.function if traced else lambda f: f)(lambda t, s: tf.math.in_top_k(t, s, k))
    found = run(tf.constant(targets), tf.constant(scores)).numpy()
    np.testing.assert_array_equal(found, [k > 1, k > 0, False, False, False, False])
    assert tf.nn.in_top_k(targets[:0], scores[:0], 1).numpy().shape == (0,)


@TRACED
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_a_search_is_numpys(side, dtype, traced):
    line = np.sort(numbers(dtype, (30,)))
    values = numbers(dtype, (2, 3, 4), seed=1)
    run = (tf.function if traced else lambda f: f)(lambda s, v: tf.searchsorted(s, v, side))
    found = run(tf.constant(line), tf.constant(values)).numpy()
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.searchsorted(line, values, side))
    lines, of_each = np.sort(numbers(dtype, (3, 9))), numbers(dtype, (3, 5), seed=2)
    found = run(tf.constant(lines), tf.constant(of_each)).numpy()
    expected = [np.searchsorted(a, b, side) for a, b in zip(lines, of_each, strict=True)]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(0,), (1,), (100_000,)])
def test_searches_in_lines_of_any_length(shape):
    line = np.sort(np.random.default_rng(0).normal(size=shape))
    values = np.random.default_rng(1).normal(size=1000)
    found = tf.searchsorted(line, values, out_type=tf.int64).numpy()
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.searchsorted(line, values))
    assert tf.searchsorted(line, values[:0]).numpy().shape == (0,)


@pytest.mark.parametrize("counts", [(5, 4, 3), (6, 0, 6), (3, 3, 3, 3)])
def test_orders_inside_examples_are_the_same_on_any_replicas(counts):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(12, 9)).astype(np.float32), rng.integers(9, size=12)
    cuts = np.cumsum(counts)[:-1]
    replicas = strategy(len(counts))

    def each(rows, targets):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            y = tf.square(tf.sort(rows)) + tf.gather(tf.math.top_k(rows, 3).values, [2], axis=1)
        places = tf.searchsorted(tf.constant([-1.0, 0.0, 1.0]), rows)
        return y, tape.gradient(y, rows), tf.math.in_top_k(targets, rows, 3), places

    step = tf.function(lambda v, u: replicas.run(each, (v, u)))
    found = step(shares(*np.split(x, cuts)), shares(*np.split(t, cuts)))
    for got, expected in zip(found, each(examples(x), examples(t)), strict=True):
        np.testing.assert_array_equal(np.concatenate(local(got)), expected.numpy())


def test_along_the_examples_each_replica_orders_its_own():
    parts = [np.float64([3, 1, 2]), np.float64([2, 1]), np.float64([])]
    replicas = strategy(3)
    found = tf.function(lambda v: replicas.run(lambda x: (tf.sort(x, 0), tf.argsort(x)), (v,)))(
        shares(*parts)
    )
    for values, order, part in zip(*map(local, found), parts, strict=True):
        np.testing.assert_array_equal(values, np.sort(part))
        np.testing.assert_array_equal(order, np.argsort(part))


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: tf.sort(1.0), ValueError, "axis must lie in"),
    (lambda: tf.sort([1.0], axis=1), ValueError, "axis must lie in"),
    (lambda: tf.argsort([1.0], axis=-2), ValueError, "axis must lie in"),
    (lambda: tf.sort([1.0], direction="up"), ValueError, "one of ASCENDING, DESCENDING"),
    (lambda: tf.sort(["a"]), TypeError, r"\[sort\]"),
    (lambda: tf.math.top_k([1.0], 2), ValueError, r"k must lie between 0 .*: got 2 for shape \(1,"),
    (lambda: tf.math.top_k([1.0], -1), ValueError, "k must lie between 0 .*: got -1"),
    (lambda: tf.math.top_k(1.0), ValueError, "at least 1 axis"),
    (lambda: tf.math.top_k([1.0], 0.5), TypeError, "k"),
    (lambda: tf.math.in_top_k([[0]], [[1.0]], 1), ValueError, r"targets has shape \[rows\]"),
    (lambda: tf.math.in_top_k([0, 0], [[1.0]], 1), ValueError, "indices"),
    (lambda: tf.searchsorted([1.0], [1.0], "middle"), ValueError, "one of left, right"),
    (lambda: tf.searchsorted([[1.0]], [1.0]), ValueError, "must have the leading axes"),
    (lambda: tf.searchsorted([[1.0]], [[1.0], [2.0]]), ValueError, "must have the leading axes"),
    (lambda: tf.searchsorted(tf.constant([1.0]), tf.constant([1])), TypeError, "dtype"),
    (lambda: tf.searchsorted(1.0, 1.0), ValueError, "at least 1 axis"),
])  # fmt: skip
def test_what_has_no_order_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
