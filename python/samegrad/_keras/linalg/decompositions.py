"""keras.backend.linalg: Cholesky, eigenvalues, LU, QR, singular values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import samegrad as tf
from samegrad._keras.linalg.elimination import cholesky_loop
from samegrad._keras.linalg.solving import solve_triangular
from samegrad._keras.linalg.values import (
    array_of,
    floats,
    no_gradient,
    symmetric,
    tensor_like,
    triangle,
    turned,
    with_diagonal,
)
from samegrad._tensor.tensor import Tensor


def cholesky(a: Any, upper: bool = False) -> Tensor:
    """The lower triangles L with L Lᵀ = a; or their transposes.

    Raises:
        ValueError: A matrix is not positive definite.
    """
    lower: Tensor = _cholesky(floats(a))
    return turned(lower) if upper else lower


@tf.custom_gradient
def _cholesky(a: Tensor) -> Any:
    def gradient(upstream: Tensor) -> Tensor:
        lower: Tensor = _cholesky(a)
        inner = with_diagonal(triangle(tf.matmul(lower, upstream, transpose_a=True), True), 0.5)
        left = solve_triangular(turned(lower), inner, lower=False)
        return symmetric(turned(solve_triangular(turned(lower), turned(left), lower=False)))

    if a._symbolic:
        return cholesky_loop(a), gradient
    values = array_of("cholesky", a)
    try:
        return tensor_like(a, np.linalg.cholesky(values)), gradient
    except np.linalg.LinAlgError as error:
        raise ValueError(
            f"[keras.ops.cholesky] matrices must be positive definite: got {a.shape} of which one "
            "is not."
        ) from error


def cholesky_inverse(a: Any, upper: bool = False) -> Tensor:
    """The inverses of the matrices whose `cholesky` is given."""
    factor = floats(a)
    eye = tf.cast(tf.eye(int(factor.shape[-1])), factor._dtype)
    eye = tf.broadcast_to(eye, factor.shape)
    inverse = solve_triangular(factor, eye, lower=not upper)
    return tf.matmul(inverse, inverse, transpose_a=not upper, transpose_b=upper)


def eigh(a: Any) -> tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices."""
    values, vectors = _eigh(floats(a))
    return values, vectors


@tf.custom_gradient
def _eigh(a: Tensor) -> Any:
    values, vectors = np.linalg.eigh(array_of("eigh", a))

    def gradient(of_values: Tensor, of_vectors: Tensor) -> Tensor:
        w, v = _eigh(a)
        gaps = tf.expand_dims(w, -2) - tf.expand_dims(w, -1)
        inner = _inverse(gaps) * tf.matmul(v, of_vectors, transpose_a=True)
        eye = tf.cast(tf.eye(int(w.shape[-1])), w._dtype)
        inner = inner + eye * tf.expand_dims(of_values, -1)
        return symmetric(tf.matmul(tf.matmul(v, inner), v, transpose_b=True))

    return (tensor_like(a, values), tensor_like(a, vectors)), gradient


def _inverse(gaps: Tensor) -> Tensor:
    """1 / x, and 0 where x is 0."""
    apart = tf.not_equal(gaps, tf.zeros_like(gaps))
    return tf.where(apart, 1.0 / tf.where(apart, gaps, tf.ones_like(gaps)), tf.zeros_like(gaps))


