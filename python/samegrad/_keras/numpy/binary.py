"""Functions of the elements of two tensors, which broadcast."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import INT_TYPES

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import (
    constant,
    float_of,
    is_float,
    known,
    made,
    matched,
    not_bool,
    pair,
)
from samegrad._keras.numpy.elementwise import absolute, sign
from samegrad._ops.elementary import LOG_2
from samegrad._tensor.tensor import Tensor

_Function = Callable[[Any, Any], Tensor]
_subtract: _Function = operator.sub
_divide: _Function = operator.truediv


def _with_bools(numbers: _Function, bools: _Function, x1: Any, x2: Any) -> Tensor:
    x1, x2 = pair(x1, x2)
    return (bools if x1._dtype == "bool" else numbers)(x1, x2)


def add(x1: Any, x2: Any) -> Tensor:
    """x1 + x2; of bools whether one is true."""
    return _with_bools(operator.add, tf.logical_or, x1, x2)


def subtract(x1: Any, x2: Any) -> Tensor:
    """x1 - x2."""
    return _subtract(*pair(x1, x2))


def multiply(x1: Any, x2: Any) -> Tensor:
    """x1 · x2; of bools whether both are true."""
    return _with_bools(operator.mul, tf.logical_and, x1, x2)


def divide(x1: Any, x2: Any) -> Tensor:
    """x1 / x2 as floats."""
    return _divide(*pair(x1, x2, float))


def true_divide(x1: Any, x2: Any) -> Tensor:
    """x1 / x2 as floats."""
    return divide(x1, x2)


def divide_no_nan(x1: Any, x2: Any) -> Tensor:
    """x1 / x2 as floats, and 0 where x2 is 0."""
    return tf.math.divide_no_nan(*pair(x1, x2, float))


def _whole_of_bools(xs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return not_bool(xs[0]), not_bool(xs[1])


def floor_divide(x1: Any, x2: Any) -> Tensor:
    """Return the largest integer not above x1 / x2."""
    return tf.math.floordiv(*_whole_of_bools(pair(x1, x2)))


def mod(x1: Any, x2: Any) -> Tensor:
    """Return the remainder of floor_divide, with the sign of x2."""
    return tf.math.floormod(*_whole_of_bools(pair(x1, x2)))


def fmod(x1: Any, x2: Any) -> Tensor:
    """Return the remainder of the division truncated towards 0, with the sign of x1."""
    x1, x2 = _whole_of_bools(pair(x1, x2))
    return sign(x1) * tf.math.floormod(absolute(x1), absolute(x2))


def power(x1: Any, x2: Any) -> Tensor:
    """x1 to the power x2."""
    squared = isinstance(x2, int | float) and x2 == 2
    x1, x2 = _whole_of_bools(pair(x1, x2))
    return tf.square(x1) if squared else tf.pow(x1, x2)


def maximum(x1: Any, x2: Any) -> Tensor:
    """The larger of both."""
    return _with_bools(tf.maximum, tf.logical_or, x1, x2)


def minimum(x1: Any, x2: Any) -> Tensor:
    """The smaller of both."""
    return _with_bools(tf.minimum, tf.logical_and, x1, x2)


def _but_nan(function: _Function, x1: Any, x2: Any) -> Tensor:
    x1, x2 = pair(x1, x2)
    if not is_float(x1):
        return function(x1, x2)
    first, second = tf.where(tf.math.is_nan(x1), x2, x1), tf.where(tf.math.is_nan(x2), x1, x2)
    return function(first, second)


def fmax(x1: Any, x2: Any) -> Tensor:
    """The larger of both; NaN only where both are NaN."""
    return _but_nan(maximum, x1, x2)


def fmin(x1: Any, x2: Any) -> Tensor:
    """The smaller of both; NaN only where both are NaN."""
    return _but_nan(minimum, x1, x2)


def clip(x: Any, x_min: Any, x_max: Any) -> Tensor:
    """The numbers, cut to those from `x_min` to `x_max`; None: unbounded."""
    x = not_bool(x)
    if x_min is not None:
        x = tf.maximum(x, convert_to_tensor(x_min, x._dtype))
    return x if x_max is None else tf.minimum(x, convert_to_tensor(x_max, x._dtype))


def arctan2(x1: Any, x2: Any) -> Tensor:
    """The angle in (-π, π] of the point (x2, x1)."""
    return tf.atan2(*pair(x1, x2, float))


def _floats(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Both as floats; of int64 as float64."""
    first, second = pair(x1, x2)
    return float_of(first, wide=True), float_of(second, wide=True)


