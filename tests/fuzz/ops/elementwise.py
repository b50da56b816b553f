"""Elementwise operations, broadcasting, comparisons, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fuzz import dual
from fuzz.dual import Number, add, div, mul, select, sub, unary, value_of
from fuzz.ops.table import Drawn, Op, line
from fuzz.program import Dim, Shape, Type

if TYPE_CHECKING:
    from fuzz.generate import Draw


def _elu(x: Number) -> Number:
    return select(value_of(x) > 0, x, unary("expm1", dual.linear(lambda v: v, _clipped(x))))


def _clipped(x: Number) -> Number:
    return select(value_of(x) > 0, mul(x, 0.0), x)


def _selu(x: Number) -> Number:
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return mul(scale, select(value_of(x) > 0, x, mul(alpha, unary("expm1", _clipped(x)))))


def _gelu(x: Number) -> Number:
    return mul(mul(0.5, x), add(1.0, unary("erf", mul(x, 2**-0.5))))


def _plain(name: str) -> Callable[[Number], Number]:
    return lambda x: unary(name, x)


def _mod(a: Number, b: Number) -> Number:
    divisor = add(0.5, unary("softplus", b))
    return sub(a, mul(np.floor(value_of(a) / value_of(divisor)), divisor))


# Name: text, meaning; all are tame on all numbers of moderate size.
UNARY: dict[str, tuple[str, Callable[[Number], Number]]] = {
    "tanh": ("tf.tanh({0})", _plain("tanh")),
    "sigmoid": ("tf.sigmoid({0})", _plain("sigmoid")),
    "relu": ("tf.nn.relu({0})", _plain("relu")),
    "softplus": ("tf.nn.softplus({0})", _plain("softplus")),
    "sin": ("tf.sin({0})", _plain("sin")),
    "cos": ("tf.cos({0})", _plain("cos")),
    "square": ("tf.square({0})", _plain("square")),
    "abs": ("tf.abs({0})", _plain("abs")),
    "neg": ("-{0}", lambda x: mul(-1.0, x)),
    "atan": ("tf.atan({0})", _plain("atan")),
    "asinh": ("tf.asinh({0})", _plain("asinh")),
    "erf": ("tf.math.erf({0})", _plain("erf")),
    "acos": ("tf.acos(0.5 * tf.sin({0}))", lambda x: unary("acos", mul(0.5, unary("sin", x)))),
    "asin": ("tf.asin(0.5 * tf.sin({0}))", lambda x: unary("asin", mul(0.5, unary("sin", x)))),
    "atanh": ("tf.atanh(0.5 * tf.sin({0}))", lambda x: unary("atanh", mul(0.5, unary("sin", x)))),
    "acosh": (
        "tf.acosh(tf.square({0}) + 1.5)",
        lambda x: unary("acosh", add(1.5, unary("square", x))),
    ),
    "tan": ("tf.tan(0.5 * tf.tanh({0}))", lambda x: unary("tan", mul(0.5, unary("tanh", x)))),
    "exp": ("tf.exp(-tf.abs({0}))", lambda x: unary("exp", mul(-1.0, unary("abs", x)))),
    "sinh": ("tf.sinh(0.25 * {0})", lambda x: unary("sinh", mul(0.25, x))),
    "cosh": ("tf.cosh(0.25 * {0})", lambda x: unary("cosh", mul(0.25, x))),
    "expm1": ("tf.math.expm1(0.25 * {0})", lambda x: unary("expm1", mul(0.25, x))),
    "log1p": ("tf.math.log1p(tf.square({0}))", lambda x: unary("log1p", unary("square", x))),
    "log": ("tf.math.log(tf.abs({0}) + 0.5)", lambda x: unary("log", add(0.5, unary("abs", x)))),
    "sqrt": (
        "tf.sqrt(tf.square({0}) + 0.25)",
        lambda x: unary("sqrt", add(0.25, unary("square", x))),
    ),
    "rsqrt": (
        "tf.math.rsqrt(tf.square({0}) + 0.5)",
        lambda x: unary("rsqrt", add(0.5, unary("square", x))),
    ),
    "reciprocal": (
        "tf.math.reciprocal(1.5 + tf.sin({0}))",
        lambda x: unary("reciprocal", add(1.5, unary("sin", x))),
    ),
    "elu": ("tf.nn.elu({0})", _elu),
    "selu": ("tf.nn.selu({0})", _selu),
    "gelu": ("tf.nn.gelu({0})", _gelu),
    "silu": ("tf.nn.silu({0})", lambda x: mul(x, unary("sigmoid", x))),
    "leaky_relu": (
        "tf.nn.leaky_relu({0}, 0.25)",
        lambda x: select(value_of(x) > 0, x, mul(0.25, x)),
    ),
    "softsign": ("tf.nn.softsign({0})", lambda x: div(x, add(1.0, unary("abs", x)))),
    "floor": ("tf.floor(4.0 * {0})", lambda x: unary("floor", mul(4.0, x))),
    "ceil": ("tf.math.ceil(4.0 * {0})", lambda x: unary("ceil", mul(4.0, x))),
    "round": ("tf.round(4.0 * {0})", lambda x: unary("round", mul(4.0, x))),
    "sign": ("tf.sign({0})", lambda x: unary("sign", x)),
    "shift": ("{0} + 0.5", lambda x: add(x, 0.5)),
    "scale": ("1.5 * {0}", lambda x: mul(1.5, x)),
    "stop": ("tf.stop_gradient({0})", lambda x: value_of(x)),
}


def _xlogy(a: Number, b: Number) -> Number:
    """Compute a * log(|b| + 0.5), with TensorFlow's derivative of 0 by a where a is 0."""
    factor = select(value_of(a) != 0, a, value_of(a))
    return mul(factor, unary("log", add(0.5, unary("abs", b))))


