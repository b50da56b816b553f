"""Every elementwise row over the whole range of its dtype, against NumPy in a wider one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

Wide = np.longdouble

UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": lambda x: np.where(x == 0, x, np.sign(x)),
    "square": np.square, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "exp": np.exp,
    "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "relu": lambda x: np.where(x > 0, x, np.where(x < 0, 0, x)),
    "sigmoid": lambda x: np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "softplus": lambda x: np.where(x > 0, x, 0) + np.log1p(np.exp(-np.abs(x))),
    "erf": lambda x: np.array([math.erf(v) for v in x.tolist()], Wide), "floor": np.floor,
    "ceil": np.ceil, "round": np.rint, "is_nan": np.isnan, "is_inf": np.isinf,
    "is_finite": np.isfinite,
}  # fmt: skip

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "div_no_nan": lambda a, b: np.where(b == 0, 0, a / b),
    "multiply_no_nan": lambda a, b: np.where(b == 0, 0, a * b),
    "xdivy": lambda a, b: np.where(a == 0, 0, a / b),
    "xlogy": lambda a, b: np.where(a == 0, 0, a * np.log(b)), "pow": np.power,
    "maximum": np.maximum, "minimum": np.minimum,
    "squared_difference": lambda a, b: np.square(a - b), "atan2": np.arctan2, "equal": np.equal,
    "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
}  # fmt: skip
# In the dtype itself: what they are depends on how a quotient is rounded, or on its limits.
ROUNDED: dict[str, Callable[..., Any]] = {
    "floor_div": lambda a, b: np.floor(a / b), "mod": lambda a, b: modulo(a, b),
    "flush_denormals": lambda x: flush(x), "flushed_sum": lambda a, b: flush(a + b),
    "sub_flushed": lambda a, b: a - flush(b),
}  # fmt: skip
# Errors of the formula before the last rounding; else 5 units of the last place.
ROUNDED_INSIDE = {"squared_difference"}


def modulo(a: Any, b: Any) -> Any:
    """NumPy's, but for the sign of a remainder of 0, which is the dividend's, as in TensorFlow."""
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


def flush(x: Any) -> Any:
    """Zeros of their signs in place of denormal numbers."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(0, x), x)


def numbers(dtype: Any) -> Any:
    """Both signs of: zero, denormals, every power of two, ordinary numbers, the ends, NaN."""
    info = np.finfo(dtype)
    powers = np.exp2(np.arange(info.minexp - info.nmant, info.maxexp).astype(Wide)).astype(dtype)
    rng = np.random.default_rng(0)
    plain = [rng.uniform(0, 1, 300), rng.uniform(0, 90, 300), 1 + 1e-4 * rng.random(50)]
    ends = [0, 0.5, 1, 1.5, 2, 2.5, info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan]
    positive = np.concatenate([powers, 1.37 * powers[:-1], *plain, ends]).astype(dtype)
    return np.concatenate([positive, -positive])


def floats(operands: int) -> list[str]:
    rows = [r for r in _core.op_table() if r["elementwise"] and r["max_arity"] == operands]
    x = tf.constant(np.ones(1, np.float32))
    names = []
    for row in rows:
        if row["attrs"] or row["backward"]:
            continue
        try:
            getattr(_core.ops, row["name"])(*[x] * operands)
        except TypeError:
            continue  # for truth values only
        names.append(row["name"])
    return names


def check(name: str, got: Any, exact: Any, units: float, where: Any) -> None:
    dtype = got.dtype
    if got.dtype.kind == "b":
        np.testing.assert_array_equal(got, exact)
        return
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        spacing = np.spacing(np.abs(np.minimum(np.abs(rounded), np.finfo(dtype).max))).astype(Wide)
        error = np.abs(got.astype(Wide) - exact) / spacing
        finite = np.isfinite(got) & np.isfinite(exact)
        close = finite & (error <= units)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        # One unit beyond the largest number is infinite.
        near_end = (np.abs(exact) >= np.finfo(dtype).max * (1 - 8 * np.finfo(dtype).eps)) & (
            np.abs(got) >= np.finfo(dtype).max * (1 - 8 * np.finfo(dtype).eps)
        )
        bad = ~(close | same | near_end)
        bad |= (rounded == 0) & (got == 0) & (exact == 0) & (np.signbit(got) != np.signbit(rounded))
    at = np.flatnonzero(bad)
    assert at.size == 0, [(name, *(w[i] for w in where), got[i], rounded[i]) for i in at[:6]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", floats(1))
def test_a_function_of_one_number(name: str, dtype: Any) -> None:
    x = numbers(dtype)
    got = getattr(_core.ops, name)(tf.constant(x)).numpy()
    with np.errstate(all="ignore"):
        exact = ROUNDED[name](x).astype(Wide) if name in ROUNDED else UNARY[name](x.astype(Wide))
    check(name, got, np.asarray(exact), 5, [x])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", floats(2))
def test_a_function_of_two_numbers(name: str, dtype: Any) -> None:
    few = numbers(dtype)[:: 11 if dtype is np.float32 else 37]
    special = np.array([0.0, -0.0, 1, -1, 2, -3, 0.5, np.inf, -np.inf, np.nan], dtype)
    values = np.concatenate([few, special])
    a, b = (m.reshape(-1) for m in np.meshgrid(values, values))
    got = getattr(_core.ops, name)(tf.constant(a), tf.constant(b)).numpy()
    with np.errstate(all="ignore"):
        if name in ROUNDED:
            exact = ROUNDED[name](a, b).astype(Wide)
        elif name in ROUNDED_INSIDE:
            exact = BINARY[name](a, b).astype(Wide)
        else:
            exact = np.asarray(BINARY[name](a.astype(Wide), b.astype(Wide)))
    check(name, got, exact, 5, [a, b])