def hypot(x1: Any, x2: Any) -> Tensor:
    """√(x1² + x2²), without overflow."""
    x1, x2 = (tf.abs(x) for x in _floats(x1, x2))
    longer, shorter = tf.maximum(x1, x2), tf.minimum(x1, x2)
    ratio = tf.math.divide_no_nan(shorter, longer)
    found = longer * tf.sqrt(tf.square(ratio) + 1.0)
    endless = tf.math.is_inf(x1) | tf.math.is_inf(x2)
    return tf.where(endless, constant(math.inf, found), found)


def heaviside(x1: Any, x2: Any) -> Tensor:
    """0 where x1 is negative, 1 where it is positive, x2 where it is 0."""
    x1, x2 = _floats(x1, x2)
    step = tf.where(tf.equal(x1, tf.zeros_like(x1)), x2, tf.cast(x1 > 0.0, x1._dtype))
    return tf.where(tf.math.is_nan(x1), x1, step)


def logaddexp(x1: Any, x2: Any) -> Tensor:
    """log(exp(x1) + exp(x2)), without overflow."""
    return _log_of_sum(x1, x2, 1.0)


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """The logarithm to base 2 of 2^x1 + 2^x2, without overflow."""
    return _log_of_sum(x1, x2, LOG_2)


def _log_of_sum(x1: Any, x2: Any, log_base: float) -> Tensor:
    x1, x2 = pair(x1, x2, float)
    gap = x1 - x2
    # Of equal numbers, both kinks have the slope of x1's side, so that the sum has none.
    rest = tf.math.log1p(tf.exp(tf.minimum(-gap, gap) * log_base)) * (1.0 / log_base)
    return tf.where(tf.math.is_nan(gap), x1 + x2, tf.maximum(x1, x2) + rest)


def ldexp(x1: Any, x2: Any) -> Tensor:
    """x1 · 2^x2.

    Raises:
        TypeError: The exponent is not an integer.
    """
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x2._dtype not in INT_TYPES:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={x2._dtype}")
    x1, x2 = pair(x1, x2, float)
    result = x1 * tf.pow(constant(2.0, x1), x2)
    return tf.where(tf.math.is_inf(x1) | tf.equal(x1, tf.zeros_like(x1)), x1, result)


def nextafter(x1: Any, x2: Any) -> Tensor:
    """The next number of the dtype after x1, towards x2.

    Raises:
        TypeError: On several replicas.
    """
    x1, x2 = pair(x1, x2, float)
    return made(np.nextafter(known("nextafter", x1), known("nextafter", x2)), x1._dtype)


def _integers(name: str, x1: Any, x2: Any) -> list[Tensor]:
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if not all("int" in x._dtype for x in (x1, x2)):
        raise TypeError(
            f"Arguments to {name} must be integers. Received: x1.dtype={x1._dtype}, "
            f"x2.dtype={x2._dtype}"
        )
    x1, x2 = pair(x1, x2)
    zero = tf.zeros_like(x1 + x2)
    return [absolute(x1 + zero), absolute(x2 + zero)]


def gcd(x1: Any, x2: Any) -> Tensor:
    """Compute the greatest common divisor of integers.

    Raises:
        TypeError: The arguments are not integers.
    """

    def step(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        done = tf.equal(b, tf.zeros_like(b))
        rest = tf.math.floormod(a, tf.where(done, tf.ones_like(b), b))
        return tf.where(done, a, b), tf.where(done, b, rest)

    def more(_: Tensor, b: Tensor) -> Tensor:
        return tf.reduce_any(tf.not_equal(b, tf.zeros_like(b)))

    found: Tensor = tf.while_loop(more, step, tuple(_integers("gcd", x1, x2)))[0]
    return found


def lcm(x1: Any, x2: Any) -> Tensor:
    """Compute the least common multiple of integers.

    Raises:
        TypeError: The arguments are not integers.
    """
    x1, x2 = _integers("lcm", x1, x2)
    divisor = gcd(x1, x2)
    return tf.multiply(x1, tf.math.floordiv(x2, tf.maximum(divisor, tf.ones_like(divisor))))


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """x1 where the condition holds, x2 elsewhere; without both, where it holds.

    Raises:
        ValueError: One of x1 and x2 is missing.
    """
    if (x1 is None) != (x2 is None):
        raise ValueError(
            "`x1` and `x2` either both should be `None` or both should have non-None value."
        )
    if x1 is None:
        from samegrad._keras.numpy.searching import nonzero

        return nonzero(condition)
    x1, x2 = pair(x1, x2)
    return tf.where(tf.cast(convert_to_tensor(condition), "bool"), x1, x2)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """For each element the choice of the first condition that holds, or the default."""
    *choices, found = matched(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        found = tf.where(tf.cast(convert_to_tensor(condition), "bool"), choice, found)
    return found
