"""Comparisons, and functions of truth values and of bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import flat, is_float, not_bool, pair, tensor_pair
from samegrad._tensor.tensor import Tensor

Function = Callable[[Tensor, Tensor], Tensor]


def _ordered(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    first, second = tensor_pair(x1, x2)
    return not_bool(first), not_bool(second)


def equal(x1: Any, x2: Any) -> Tensor:
    """Tell if both are equal."""
    return tf.equal(*tensor_pair(x1, x2))


def not_equal(x1: Any, x2: Any) -> Tensor:
    """Tell if both differ."""
    return tf.not_equal(*tensor_pair(x1, x2))


def greater(x1: Any, x2: Any) -> Tensor:
    """Tell if x1 > x2."""
    return tf.greater(*_ordered(x1, x2))


def greater_equal(x1: Any, x2: Any) -> Tensor:
    """Tell if x1 >= x2."""
    return tf.greater_equal(*_ordered(x1, x2))


def less(x1: Any, x2: Any) -> Tensor:
    """Tell if x1 < x2."""
    return tf.less(*_ordered(x1, x2))


def less_equal(x1: Any, x2: Any) -> Tensor:
    """Tell if x1 <= x2."""
    return tf.less_equal(*_ordered(x1, x2))


def _bool(x: Any) -> Tensor:
    return tf.cast(convert_to_tensor(x), "bool")


def logical_and(x1: Any, x2: Any) -> Tensor:
    """Tell if both are true, or not 0."""
    return tf.logical_and(_bool(x1), _bool(x2))


def logical_or(x1: Any, x2: Any) -> Tensor:
    """Tell if one of them is true, or not 0."""
    return tf.logical_or(_bool(x1), _bool(x2))


def logical_xor(x1: Any, x2: Any) -> Tensor:
    """Tell if exactly one is true, or not 0."""
    return tf.math.logical_xor(_bool(x1), _bool(x2))


def logical_not(x: Any) -> Tensor:
    """Tell if it is false, or 0."""
    return tf.logical_not(_bool(x))


def isclose(
    x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Tell if |x1 - x2| <= atol + rtol · |x2|, or both are the same infinity.

    Args:
        x1: Numbers.
        x2: Numbers that x1 should be.
        rtol: Relative to x2.
        atol: On its own.
        equal_nan: Whether NaN is close to NaN.
    """
    x1, x2 = tensor_pair(x1, x2)
    same = tf.equal(x1, x2)
    if not is_float(x1):
        return same
    near = tf.less_equal(tf.abs(x1 - x2), tf.abs(x2) * rtol + atol)
    close = (tf.math.is_finite(x1) & tf.math.is_finite(x2) & near) | same
    return close | (tf.math.is_nan(x1) & tf.math.is_nan(x2)) if equal_nan else close


def allclose(
    x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Tell if all elements are close to each other; see `isclose`."""
    return tf.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Tell if each element of x1 is in x2; inverted, if it is not."""
    x1, x2 = tensor_pair(x1, x2)
    found = tf.reduce_any(tf.equal(tf.expand_dims(x1, -1), flat(x2)), axis=-1)
    return tf.logical_not(found) if invert else found


def _bitwise(x: Any, y: Any, of_bools: Function, of_numbers: Function) -> Tensor:
    x, y = pair(x, y)
    return (of_bools if x._dtype == "bool" else of_numbers)(x, y)


def bitwise_and(x: Any, y: Any) -> Tensor:
    """The bits that both have."""
    return _bitwise(x, y, tf.logical_and, tf.bitwise.bitwise_and)


def bitwise_or(x: Any, y: Any) -> Tensor:
    """The bits that one of them has."""
    return _bitwise(x, y, tf.logical_or, tf.bitwise.bitwise_or)


def bitwise_xor(x: Any, y: Any) -> Tensor:
    """The bits that exactly one has."""
    return _bitwise(x, y, tf.math.logical_xor, tf.bitwise.bitwise_xor)


def bitwise_invert(x: Any) -> Tensor:
    """The bits that it has not."""
    x = convert_to_tensor(x)
    if x._dtype == "bool":
        return tf.logical_not(x)
    return tf.bitwise.invert(x)


def bitwise_not(x: Any) -> Tensor:
    """The bits that it has not."""
    return bitwise_invert(x)


def _shift(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    x, y = pair(convert_to_tensor(x), y)
    return not_bool(x), not_bool(y)


def bitwise_left_shift(x: Any, y: Any) -> Tensor:
    """X · 2^y, without the bits that go beyond the dtype."""
    return tf.bitwise.left_shift(*_shift(x, y))


def left_shift(x: Any, y: Any) -> Tensor:
    """X · 2^y, without the bits that go beyond the dtype."""
    return bitwise_left_shift(x, y)


def bitwise_right_shift(x: Any, y: Any) -> Tensor:
    """Return the largest integer not above x / 2^y."""
    return tf.bitwise.right_shift(*_shift(x, y))


def right_shift(x: Any, y: Any) -> Tensor:
    """Return the largest integer not above x / 2^y."""
    return bitwise_right_shift(x, y)
