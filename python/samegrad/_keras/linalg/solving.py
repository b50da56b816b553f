"""keras.backend.linalg: linear equations, inverses, determinants, ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad._keras.core import convert_to_tensor
from samegrad._keras.linalg.elimination import eliminated
from samegrad._keras.linalg.values import array_of, floats, tensor_like, triangle, turned
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor


def solve(a: Any, b: Any) -> Tensor:
    """The x with a x = b; b holds columns, or is one of them.

    Raises:
        ValueError: A matrix has no inverse.
    """
    left, right, single = _operands(a, b)
    x = _solve(left, right)
    return tf.squeeze(x, -1) if single else x


def _operands(a: Any, b: Any) -> tuple[Tensor, Tensor, bool]:
    """Matrices and columns with the same leading axes, and whether there is one column."""
    left, right = floats(a), floats(b)
    kind = result_type(left._dtype, right._dtype)
    left, right = tf.cast(left, kind), tf.cast(right, kind)
    single = right._rank == left._rank - 1
    if single:
        right = tf.expand_dims(right, -1)
    outer = [tuple(x.shape[:-2]) for x in (left, right)]
    known = not any(isinstance(size, Dim) for sizes in outer for size in sizes)
    if known and outer[0] != outer[1]:
        sizes = np.broadcast_shapes(*outer)
        left = tf.broadcast_to(left, (*sizes, *left.shape[-2:]))
        right = tf.broadcast_to(right, (*sizes, *right.shape[-2:]))
    return left, right, single


@tf.custom_gradient
def _solve(a: Tensor, b: Tensor) -> Any:
    def gradient(upstream: Tensor) -> tuple[Tensor, Tensor]:
        of_b: Tensor = _solve(turned(a), upstream)
        return -tf.matmul(of_b, _solve(a, b), transpose_b=True), of_b

    if a._symbolic or b._symbolic:
        return eliminated(a, b)[0], gradient
    return tensor_like(a, np.linalg.solve(array_of("solve", a), array_of("solve", b))), gradient


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Tensor:
    """The x with a x = b, of whose matrices the lower or the upper triangle counts."""
    left, right, single = _operands(a, b)
    x = _solve(triangle(left, lower), right)
    return tf.squeeze(x, -1) if single else x


def inv(a: Any) -> Tensor:
    """The inverses of matrices.

    Raises:
        ValueError: A matrix has none.
    """
    matrices = floats(a)
    size = int(matrices.shape[-1])
    eye = tf.cast(tf.eye(size), matrices._dtype)
    inverse: Tensor = _solve(matrices, tf.zeros_like(matrices) + eye)
    return inverse


def det(a: Any) -> Tensor:
    """The determinants of matrices."""
    determinant: Tensor = _det(floats(a))
    return determinant


@tf.custom_gradient
def _det(a: Tensor) -> Any:
    def gradient(upstream: Tensor) -> Tensor:
        factor: Tensor = tf.expand_dims(tf.expand_dims(upstream * _det(a), -1), -1)
        return turned(inv(a)) * factor

    if a._symbolic:
        return eliminated(a, a[..., :0])[1], gradient
    return tensor_like(a, np.linalg.det(array_of("det", a))), gradient


def _singular_values(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    from samegrad._keras.linalg.decompositions import svd

    u, s, vt = svd(x, full_matrices=False)
    return u, s, vt


def _precision(x: Tensor) -> float:
    return float(np.finfo("float64" if x._dtype == "float64" else "float32").eps)


def pinv(x: Any, rcond: Any = None) -> Tensor:
    """The pseudo-inverses (Moore and Penrose) of matrices.

    Args:
        x: Matrices.
        rcond: Singular values up to so much of the largest are taken for 0; default 10 times the
            larger size times the precision.
    """
    matrices = floats(x)
    u, s, vt = _singular_values(matrices)
    if rcond is None:
        rcond = 10.0 * max(int(size) for size in matrices.shape[-2:]) * _precision(matrices)
    limit = tf.expand_dims(convert_to_tensor(rcond, s._dtype), -1)
    return tf.matmul(turned(vt) * tf.expand_dims(_inverted(s, limit), -2), u, transpose_b=True)


def _inverted(s: Tensor, limit: Any) -> Tensor:
    """1 / s where s is more than `limit` of the largest one, 0 elsewhere."""
    counts = s > tf.reduce_max(s, axis=-1, keepdims=True) * limit
    return tf.where(counts, 1.0 / tf.where(counts, s, tf.ones_like(s)), tf.zeros_like(s))


def lstsq(a: Any, b: Any, rcond: Any = None) -> Tensor:
    """The shortest x for which |a x - b| is least.

    Args:
        a: A matrix.
        b: Columns as long as those of a, or one of them.
        rcond: Singular values up to so much of the largest are taken for 0; default the larger
            size times the precision.

    Raises:
        ValueError: a and b have not as many rows.
        TypeError: They are no matrices.
    """
    left, right = floats(a), floats(b)
    if left.shape[0] != right.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    single = right._rank == 1
    if single:
        right = right[:, None]
    for matrix, text in ((left, "two-dimensional"), (right, "one or two-dimensional")):
        if matrix._rank != 2:
            raise TypeError(f"{matrix._rank}-dimensional array given. Array must be {text}")
    if rcond is None:
        rcond = max(int(size) for size in left.shape) * _precision(left)
    u, s, vt = _singular_values(left)
    parts = tf.matmul(u, right, transpose_a=True) * _inverted(s, rcond)[:, None]
    x = tf.matmul(vt, parts, transpose_a=True)
    return tf.squeeze(x, -1) if single else x


def matrix_rank(x: Any, tol: Any = None) -> Tensor:
    """How many singular values are more than `tol`.

    Args:
        x: Matrices.
        tol: Default the largest singular value times the larger size times the precision.
    """
    matrices = floats(x)
    s = _singular_values(matrices)[1]
    if tol is None:
        size = max(int(size) for size in matrices.shape[-2:])
        tol = tf.reduce_max(s, axis=-1, keepdims=True) * (size * _precision(matrices))
    return tf.reduce_sum(tf.cast(s > tol, "int32"), axis=-1)
