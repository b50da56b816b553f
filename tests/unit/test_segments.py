"""Segments and counts are NumPy's; sums over examples are bitwise identical to one device."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import examples, local, shares, strategy

import samegrad as tf

TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
REDUCED = {
    "sum": (np.sum, 0), "mean": (np.mean, 0), "max": (np.max, 0), "min": (np.min, 0),
    "prod": (np.prod, 1),
}  # fmt: skip
BAD = tf.errors.InvalidArgumentError


def result_dtype(name: str, dtype: np.dtype) -> np.dtype:
    """Means of integers are float64, as TensorFlow's unsorted ones."""
    return np.dtype(np.float64) if name == "mean" and dtype.kind in "iu" else dtype


def numpys(name: str, data: np.ndarray, ids: np.ndarray, count: int, of_none: Any) -> np.ndarray:
    rest = data.shape[ids.ndim :]
    rows, flat = data.reshape(ids.size, *rest), ids.reshape(-1)
    result = np.full((count, *rest), of_none, result_dtype(name, data.dtype))
    for segment in set(flat[flat >= 0].tolist()):
        own = rows[flat == segment]
        if name == "sqrt_n":
            result[segment] = own.sum(0) / np.sqrt(len(own))
        else:
            result[segment] = REDUCED[name][0](own, axis=0)
    return result


def of_none(name: str, dtype: str) -> Any:
    if name in ("max", "min"):
        limits = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
        return limits.min if name == "max" else limits.max
    return 1 if name == "prod" else 0


def unsorted(name: str) -> Any:
    return getattr(tf.math, f"unsorted_segment_{name}")


@TRACED
@pytest.mark.parametrize(("name", "dtype"), [
    *itertools.product(REDUCED, ["float32", "float64", "int32", "int64"]),
    ("sqrt_n", "float32"), ("sqrt_n", "float64"),
])  # fmt: skip
@pytest.mark.parametrize(("shape", "axes"), [
    ((9,), 1), ((9, 2), 1), ((3, 4, 2), 2), ((0, 2), 1), ((1,), 1), ((5, 0), 1), ((2, 3), 2),
    ((), 0),
])  # fmt: skip
def test_a_segment_is_reduced_as_by_numpy(name, dtype, shape, axes, traced):
    rng = np.random.default_rng(0)
    data = rng.integers(1, 6, size=shape).astype(dtype)
    ids = rng.integers(-1, 4, size=shape[:axes]).astype(np.int32)
    run = (tf.function if traced else lambda f: f)(lambda x, i: unsorted(name)(x, i, 6))
    found = run(tf.constant(data), tf.constant(ids)).numpy()
    assert found.dtype == result_dtype(name, data.dtype)
    expected = numpys(name, data, ids, 6, of_none(name, dtype))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", REDUCED)
@pytest.mark.parametrize("ids", [[0, 0, 1, 1, 1, 4], [2, 2, 2, 2, 2, 2], [0, 1, 2, 3, 4, 5]])
def test_sorted_segments_are_reduced_as_by_numpy(name, ids):
    data = np.random.default_rng(0).normal(size=(6, 2))
    found = getattr(tf.math, f"segment_{name}")(data, ids).numpy()
    expected = numpys(name, data, np.array(ids), ids[-1] + 1, REDUCED[name][1])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    empty = getattr(tf.math, f"segment_{name}")(data[:0], np.int32([]))
    assert empty.numpy().shape == (0, 2)


@pytest.mark.parametrize("name", [*REDUCED, "sqrt_n"])
def test_many_rows(name):
    rng = np.random.default_rng(0)
    data, ids = rng.uniform(0.99, 1.01, size=100_000), rng.integers(9, size=100_000)
    found = unsorted(name)(data, ids, 9).numpy()
    np.testing.assert_allclose(found, numpys(name, data, ids, 9, 0), rtol=1e-9)


