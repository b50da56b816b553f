"""Diagonals, bands, masks and grids are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import examples

import samegrad as tf

TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
RNG = np.random.default_rng(0)


def called(fn, traced, *values):
    return (tf.function(fn) if traced else fn)(*map(tf.constant, values)).numpy()


@TRACED
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("k", [0, 1, -1, 3, -2])
@pytest.mark.parametrize("shape", [(3,), (1,), (0,), (2, 3), (2, 1, 4)])
def test_a_diagonal_is_put_where_numpy_puts_it(shape, k, dtype, traced):
    x = RNG.integers(1, 9, size=shape).astype(dtype)
    found = called(lambda v: tf.linalg.diag(v, k=k), traced, x)
    side = shape[-1] + abs(k)
    expected = np.zeros((*shape[:-1], side, side), dtype)
    for part in np.ndindex(*shape[:-1]):
        expected[part] = np.diag(x[part], k)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_a_diagonal_of_a_matrix_that_is_not_square():
    found = tf.linalg.diag([1.0, 2.0], k=-1, num_cols=4, padding_value=9).numpy()
    np.testing.assert_array_equal(found, [[9, 9, 9, 9], [1, 9, 9, 9], [9, 2, 9, 9]])
    assert tf.linalg.diag([1.0, 2.0], num_rows=5).numpy().shape == (5, 2)


@TRACED
@pytest.mark.parametrize("k", [0, 1, -1, -2])
@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (2, 4, 3), (3, 2)])
def test_the_part_on_a_diagonal_is_numpys(shape, k, traced):
    x = RNG.normal(size=shape)
    found = called(lambda v: tf.linalg.diag_part(v, k=k), traced, x)
    np.testing.assert_array_equal(found, np.diagonal(x, k, -2, -1))
    np.testing.assert_allclose(called(tf.linalg.trace, traced, x), np.trace(x, 0, -2, -1))


@TRACED
@pytest.mark.parametrize("lower", [-1, 0, 1, 9])
@pytest.mark.parametrize("upper", [-1, 0, 2])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (0, 2)])
def test_a_band_is_numpys(shape, lower, upper, traced):
    x = RNG.normal(size=shape)
    expected = np.triu(x, -lower) if lower >= 0 else x
    expected = np.tril(expected, upper) if upper >= 0 else expected
    found = called(lambda v: tf.linalg.band_part(v, lower, upper), traced, x)
    np.testing.assert_array_equal(found, expected)


def test_nan_outside_is_left_out():
    x = np.float64([[1.0, np.nan], [np.inf, 2.0]])
    np.testing.assert_array_equal(tf.linalg.band_part(x, 0, 0).numpy(), np.diag([1.0, 2.0]))
    np.testing.assert_array_equal(tf.linalg.diag_part(x).numpy(), [1.0, 2.0])
    assert float(tf.linalg.trace(x)) == 3.0


def test_derivatives_agree_with_differences():
    x = RNG.normal(size=(2, 3, 3))
    check_derivatives(lambda v: tf.square(tf.linalg.band_part(v, 1, 0)), x)
    check_derivatives(lambda v: tf.square(tf.linalg.diag(v, k=-1)), x)
    check_derivatives(lambda v: tf.square(tf.linalg.diag_part(v, k=1)), x)
    check_derivatives(lambda v: tf.square(tf.linalg.trace(v)), x)
    check_derivatives(lambda v: tf.square(tf.boolean_mask(v, [True, False])), x)
    check_derivatives(lambda v: tf.math.l2_normalize(v, axis=-1), x)


def test_matrices_of_examples_are_traced_once():
    @tf.function
    def fn(x):
        return tf.linalg.diag(tf.linalg.diag_part(tf.linalg.band_part(x, 0, 0)))

    for n in (2, 5):
        x = RNG.normal(size=(n, 3, 3))
        np.testing.assert_array_equal(fn(examples(x)).numpy(), x * np.eye(3))


@pytest.mark.parametrize(("shape", "mask", "axis"), [
    ((4,), (4,), None), ((4, 3), (4,), None), ((4, 3), (3,), 1), ((4, 3, 2), (3, 2), 1),
    ((4, 3, 2), (4, 3), None), ((4, 3), (4, 3), 0), ((4, 3, 2), (2,), -1), ((0, 3), (0,), None),
])  # fmt: skip
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_mask_chooses_what_numpy_chooses(shape, mask, axis, share):
    x, holds = RNG.normal(size=shape), RNG.uniform(size=mask) < share
    key = (slice(None),) * ((axis or 0) % len(shape))
    found = tf.boolean_mask(x, holds, axis=axis).numpy()
    np.testing.assert_array_equal(found, x[(*key, holds)])


@TRACED
@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(3,), (3, 2), (3, 2, 4), (1, 0), ()])
def test_a_grid_is_numpys(sizes, indexing, traced):
    vectors = [RNG.normal(size=n) for n in sizes]
    run = (tf.function if traced else lambda f: f)(lambda *v: tf.meshgrid(*v, indexing=indexing))
    found = run(*map(tf.constant, vectors))
    for got, expected in zip(found, np.meshgrid(*vectors, indexing=indexing), strict=True):
        np.testing.assert_array_equal(got.numpy(), expected)


@TRACED
@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid_flattens_matrices_and_scalars(indexing, traced):
    given = [np.arange(4.0).reshape(2, 2), np.arange(3.0), np.float64(2.0)]
    run = (tf.function if traced else lambda f: f)(lambda *v: tf.meshgrid(*v, indexing=indexing))
    found = run(*map(tf.constant, given))
    for got, expected in zip(found, np.meshgrid(*given, indexing=indexing), strict=True):
        np.testing.assert_array_equal(got.numpy(), expected)


def test_a_new_axis_is_one_of_size_1():
    x = tf.constant([1.0, 2.0])
    assert x[:, tf.newaxis].shape == (2, 1) and x[tf.newaxis].shape == (1, 2)


def test_normalized_vectors_have_length_1():
    x = RNG.normal(size=(3, 4))
    for axis in (None, 0, 1, -1, (0, 1), [1]):
        expected = x / np.linalg.norm(x, axis=tuple(axis) if isinstance(axis, list) else axis,
                                      keepdims=True)  # fmt: skip
        found = tf.math.l2_normalize(x, axis=axis).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert tf.linalg.l2_normalize is tf.math.l2_normalize is tf.nn.l2_normalize


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: tf.linalg.diag(1.0), ValueError, "at least 1 axis"),
    (lambda: tf.linalg.diag([1.0], k=(0, 1)), ValueError, "that of 2 diagonals"),
    (lambda: tf.linalg.diag([1.0, 2.0], num_rows=1), ValueError, "does not have 2 elements"),
    (lambda: tf.linalg.diag([1.0], num_rows=3, num_cols=3), ValueError, "does not have 1 elements"),
    (lambda: tf.linalg.diag_part([1.0]), ValueError, "at least 2 axes"),
    (lambda: tf.linalg.diag_part([[1.0]], k=1), ValueError, "k must lie between 0 and 0: got 1"),
    (lambda: tf.linalg.trace([1.0]), ValueError, "at least 2 axes"),
    (lambda: tf.linalg.band_part([1.0], 0, 0), ValueError, "at least 2 axes"),
    (lambda: tf.linalg.band_part([[1.0]], 0.5, 0), TypeError, "num_lower"),
    (lambda: tf.boolean_mask([1.0, 2.0], [True]), ValueError, "from axis 0 on"),
    (lambda: tf.boolean_mask([1.0], [True, False]), ValueError, "the mask must have"),
    (lambda: tf.boolean_mask([1.0], True), ValueError, "the mask must have"),
    (lambda: tf.boolean_mask([1.0], [True], axis=1), ValueError, "axis must lie in"),
    (lambda: tf.distribute.MirroredStrategy(replicas=2).run(
        lambda m: tf.boolean_mask([1.0], m), args=(tf.constant([True]),)
    ), TypeError, "use the mask as weights"),
    (lambda: tf.meshgrid([1.0], indexing="yx"), ValueError, "'xy' or 'ij': got"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
