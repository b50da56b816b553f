"""keras.backend.linalg: linear equations, inverses, determinants."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type

import samegrad as tf
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
