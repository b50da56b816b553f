"""Derivatives for the interpreter: numbers with tangents, nested for any order.

A `Dual` is a value with the derivative of it along one direction. Both are arrays or Duals of a
lower level, so that a second direction is a Dual of Duals. Rules are needed for linear and bilinear
functions, and for a few functions of one number; nothing is shared with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Number = Any  # np.ndarray or Dual


class Dual:
    """A value and its derivative along the direction of a level."""

    __slots__ = ("level", "primal", "tangent")

    def __init__(self, primal: Number, tangent: Number, level: int) -> None:
        self.primal, self.tangent, self.level = primal, tangent, level


def level_of(x: Number) -> int:
    return x.level if isinstance(x, Dual) else 0


def value_of(x: Number) -> np.ndarray:
    """The array under all derivatives."""
    while isinstance(x, Dual):
        x = x.primal
    return np.asarray(x)


def _split(x: Number, level: int) -> tuple[Number, Number]:
    """Value and derivative at a level; None: zero."""
    if isinstance(x, Dual) and x.level == level:
        return x.primal, x.tangent
    return x, None


def linear(f: Callable[..., np.ndarray], *xs: Number) -> Number:
    """A function that is linear in all operands together."""
    level = max(map(level_of, xs))
    if level == 0:
        return f(*xs)
    parts = [_split(x, level) for x in xs]
    tangents = [np.zeros_like(value_of(p)) if t is None else t for p, t in parts]
    return Dual(linear(f, *(p for p, _ in parts)), linear(f, *tangents), level)


def bilinear(f: Callable[..., np.ndarray], a: Number, b: Number) -> Number:
    level = max(level_of(a), level_of(b))
    if level == 0:
        return f(a, b)
    (pa, ta), (pb, tb) = _split(a, level), _split(b, level)
    terms = []
    if ta is not None:
        terms.append(bilinear(f, ta, pb))
    if tb is not None:
        terms.append(bilinear(f, pa, tb))
    tangent = terms[0] if len(terms) == 1 else add(*terms)
    return Dual(bilinear(f, pa, pb), tangent, level)


def unary(name: str, x: Number) -> Number:
    """A function of one number, by its name in FUNCTIONS."""
    value, derivative = FUNCTIONS[name]
    if not isinstance(x, Dual):
        return value(np.asarray(x))
    return Dual(unary(name, x.primal), mul(derivative(x.primal), x.tangent), x.level)


def add(a: Number, b: Number) -> Number:
    return linear(np.add, _array(a), _array(b))


def sub(a: Number, b: Number) -> Number:
    return linear(np.subtract, _array(a), _array(b))


def mul(a: Number, b: Number) -> Number:
    return bilinear(np.multiply, _array(a), _array(b))


def div(a: Number, b: Number) -> Number:
    return mul(a, unary("reciprocal", _array(b)))


def _array(x: Number) -> Number:
    return x if isinstance(x, Dual) else np.asarray(x)


def select(condition: np.ndarray, a: Number, b: Number) -> Number:
    return linear(lambda x, y: np.where(condition, x, y), _array(a), _array(b))


def reduce_sum(x: Number, axes: tuple[int, ...], keep: bool = False) -> Number:
    return linear(lambda v: np.sum(v, axis=axes, keepdims=keep), x)


def reduce_mean(x: Number, axes: tuple[int, ...], keep: bool = False) -> Number:
    with np.errstate(all="ignore"):  # of nothing it is not a number
        count = np.prod([value_of(x).shape[axis] for axis in axes])
        return linear(lambda v: np.sum(v, axis=axes, keepdims=keep) / count, x)


def reduce_extreme(x: Number, axes: tuple[int, ...], keep: bool, largest: bool) -> Number:
    """The largest or smallest; ties share the derivative."""
    value = value_of(x)
    best = (np.max if largest else np.min)(value, axis=axes, keepdims=True)
    chosen = (value == best).astype(np.float64)
    chosen /= chosen.sum(axis=axes, keepdims=True)
    return linear(
        lambda v: np.sum(np.where(chosen > 0, v * chosen, 0.0), axis=axes, keepdims=keep), x
    )


def reduce_prod(x: Number, axis: int, keep: bool) -> Number:
    size = value_of(x).shape[axis]
    result = linear(lambda v: np.take(v, [0], axis=axis), x)
    for i in range(1, size):
        result = mul(result, linear(lambda v, i=i: np.take(v, [i], axis=axis), x))
    return result if keep else linear(lambda v: np.squeeze(v, axis), result)


def logsumexp(x: Number, axes: tuple[int, ...], keep: bool) -> Number:
    most = np.max(value_of(x), axis=axes, keepdims=True, initial=-np.inf)
    total = unary("log", reduce_sum(unary("exp", sub(x, most)), axes, keep))
    return add(total, most if keep else np.squeeze(most, axes))


def log_softmax(x: Number, axis: int) -> Number:
    """By its own rule: that of log(sum(exp)) subtracts squares where one number is large."""
    if not isinstance(x, Dual):
        return sub(x, logsumexp(x, (axis,), True))
    flow = reduce_sum(mul(softmax(x.primal, axis), x.tangent), (axis,), True)
    return Dual(log_softmax(x.primal, axis), sub(x.tangent, flow), x.level)


def softmax(x: Number, axis: int) -> Number:
    return unary("exp", log_softmax(x, axis))


def matmul(a: Number, b: Number, transpose_a: bool, transpose_b: bool) -> Number:
    def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x = np.swapaxes(x, -1, -2) if transpose_a else x
        return x @ (np.swapaxes(y, -1, -2) if transpose_b else y)

    return bilinear(product, a, b)


def paddings(
    size: int, window: int, stride: int, same: bool, dilation: int = 1
) -> tuple[int, int, int]:
    """Rows of the result, padding before and after, as TensorFlow places windows."""
    extent = (window - 1) * dilation + 1
    if not same:
        return (size - extent) // stride + 1, 0, 0
    rows = -(-size // stride)
    missing = max((rows - 1) * stride + extent - size, 0)
    return rows, missing // 2, missing - missing // 2


def windows(
    x: np.ndarray, size: Sequence[int], stride: int, same: bool, fill: float, dilation: int = 1
) -> np.ndarray:
    """(n, h, w, c) to (n, rows, columns, window rows, window columns, c)."""
    rows, top, bottom = paddings(x.shape[1], size[0], stride, same, dilation)
    columns, left, right = paddings(x.shape[2], size[1], stride, same, dilation)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    result = np.empty((x.shape[0], rows, columns, *size, x.shape[3]))
    for i in range(size[0]):
        for j in range(size[1]):
            first = (i * dilation, j * dilation)
            last = (first[0] + (rows - 1) * stride + 1, first[1] + (columns - 1) * stride + 1)
            result[:, :, :, i, j] = padded[
                :, first[0] : last[0] : stride, first[1] : last[1] : stride
            ]
    return result


def conv2d(x: Number, filters: Number, stride: int, same: bool, dilation: int = 1) -> Number:
    """Groups follow from the channels of the filters."""

    def product(images: np.ndarray, f: np.ndarray) -> np.ndarray:
        seen = windows(images, f.shape[:2], stride, same, 0.0, dilation)
        groups = images.shape[3] // f.shape[2]
        channels = np.split(seen, groups, -1), np.split(f, groups, -1)
        return np.concatenate(
            [np.tensordot(a, b, 3) for a, b in zip(*channels, strict=True)], axis=-1
        )

    return bilinear(product, x, filters)


def pool(x: Number, size: int, stride: int, same: bool, largest: bool) -> Number:
    value = value_of(x)
    taps = (size, size)
    inside = windows(np.ones_like(value), taps, stride, same, 0.0)
    flat = (*inside.shape[:3], size * size, inside.shape[5])
    if not largest:
        count = inside.sum(axis=(3, 4))
        return linear(lambda v: windows(v, taps, stride, same, 0.0).sum(axis=(3, 4)) / count, x)
    seen = windows(value, taps, stride, same, -np.inf).reshape(flat)
    at = np.argmax(seen, axis=3)[:, :, :, None]

    def take(v: np.ndarray) -> np.ndarray:
        of_window = windows(v, taps, stride, same, 0.0).reshape(flat)
        return np.take_along_axis(of_window, at, axis=3)[:, :, :, 0]

    return linear(take, x)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[float])(x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))  # precise where it is small, too


def _f(name: str) -> Callable[[Number], Number]:
    return lambda x: unary(name, x)


def _one_minus_square(name: str) -> Callable[[Number], Number]:
    return lambda x: sub(1.0, mul(unary(name, x), unary(name, x)))


def _constant(f: Callable[[np.ndarray], np.ndarray]) -> Callable[[Number], Number]:
    """A derivative that has none itself."""
    return lambda x: f(value_of(x)).astype(np.float64)


def _zero(x: Number) -> Number:
    return np.zeros_like(value_of(x))


def _power(x: Number, scale: float, name: str) -> Number:
    return mul(scale, unary(name, x))


_ROOT = 2 / math.sqrt(math.pi)
# By name: the value, and the derivative as a function of the same operand.
FUNCTIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[Number], Number]]] = {
    "exp": (np.exp, _f("exp")),
    "log": (np.log, _f("reciprocal")),
    "reciprocal": (
        lambda x: 1 / x,
        lambda x: mul(-1.0, mul(unary("reciprocal", x), unary("reciprocal", x))),
    ),
    "tanh": (np.tanh, _one_minus_square("tanh")),
    "sigmoid": (_sigmoid, lambda x: mul(unary("sigmoid", x), sub(1.0, unary("sigmoid", x)))),
    "softplus": (lambda x: np.logaddexp(0, x), _f("sigmoid")),
    "sin": (np.sin, _f("cos")),
    "cos": (np.cos, lambda x: _power(x, -1.0, "sin")),
    "sinh": (np.sinh, _f("cosh")),
    "cosh": (np.cosh, _f("sinh")),
    "square": (np.square, lambda x: mul(2.0, x)),
    "abs": (np.abs, _constant(np.sign)),
    "relu": (lambda x: np.maximum(x, 0), _constant(lambda x: x > 0)),
    "sqrt": (np.sqrt, lambda x: _power(x, 0.5, "rsqrt")),
    "rsqrt": (
        lambda x: 1 / np.sqrt(x),
        lambda x: mul(-0.5, mul(unary("rsqrt", x), unary("reciprocal", x))),
    ),
    "atan": (np.arctan, lambda x: unary("reciprocal", add(1.0, mul(x, x)))),
    "asinh": (np.arcsinh, lambda x: unary("rsqrt", add(1.0, mul(x, x)))),
    "acos": (np.arccos, lambda x: mul(-1.0, unary("rsqrt", sub(1.0, mul(x, x))))),
    "asin": (np.arcsin, lambda x: unary("rsqrt", sub(1.0, mul(x, x)))),
    "acosh": (np.arccosh, lambda x: unary("rsqrt", sub(mul(x, x), 1.0))),
    "atanh": (np.arctanh, lambda x: unary("reciprocal", sub(1.0, mul(x, x)))),
    "tan": (np.tan, lambda x: add(1.0, mul(unary("tan", x), unary("tan", x)))),
    "expm1": (np.expm1, _f("exp")),
    "log1p": (np.log1p, lambda x: unary("reciprocal", add(1.0, x))),
    "erf": (_erf, lambda x: mul(_ROOT, unary("exp", mul(-1.0, mul(x, x))))),
    "floor": (np.floor, _zero),
    "ceil": (np.ceil, _zero),
    "round": (np.round, _zero),
    "sign": (np.sign, _zero),
}