BINARY: dict[str, tuple[str, Callable[[Number, Number], Number]]] = {
    "add": ("{0} + {1}", add),
    "sub": ("{0} - {1}", sub),
    "mul": ("{0} * {1}", mul),
    "div": ("{0} / (tf.square({1}) + 0.5)", lambda a, b: div(a, add(0.5, unary("square", b)))),
    "maximum": ("tf.maximum({0}, {1})", lambda a, b: select(value_of(a) > value_of(b), a, b)),
    "minimum": ("tf.minimum({0}, {1})", lambda a, b: select(value_of(a) < value_of(b), a, b)),
    "squared_difference": (
        "tf.math.squared_difference({0}, {1})",
        lambda a, b: unary("square", sub(a, b)),
    ),
    "div_no_nan": (
        "tf.math.divide_no_nan({0}, tf.nn.softplus({1}))",
        lambda a, b: div(a, unary("softplus", b)),
    ),
    "pow": (
        "tf.pow(tf.abs({0}) + 0.5, tf.tanh({1}))",
        lambda a, b: unary("exp", mul(unary("tanh", b), unary("log", add(0.5, unary("abs", a))))),
    ),
    "atan2": (
        "tf.atan2({0}, tf.square({1}) + 0.5)",
        lambda a, b: unary("atan", div(a, add(0.5, unary("square", b)))),
    ),
    "mod": ("tf.math.floormod({0}, tf.nn.softplus({1}) + 0.5)", _mod),
    "xlogy": (
        "tf.math.xlogy({0}, tf.abs({1}) + 0.5)",
        _xlogy,
    ),
}