@TRACED
@pytest.mark.parametrize(("name", "zeros"), [
    *((name, 0) for name in (*REDUCED, "sqrt_n")), ("prod", 1), ("prod", 2), ("prod", 6),
])  # fmt: skip
def test_derivatives_agree_with_differences(name, traced, zeros):
    data = np.random.default_rng(1).normal(size=(6, 2))
    data[:zeros] = 0.0
    ids = np.int32([2, 0, 2, -1, 2, 0])

    def fn(x: Any) -> Any:
        y = unsorted(name)(x, ids, 4)
        return tf.square(tf.gather(y, [0, 2]))

    check_derivatives(fn, data, traced=traced)
    sizes = np.int32([0, 0, 1, 1, 1, 2])
    if name != "sqrt_n" and not traced:
        of_sorted = getattr(tf.math, f"segment_{name}")
        check_derivatives(lambda x: tf.square(of_sorted(x, sizes)), data)


def test_ties_share_the_gradient():
    x = tf.constant([1.0, 3.0, 3.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.unsorted_segment_max(x, [0, 0, 0, 1], 3)
    weights = tf.constant([1.0, 10.0, 100.0])
    np.testing.assert_array_equal(tape.gradient(y, x, weights).numpy(), [0.0, 0.5, 0.5, 10.0])


def test_nan_and_infinity_stay_in_their_segment():
    data = np.float64([np.nan, 1.0, np.inf, 2.0, -np.inf, 3.0])
    ids = np.int32([0, 0, 1, 1, 2, 3])
    with np.errstate(invalid="ignore"):
        for name in (*REDUCED, "sqrt_n"):
            found = unsorted(name)(data, ids, 5).numpy()
            expected = numpys(name, data, ids, 5, of_none(name, "float64"))
            np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("counts", [(6, 6), (3, 3, 3, 3), (12,)])
def test_sums_of_segments_over_examples_have_the_bits_of_one_device(counts):
    rng = np.random.default_rng(0)
    data, ids = rng.normal(size=(12, 3)).astype(np.float32), rng.integers(-1, 4, size=12)
    replicas = strategy(len(counts))
    cuts = np.cumsum(counts)[:-1]

    def each(x, i):
        context = tf.distribute.get_replica_context()
        hits = tf.math.bincount(tf.maximum(i, 0), minlength=4, maxlength=4)
        parts = (tf.math.unsorted_segment_sum(x, i, 4), hits,
                 tf.math.confusion_matrix(tf.maximum(i, 0), tf.maximum(-i, 0), 4))  # fmt: skip
        return [context.all_reduce("sum", part) for part in parts]

    step = tf.function(lambda x, i: replicas.run(each, (x, i)))
    if len(counts) == 1:
        parts = examples(data), examples(ids)
    else:
        parts = shares(*np.split(data, cuts)), shares(*np.split(ids, cuts))
    sums, hits, matrix = step(*parts)
    one = tf.function(lambda x, i: tf.math.unsorted_segment_sum(x, i, 4))
    expected = one(examples(data), examples(ids)).numpy()
    true, taken = np.maximum(ids, 0), np.maximum(-ids, 0)
    for k in range(len(counts)):
        np.testing.assert_array_equal(local(sums)[k], expected)
        np.testing.assert_array_equal(local(hits)[k], np.bincount(true, minlength=4))
        table = np.zeros((4, 4), int)
        np.add.at(table, (true, taken), 1)
        np.testing.assert_array_equal(local(matrix)[k], table)


@pytest.mark.parametrize("name", [*REDUCED, "sqrt_n"])
def test_segments_of_examples_are_each_replicas_own(name):
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(n, 2)) for n in (5, 0, 2)]
    ids = [rng.integers(3, size=n) for n in (5, 0, 2)]
    replicas = strategy(3)
    step = tf.function(lambda x, i: replicas.run(lambda a, b: unsorted(name)(a, b, 3), (x, i)))
    found = local(step(shares(*data), shares(*ids)))
    for got, x, i in zip(found, data, ids, strict=True):
        expected = numpys(name, x, i, 3, of_none(name, "float64"))
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_counts_are_numpys(dtype):
    x = np.random.default_rng(0).integers(9, size=1000).astype(dtype)
    weights = np.random.default_rng(1).normal(size=1000)
    np.testing.assert_array_equal(tf.math.bincount(x).numpy(), np.bincount(x))
    found = tf.math.bincount(x, minlength=12, dtype=tf.int64).numpy()
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.bincount(x, minlength=12))
    np.testing.assert_array_equal(tf.math.bincount(x, maxlength=4).numpy(), np.bincount(x)[:4])
    np.testing.assert_allclose(tf.math.bincount(x, weights).numpy(), np.bincount(x, weights))
    found = tf.math.bincount(x, binary_output=True, minlength=12).numpy()
    np.testing.assert_array_equal(found, np.minimum(np.bincount(x, minlength=12), 1))
    assert tf.math.bincount(x[:0]).numpy().shape == (0,)
    lines = x.reshape(10, 100)
    expected = [np.bincount(line, minlength=9) for line in lines]
    np.testing.assert_array_equal(tf.math.bincount(lines, axis=-1).numpy(), expected)
    found = tf.math.bincount(lines, weights.reshape(10, 100), axis=-1, maxlength=5).numpy()
    expected = [np.bincount(i, w, minlength=9)[:5]
                for i, w in zip(lines, weights.reshape(10, 100), strict=True)]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_counts_of_examples_are_traced_where_their_number_is_given():
    x = np.random.default_rng(0).integers(4, size=(6, 5))
    run = tf.function(lambda i: tf.math.bincount(i, minlength=4, maxlength=4, axis=-1))
    expected = [np.bincount(line, minlength=4) for line in x]
    np.testing.assert_array_equal(run(examples(x)).numpy(), expected)


