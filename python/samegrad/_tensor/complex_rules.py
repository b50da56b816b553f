"""Complex arithmetic on pairs (real, imaginary) of real tensors of one shape.

Quotients and absolute values are computed of parts that are scaled to at most 1, so that neither
large nor small numbers overflow or vanish on the way; the scale is a constant to gradients, which
it does not change.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from samegrad import _core
from samegrad._tensor.conversion import Tensor, number

Pair: TypeAlias = tuple[Tensor, Tensor]
_ops = _core.ops
_EXP_32, _EXP_256 = 7.896296018268069516e13, 1.511427665004103542e111


def _one(like: Tensor) -> Tensor:
    return number(1.0, like._dtype)


def _zero(like: Tensor) -> Tensor:
    return number(0.0, like._dtype)


def _scale(real: Tensor, imag: Tensor) -> Tensor:
    """Return the larger part without its sign; 1 where both are zero or one is infinite or NaN."""
    larger = _ops.stop_gradient(_ops.maximum(_ops.abs(real), _ops.abs(imag)))
    plain = _ops.logical_and(_ops.is_finite(larger), _ops.greater(larger, _zero(larger)))
    return _ops.select(plain, larger, _one(larger))


def multiply(x: Pair, y: Pair) -> Pair:
    """Multiply: x * y."""
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


def divide(x: Pair, y: Pair) -> Pair:
    """Divide by Smith's method (1962), with the divisor's parts scaled."""
    (a, b), (c, d) = x, y
    scale = _scale(c, d)
    c, d = _ops.div(c, scale), _ops.div(d, scale)
    size = c * c + d * d
    real, imag = _ops.div(a * c + b * d, size), _ops.div(b * c - a * d, size)
    return _ops.div(real, scale), _ops.div(imag, scale)


def absolute(x: Pair) -> Tensor:
    """Compute |x|; its gradient at zero is zero, as TensorFlow's."""
    scale = _scale(*x)
    a, b = (_ops.div(part, scale) for part in x)
    squares = a * a + b * b
    nothing = _ops.equal(squares, _zero(squares))
    root = _ops.sqrt(_ops.select(nothing, _one(squares), squares))
    size = _ops.select(nothing, _zero(squares), root * scale)
    endless = _ops.logical_or(*map(_ops.is_inf, x))  # even beside NaN
    found: Tensor = _ops.select(endless, number(math.inf, size._dtype), size)
    return found


def angle(x: Pair) -> Tensor:
    """Return the angle in radians, in (-π, π]."""
    found: Tensor = _ops.atan2(x[1], x[0])
    return found


def exponential(x: Pair) -> Pair:
    """Compute exp(x)."""
    # Where e to the real part alone is too large, a part of it comes last.
    part, power = (32.0, _EXP_32) if x[0]._dtype == "float32" else (256.0, _EXP_256)
    large = _ops.greater(x[0], number(2 * part, x[0]._dtype))
    less = _ops.select(large, number(part, x[0]._dtype), _zero(x[0]))
    rest = _ops.select(large, number(power, x[0]._dtype), _one(x[0]))
    size = _ops.exp(x[0] - less)
    most = _ops.minimum(size, number(float(np.finfo(size._dtype).max), size._dtype))
    beside_zero = _ops.select(_ops.equal(x[1], _zero(size)), most, size)  # not infinity * 0
    return size * _ops.cos(x[1]) * rest, beside_zero * _ops.sin(x[1]) * rest


def logarithm(x: Pair) -> Pair:
    """Return the natural logarithm whose imaginary part is the angle."""
    scale = _scale(*x)
    a, b = (_ops.div(part, scale) for part in x)
    half = number(0.5, scale._dtype)
    return _ops.log(a * a + b * b) * half + _ops.log(scale), angle(x)


def square(x: Pair) -> Pair:
    """Compute x * x."""
    a, b = x
    twice = a * b
    return (a - b) * (a + b), twice + twice


