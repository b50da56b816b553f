"""keras.backend.linalg: matrices agree with NumPy, their gradients with differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backend_checks import check_gradients, same_when_traced

import samegrad as tf
from samegrad._keras import linalg

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(2, 3, 3))
TALL = RNG.normal(size=(2, 4, 3))
POSITIVE = SQUARE @ np.swapaxes(SQUARE, 1, 2) + np.eye(3)
COLUMNS = RNG.normal(size=(2, 3, 2))


def _symmetric(x: Any) -> Any:
    return (x + tf.transpose(x, [0, 2, 1])) * 0.5


def test_inverses_determinants_and_equations_are_those_of_numpy() -> None:
    np.testing.assert_allclose(linalg.inv(SQUARE), np.linalg.inv(SQUARE))
    np.testing.assert_allclose(linalg.det(SQUARE), np.linalg.det(SQUARE))
    np.testing.assert_allclose(linalg.solve(SQUARE, COLUMNS), np.linalg.solve(SQUARE, COLUMNS))
    column = linalg.solve(SQUARE, COLUMNS[..., 0])
    np.testing.assert_allclose(column, np.linalg.solve(SQUARE, COLUMNS)[..., 0])
    for lower in (False, True):
        part = np.tril(SQUARE) if lower else np.triu(SQUARE)
        found = linalg.solve_triangular(SQUARE, COLUMNS, lower=lower)
        np.testing.assert_allclose(found, np.linalg.solve(part, COLUMNS))
    one = linalg.solve(SQUARE[0], COLUMNS)
    np.testing.assert_allclose(one, np.linalg.solve(SQUARE[0], COLUMNS))


@pytest.mark.parametrize("name", ["inv", "det", "cholesky"])
def test_matrices_of_traced_examples_are_those_of_values(name: str) -> None:
    same_when_traced(getattr(linalg, name), POSITIVE, tolerance=1e-9)

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(linalg, name)(x)
        return tape.gradient(y, x)

    same_when_traced(lambda x: slope(tf.convert_to_tensor(x)), POSITIVE, tolerance=1e-9)


def test_traced_rows_are_exchanged_for_a_pivot() -> None:
    x = np.array([[[0.0, 2.0], [3.0, 1.0]], [[1e-20, 1.0], [1.0, 1.0]]])
    same_when_traced(linalg.inv, x)
    same_when_traced(linalg.det, x)
    same_when_traced(linalg.solve, SQUARE, COLUMNS, tolerance=1e-9)
    same_when_traced(linalg.solve_triangular, SQUARE, COLUMNS, tolerance=1e-9)


def test_cholesky_is_that_of_numpy_and_leads_to_the_inverse() -> None:
    lower = linalg.cholesky(POSITIVE)
    np.testing.assert_allclose(lower, np.linalg.cholesky(POSITIVE))
    upper = linalg.cholesky(POSITIVE, upper=True)
    for factor, is_upper in ((lower, False), (upper, True)):
        found = linalg.cholesky_inverse(factor, upper=is_upper)
        np.testing.assert_allclose(found, np.linalg.inv(POSITIVE))
    with pytest.raises(ValueError, match="positive definite"):
        linalg.cholesky(-POSITIVE)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("x", [TALL, np.swapaxes(TALL, 1, 2)])
def test_factors_make_the_matrix(x: Any, full: bool) -> None:
    u, s, vt = (part.numpy() for part in linalg.svd(x, full_matrices=full))
    size = s.shape[-1]
    np.testing.assert_allclose((u[..., :size] * s[:, None]) @ vt[:, :size], x, atol=1e-12)
    np.testing.assert_allclose(linalg.svd(x, compute_uv=False), s)
    q, r = (part.numpy() for part in linalg.qr(x, "complete" if full else "reduced"))
    np.testing.assert_allclose(q @ r, x, atol=1e-12)


def test_eigenvalues_and_pivots_are_those_of_numpy() -> None:
    w, v = (part.numpy() for part in linalg.eigh(POSITIVE))
    np.testing.assert_allclose((v * w[:, None]) @ np.swapaxes(v, 1, 2), POSITIVE)
    w, v = (part.numpy() for part in linalg.eig(POSITIVE))
    np.testing.assert_allclose(POSITIVE @ v, v * w[:, None])
    factors, pivots = (part.numpy() for part in linalg.lu_factor(TALL))
    for matrix, factor, swaps in zip(TALL, factors, pivots, strict=True):
        rows = matrix.copy()
        for i, j in enumerate(swaps):
            rows[[i, j]] = rows[[j, i]]
        lower = np.tril(factor, -1) + np.eye(4, 3)
        np.testing.assert_allclose(lower @ np.triu(factor[:3]), rows)


def test_least_squares_ranks_and_pseudo_inverses_are_those_of_numpy() -> None:
    a, b = TALL[0], RNG.normal(size=(4, 2))
    np.testing.assert_allclose(linalg.lstsq(a, b), np.linalg.lstsq(a, b, None)[0])
    np.testing.assert_allclose(linalg.lstsq(a, b[:, 0]), np.linalg.lstsq(a, b, None)[0][:, 0])
    flat = np.outer(np.arange(3.0), np.arange(3.0))
    np.testing.assert_array_equal(linalg.matrix_rank(np.stack([flat, np.eye(3)])), [1, 3])
    np.testing.assert_allclose(linalg.pinv(TALL), np.linalg.pinv(TALL))


@pytest.mark.parametrize(
    ("function", "xs"),
    [
        (linalg.inv, (SQUARE,)),
        (linalg.det, (SQUARE,)),
        (linalg.solve, (SQUARE, COLUMNS)),
        (linalg.solve, (SQUARE, COLUMNS[..., 0])),
        (linalg.solve_triangular, (SQUARE, COLUMNS)),
        (lambda x: linalg.cholesky(_symmetric(x)), (POSITIVE,)),
        (lambda x: linalg.eigh(_symmetric(x))[0], (POSITIVE,)),
        (lambda x: tf.square(linalg.eigh(_symmetric(x))[1]), (POSITIVE,)),
        (lambda x: linalg.qr(x), (TALL,)),
        (lambda x: linalg.svd(x, compute_uv=False), (TALL,)),
        (lambda x: tf.square(linalg.svd(x, full_matrices=False)[0]), (TALL,)),
        (lambda x: tf.square(linalg.svd(x, full_matrices=False)[2]), (np.swapaxes(TALL, 1, 2),)),
        (linalg.pinv, (TALL,)),
        (linalg.lstsq, (TALL[0], RNG.normal(size=(4, 2)))),
    ],
)
def test_gradients_are_those_of_differences(function: Any, xs: Any) -> None:
    check_gradients(function, *xs, tolerance=1e-5)


def test_a_second_derivative_of_an_inverse_is_that_of_differences() -> None:
    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(linalg.inv(x)))
        return tape.gradient(y, x)

    check_gradients(slope, np.eye(2) + 0.1 * SQUARE[0, :2, :2], tolerance=1e-5)


@pytest.mark.parametrize("ord", [None, 0, 1, 2, 3, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_vectors_are_those_of_numpy(ord: Any, keepdims: bool) -> None:
    for axis in (-1, 1, (0,)):
        wanted = np.linalg.norm(TALL, ord, axis if isinstance(axis, int) else axis[0], keepdims)
        np.testing.assert_allclose(linalg.norm(TALL, ord, axis, keepdims), wanted)


@pytest.mark.parametrize("ord", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_matrices_are_those_of_numpy(ord: Any, keepdims: bool) -> None:
    for axis in ((0, 1), (-1, 0), (2, 1)):
        wanted = np.linalg.norm(TALL, ord, axis, keepdims)
        np.testing.assert_allclose(linalg.norm(TALL, ord, axis, keepdims), wanted)


def test_whole_numbers_become_floats() -> None:
    x = np.array([[2, 1], [1, 3]])
    np.testing.assert_allclose(linalg.inv(x), np.linalg.inv(x), rtol=1e-6)
    assert linalg.norm(np.ones((2, 2), "int64")).dtype == "float32"


def test_what_has_no_value_or_no_gradient_says_so() -> None:
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(ValueError, match=r"\[keras.ops.eig\] is computed from values"):
        two.run(linalg.eig, args=(tf.constant(POSITIVE),))
    with pytest.raises(ValueError, match="must be real"):
        linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    with pytest.raises(ValueError, match="must have an inverse"):
        linalg.inv(np.zeros((2, 2)))
    x = tf.constant(TALL)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = linalg.lu_factor(x)[0]
    with pytest.raises(NotImplementedError, match="of square matrices only"):
        tape.gradient(y, x)


@pytest.mark.parametrize("name", ["eigh", "svd", "qr", "lu_factor", "pinv", "matrix_rank"])
def test_decompositions_of_traced_matrices_are_those_of_values(name: str) -> None:
    fn = getattr(linalg, name)
    eager, traced = fn(POSITIVE), tf.function(fn)(tf.constant(POSITIVE))
    pairs = zip(eager, traced, strict=True) if isinstance(eager, tuple) else [(eager, traced)]
    for one, other in pairs:
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_a_derivative_along_a_direction_is_that_of_differences() -> None:
    x, direction = RNG.normal(size=(2, 3))
    value, slope, other = linalg.jvp(
        lambda x: (tf.sin(x) * x, x + 1.0), (x,), (direction,), has_aux=True
    )
    np.testing.assert_allclose(value, np.sin(x) * x)
    np.testing.assert_allclose(slope, (np.cos(x) * x + np.sin(x)) * direction)
    np.testing.assert_allclose(other, x + 1)