@TRACED
def test_a_confusion_matrix_counts_pairs(traced):
    labels, taken = np.int32([0, 1, 2, 1, 1]), np.int64([0, 2, 2, 2, 1])
    weights = np.float32([1, 2, 3, 4, 0.5])
    expected = np.zeros((4, 4), np.float32)
    np.add.at(expected, (labels, taken), weights)
    run = (tf.function if traced else lambda f: f)(
        lambda a, b, w: tf.math.confusion_matrix(a, b, 4, w, tf.float32)
    )
    found = run(*map(tf.constant, (labels, taken, weights))).numpy()
    np.testing.assert_array_equal(found, expected)
    if not traced:
        counts = tf.math.confusion_matrix(labels, taken).numpy()
        assert counts.dtype == np.int32 and counts.shape == (3, 3) and counts.sum() == 5


def traced(fn: Any) -> Any:
    return tf.distribute.MirroredStrategy(replicas=2).run(fn, args=(tf.constant([0, 1]),))


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: tf.math.segment_sum([1.0, 2.0], [1, 0]), BAD, "ascend: got 0 at position 1"),
    (lambda: tf.math.segment_sum([1.0, 2.0], [-1, 0]), BAD, "ascend: got -1 at position 0"),
    (lambda: tf.math.segment_sum([1.0, 2.0], [[0, 0]]), ValueError, "on one axis"),
    (lambda: tf.math.segment_sum([1.0], [0, 0]), ValueError, "must begin with that of segment_ids"),
    (lambda: traced(lambda i: tf.math.segment_max(i, i)), TypeError,
     "use unsorted_segment_max with num_segments"),
    (lambda: tf.math.unsorted_segment_sum([1.0, 2.0], [0, 3], 3), BAD,
     r"\[0, 3\): got 3 at position \(1, 0\)"),
    (lambda: tf.math.unsorted_segment_sum([1.0], [0], -1), ValueError, "0 or more: got"),
    (lambda: tf.math.unsorted_segment_sum([1.0], [0.5], 1), TypeError, "int32 or int64"),
    (lambda: tf.math.unsorted_segment_sum([True], [0], 1), TypeError, "bool"),
    (lambda: tf.math.bincount([-1]), BAD, "got -1 at position"),
    (lambda: tf.math.bincount([0.5]), TypeError, "int32 or int64"),
    (lambda: tf.math.bincount([1], axis=1), ValueError, "axis is None, 0 or -1: got 1"),
    (lambda: tf.math.bincount([1], [1.0, 2.0]), ValueError, "weights must have the shape of arr"),
    (lambda: tf.math.bincount([1], [1.0], binary_output=True), ValueError, "got both"),
    (lambda: tf.math.bincount([1], minlength=-1), ValueError, "are 0 or more: got -1"),
    (lambda: traced(tf.math.bincount), TypeError, "give minlength and maxlength the same number"),
    (lambda: tf.math.confusion_matrix([0, 2], [0, 1], 2), BAD, r"\[0, 2\): got 2 at position"),
    (lambda: tf.math.confusion_matrix([0, 1], [0]), ValueError, "have one shape"),
    (lambda: traced(lambda i: tf.math.confusion_matrix(i, i)), TypeError, "give num_classes"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
