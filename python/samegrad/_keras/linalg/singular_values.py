"""keras.backend.linalg: pseudo-inverses, least squares and ranks, from singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.linalg.decompositions import svd
from samegrad._keras.linalg.values import floats, turned
from samegrad._tensor.tensor import Tensor


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
    u, s, vt = svd(matrices, full_matrices=False)
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
        TypeError: The arguments are not matrices.
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
    u, s, vt = svd(left, full_matrices=False)
    parts = tf.matmul(u, right, transpose_a=True) * _inverted(s, rcond)[:, None]
    x = tf.matmul(vt, parts, transpose_a=True)
    return tf.squeeze(x, -1) if single else x


def matrix_rank(x: Any, tol: Any = None) -> Tensor:
    """Count the singular values above `tol`.

    Args:
        x: Matrices.
        tol: Default the largest singular value times the larger size times the precision.
    """
    matrices = floats(x)
    s = svd(matrices, compute_uv=False)
    if tol is None:
        size = max(int(size) for size in matrices.shape[-2:])
        tol = tf.reduce_max(s, axis=-1, keepdims=True) * (size * _precision(matrices))
    return tf.reduce_sum(tf.cast(s > tol, "int32"), axis=-1)