def square_root(x: Pair) -> Pair:
    """Return the root whose real part is not negative, without the cancellation of |x| - real."""
    a, b = x
    half = number(0.5, a._dtype)
    nothing = _is_nothing(x)
    size = _ops.select(nothing, _one(a), (absolute(x) + _ops.abs(a)) * half)
    large = _ops.sqrt(size)
    small = _ops.div(b * half, large)
    right = _ops.greater_equal(a, _zero(a))
    below = _ops.less(b, _zero(b))
    signed = _ops.select(below, _ops.neg(large), large)
    # Not abs, which has no slope at zero.
    real = _ops.select(right, large, _ops.select(below, _ops.neg(small), small))
    imag = _ops.select(right, small, signed)
    return _ops.select(nothing, _zero(a), real), _ops.select(nothing, _zero(a), imag)


def sine(x: Pair) -> Pair:
    """Return the sine."""
    a, b = x
    return _ops.sin(a) * _ops.cosh(b), _ops.cos(a) * _ops.sinh(b)


def cosine(x: Pair) -> Pair:
    """Return the cosine."""
    a, b = x
    return _ops.cos(a) * _ops.cosh(b), _ops.neg(_ops.sin(a) * _ops.sinh(b))


def sign(x: Pair) -> Pair:
    """Compute x / |x|, and zero at zero."""
    size = absolute(x)
    size = _ops.select(_ops.equal(size, _zero(size)), _one(size), size)
    return _ops.div(x[0], size), _ops.div(x[1], size)


def hyperbolic_tangent(x: Pair) -> Pair:
    """Return the hyperbolic tangent, of bounded numbers only: 1 / cosh² is zero beyond them."""
    size, cos = _ops.tanh(x[0]), _ops.cos(x[1])
    most = 80.0 if size._dtype == "float32" else 700.0
    least = _ops.maximum(x[0], number(-most, size._dtype))
    root = _ops.div(_one(size), _ops.cosh(_ops.minimum(least, number(most, size._dtype))))
    rest = root * root
    divisor = size * size + cos * cos * rest
    return _ops.div(size, divisor), _ops.div(_ops.sin(x[1]) * cos * rest, divisor)


def _is_nothing(x: Pair) -> Tensor:
    found: Tensor = _ops.logical_and(_ops.equal(x[0], _zero(x[0])), _ops.equal(x[1], _zero(x[1])))
    return found


def power(x: Pair, y: Pair) -> Pair:
    """Raise x to the power y; 1 where y is zero.

    Of zero it is zero where y's real part is above zero, infinite + NaN i where y is a real number
    below zero, as TensorFlow has it, and else NaN.
    """
    nothing, real = _is_nothing(x), _ops.equal(y[1], _zero(y[1]))
    flat, above = _is_nothing(y), _ops.greater(y[0], _zero(y[0]))
    below = _ops.logical_and(real, _ops.less(y[0], _zero(y[0])))
    some = _ops.select(nothing, _one(x[0]), x[0]), x[1]
    a, b = exponential(multiply(y, logarithm(some)))
    zero, none = _zero(a), number(math.nan, a._dtype)
    of_zero = _ops.select(below, number(math.inf, a._dtype), none)
    of_zero = _ops.select(flat, _one(a), _ops.select(above, zero, of_zero))
    rest = _ops.select(_ops.logical_or(flat, above), zero, none)
    return _ops.select(nothing, of_zero, a), _ops.select(nothing, rest, b)


def whole_power(x: Pair, exponent: int) -> Pair:
    """Raise x to the power of an integer that is not zero, by squaring."""
    if exponent > 0:
        return _by_squaring(x, exponent)
    # The reciprocal first: what is large on the way is then large in the end.
    nothing, one = _is_nothing(x), _one(x[0])
    some = _ops.select(nothing, one, x[0]), x[1]
    a, b = _by_squaring(divide((one, _zero(one)), some), -exponent)
    infinite, none = number(math.inf, one._dtype), number(math.nan, one._dtype)
    return _ops.select(nothing, infinite, a), _ops.select(nothing, none, b)


def _by_squaring(x: Pair, exponent: int) -> Pair:
    found: Pair | None = None
    while True:
        if exponent & 1:
            found = x if found is None else multiply(found, x)
        exponent >>= 1
        if not exponent:
            break
        x = square(x)
    assert found is not None
    return found
