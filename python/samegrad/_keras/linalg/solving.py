"""keras.backend.linalg: linear equations, inverses, determinants."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad._keras.linalg.values import floats
from samegrad._tensor.tensor import Tensor


def solve(a: Any, b: Any) -> Tensor:
    """The x with a x = b; b holds columns, or is one of them.

    Raises:
        InvalidArgumentError: A matrix has no inverse.
    """
    left, right, single = _operands(a, b)
    x = tf.linalg.solve(left, right)
    return tf.squeeze(x, -1) if single else x


def _operands(a: Any, b: Any) -> tuple[Tensor, Tensor, bool]:
    """Matrices and columns of one dtype, and whether there is one column."""
    left, right = floats(a), floats(b)
    kind = result_type(left._dtype, right._dtype)
    left, right = tf.cast(left, kind), tf.cast(right, kind)
    single = right._rank == left._rank - 1
    if single:
        right = tf.expand_dims(right, -1)
    return left, right, single


def solve_triangular(a: Any, b: Any, lower: bool = False) -> Tensor:
    """The x with a x = b, of whose matrices the lower or the upper triangle counts."""
    left, right, single = _operands(a, b)
    x = tf.linalg.triangular_solve(left, right, lower=bool(lower))
    return tf.squeeze(x, -1) if single else x


def inv(a: Any) -> Tensor:
    """The inverses of matrices.

    Raises:
        InvalidArgumentError: A matrix has none.
    """
    inverse: Tensor = tf.linalg.inv(floats(a))
    return inverse


def det(a: Any) -> Tensor:
    """The determinants of matrices."""
    determinant: Tensor = tf.linalg.det(floats(a))
    return determinant