def eig(a: Any) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors (columns) of matrices that have real ones.

    Raises:
        ValueError: There is a complex eigenvalue.
    """
    values, vectors = _eig(floats(a))
    return values, vectors


@tf.custom_gradient
def _eig(a: Tensor) -> Any:
    values, vectors = np.linalg.eig(array_of("eig", a))
    if np.iscomplexobj(values):
        raise ValueError(
            "[keras.ops.eig] eigenvalues must be real, as there are no complex tensors: got "
            f"{values}."
        )
    made = tensor_like(a, values), tensor_like(a, vectors)
    return made, lambda *_: no_gradient("eig", "of symmetric matrices eigh has")


def lu_factor(a: Any) -> tuple[Tensor, Tensor]:
    """L (below the diagonal, which is 1) and U in one matrix, and the pivots.

    Row i was swapped with row pivots[i], for i = 0, 1, …, as in LAPACK.
    """
    factors, pivots = _lu(floats(a))
    return factors, pivots


@tf.custom_gradient
def _lu(a: Tensor) -> Any:
    values = array_of("lu_factor", a).copy()
    *rest, rows, columns = values.shape
    flat = values.reshape(-1, rows, columns)
    pivots = np.zeros((len(flat), min(rows, columns)), np.int32)
    for matrix, swaps in zip(flat, pivots, strict=True):
        _eliminate(matrix, swaps)
    made = tensor_like(a, flat.reshape(values.shape))
    places = tf.convert_to_tensor(pivots.reshape(*rest, -1))
    return (made, places), lambda *_: no_gradient("lu_factor", "solve, inv and det have")


def _eliminate(matrix: NDArray[Any], swaps: NDArray[Any]) -> None:
    for i in range(len(swaps)):
        swaps[i] = i + int(np.argmax(np.abs(matrix[i:, i])))
        matrix[[i, swaps[i]]] = matrix[[swaps[i], i]]
        if matrix[i, i] != 0:
            matrix[i + 1 :, i] /= matrix[i, i]
        matrix[i + 1 :, i + 1 :] -= np.outer(matrix[i + 1 :, i], matrix[i, i + 1 :])


def qr(x: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Q with orthogonal columns of length 1 and upper triangles R with Q R = x.

    Args:
        x: Matrices.
        mode: "reduced": Q has as many columns as x has rows or columns, the fewer; "complete": as
            many as x has rows.

    Raises:
        ValueError: Another mode.
    """
    if mode not in {"reduced", "complete"}:
        raise ValueError(
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    q, r = _qr(floats(x), mode)
    return q, r


@tf.custom_gradient
def _qr(x: Tensor, mode: str) -> Any:
    q, r = np.linalg.qr(array_of("qr", x), mode)  # type: ignore[call-overload]

    def gradient(of_q: Tensor, of_r: Tensor) -> Tensor:
        rows, columns = x.shape[-2], x.shape[-1]
        if rows < columns or (mode == "complete" and rows != columns):
            no_gradient("qr", "that of a matrix with as many rows as columns or more has, reduced")
        q, r = _qr(x, mode)
        m = tf.matmul(r, of_r, transpose_b=True) - tf.matmul(of_q, q, transpose_a=True)
        lower = triangle(m, True)
        mirrored = lower + turned(with_diagonal(lower, 0.0))
        left = of_q + tf.matmul(q, mirrored)
        return turned(solve_triangular(r, turned(left), lower=False))

    return (tensor_like(x, q), tensor_like(x, r)), gradient


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, the singular values s, descending, and Vᵀ with U diag(s) Vᵀ = x; or s alone.

    Args:
        x: Matrices.
        full_matrices: Whether U and V are square.
        compute_uv: Whether U and Vᵀ are wanted.
    """
    matrices = floats(x)
    if not compute_uv:
        return _svd(matrices, False)[1]
    return _svd(matrices, bool(full_matrices))


@tf.custom_gradient
def _svd(x: Tensor, full: bool) -> Any:
    parts = np.linalg.svd(array_of("svd", x), full_matrices=full)

    def gradient(of_u: Tensor, of_s: Tensor, of_vt: Tensor) -> tuple[Tensor, None]:
        if full and x.shape[-1] != x.shape[-2]:
            no_gradient("svd", "with full_matrices=False there is one")
        return _svd_gradient(_svd(x, False), of_u, of_s, turned(of_vt)), None

    return tuple(tensor_like(x, part) for part in parts), gradient


def _svd_gradient(
    parts: tuple[Tensor, Tensor, Tensor], of_u: Tensor, of_s: Tensor, of_v: Tensor
) -> Tensor:
    """Townsend, "Differentiating the Singular Value Decomposition", 2016."""
    u, s, vt = parts
    v, squares = turned(vt), tf.square(s)
    row, column = tf.expand_dims(s, -2), tf.expand_dims(s, -1)
    gaps = _inverse(tf.expand_dims(squares, -2) - tf.expand_dims(squares, -1))
    turn_u, turn_v = (_inner(side, of_side) * gaps for side, of_side in ((u, of_u), (v, of_v)))
    eye = tf.cast(tf.eye(int(s.shape[-1])), s._dtype)
    middle = (turn_u + turned(turn_u)) * row + column * (turn_v + turned(turn_v))
    middle = middle + eye * tf.expand_dims(of_s, -1)
    outside_u = (of_u - tf.matmul(u, _inner(u, of_u))) * _inverse(row)
    outside_v = (of_v - tf.matmul(v, _inner(v, of_v))) * _inverse(row)
    left = tf.matmul(tf.matmul(u, middle) + outside_u, vt)
    return left + tf.matmul(u, outside_v, transpose_b=True)


def _inner(a: Tensor, b: Tensor) -> Tensor:
    return tf.matmul(a, b, transpose_a=True)