# Conditions on one number, and on two.
MASKS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "greater": ("{0} > 0.25", lambda x: x > 0.25),
    "and": ("tf.logical_and({0} > -1.0, {0} < 0.5)", lambda x: (x > -1) & (x < 0.5)),
    "or": ("tf.logical_or({0} < -0.5, {0} >= 0.75)", lambda x: (x < -0.5) | (x >= 0.75)),
    "not": ("tf.logical_not({0} <= 0.25)", lambda x: ~(x <= 0.25)),
    "xor": ("tf.math.logical_xor({0} > -0.5, {0} > 0.5)", lambda x: (x > -0.5) ^ (x > 0.5)),
    "is_nan": ("tf.math.is_nan(tf.sqrt({0} - 0.25))", lambda x: x < 0.25),
    "is_inf": ("tf.math.is_inf(1.0 / tf.nn.relu({0} - 0.25))", lambda x: x <= 0.25),
}
COMPARE = {"less": np.less, "greater_equal": np.greater_equal, "not_equal": np.not_equal}


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The shape of both together, or None."""
    out: list[Dim] = []
    for k in range(1, max(len(a), len(b)) + 1):
        x: Dim = a[-k] if k <= len(a) else 1
        y: Dim = b[-k] if k <= len(b) else 1
        if x != y and 1 not in (x, y):
            return None
        out.append(y if x == 1 else x)
    return tuple(reversed(out))


def _draw_unary(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f")
    if x is None:
        return None
    return (x,), {"fn": g.rng.choice(list(UNARY))}, g.types[x]


def _second(g: Draw, x: str) -> str:
    """Something that fits to x: a value, the same again, or a variable that is broadcast."""
    t = g.types[x]
    wide = [
        name
        for name, other in g.types.items()
        if other.kind == "f" and (s := broadcast(t.shape, other.shape)) is not None and _one_axis(s)
    ]
    if g.rng.random() < 0.3:
        tail = [d for d in t.shape[1:] if isinstance(d, int)]
        if len(tail) == len(t.shape[1:]):
            keep = g.rng.randint(0, len(tail))
            sizes = [1 if g.rng.random() < 0.2 else d for d in tail[len(tail) - keep :]]
            return g.variable(tuple(sizes))
    return g.rng.choice(wide)


def _one_axis(shape: Shape) -> bool:
    return sum(not isinstance(d, int) for d in shape) <= 1


def _pair(g: Draw) -> tuple[str, str, Type] | None:
    x = g.pick(lambda t: t.kind == "f")
    if x is None:
        return None
    y = _second(g, x)
    a, b = g.types[x], g.types[y]
    shape = broadcast(a.shape, b.shape)
    if shape is None or not _one_axis(shape) or g.too_big(shape):
        return None
    # (n, 3) + (n,) would lay examples along the other axis.
    if a.axis >= 0 and b.axis >= 0 and len(a.shape) - a.axis != len(b.shape) - b.axis:
        return None
    if g.rng.random() < 0.3:
        x, y = y, x
    return x, y, Type(shape, local=a.local and b.local)


def _draw_binary(g: Draw) -> Drawn | None:
    pair = _pair(g)
    return pair and ((pair[0], pair[1]), {"fn": g.rng.choice(list(BINARY))}, pair[2])


def _draw_where(g: Draw) -> Drawn | None:
    pair = _pair(g)
    return pair and ((pair[0], pair[1]), {"fn": g.rng.choice(list(COMPARE))}, pair[2])


def _where(values: list[Number], attrs: dict[str, str]) -> Number:
    a, b = values
    return select(COMPARE[attrs["fn"]](value_of(a), value_of(b)), a, mul(0.5, b))


def _draw_mask(g: Draw) -> Drawn | None:
    x = g.pick(lambda t: t.kind == "f")
    return None if x is None else ((x,), {"mask": g.rng.choice(list(MASKS))}, g.types[x])


def _mask_text(out: str, i: list[str], a: dict[str, str]) -> list[str]:
    return [f"{out} = {i[0]} * tf.cast({MASKS[a['mask']][0].format(*i)}, {i[0]}.dtype)"]


def _draw_close(g: Draw) -> Drawn | None:
    """Two numbers that print alike, and are two."""
    x = g.pick(lambda t: t.kind == "f")
    if x is None or g.dtype != "float64":
        return None
    return (x,), {"number": g.rng.choice([0.3, 0.75])}, g.types[x]


ROWS = [
    Op(
        "close",
        _draw_close,
        line("({0} * ({number} + 4e-7) - {0} * {number}) * 1.7e6"),
        lambda v, a, _: mul(v[0], ((a["number"] + 4e-7) - a["number"]) * 1.7e6),
        weight=0.7,
    ),
    Op(
        "unary",
        _draw_unary,
        lambda out, i, a: [f"{out} = " + UNARY[a["fn"]][0].format(*i)],
        lambda v, a, _: UNARY[a["fn"]][1](v[0]),
        weight=6,
    ),
    Op(
        "binary",
        _draw_binary,
        lambda out, i, a: [f"{out} = " + BINARY[a["fn"]][0].format(*i)],
        lambda v, a, _: BINARY[a["fn"]][1](*v),
        weight=6,
    ),
    Op(
        "where",
        _draw_where,
        line("tf.where(tf.{fn}({0}, {1}), {0}, 0.5 * {1})"),
        lambda v, a, _: _where(v, a),
        weight=1.5,
    ),
    Op(
        "mask",
        _draw_mask,
        _mask_text,
        lambda v, a, _: mul(v[0], MASKS[a["mask"]][1](value_of(v[0])).astype(float)),
        weight=1.5,
    ),
]
