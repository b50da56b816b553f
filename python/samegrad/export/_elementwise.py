"""Elementwise operations as ONNX nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from samegrad._base.dtypes import numpy_dtype
from samegrad.export._builder import Builder
from samegrad.export._table import Call, elementwise, row
from samegrad.export._values import Ref, Value

_SAME = {
    "neg": "Neg", "abs": "Abs", "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "sigmoid": "Sigmoid", "softplus": "Softplus", "erf": "Erf", "floor": "Floor", "ceil": "Ceil",
    "round": "Round", "reciprocal": "Reciprocal", "add": "Add", "sub": "Sub", "mul": "Mul",
    "div": "Div", "pow": "Pow", "maximum": "Max", "minimum": "Min", "select": "Where",
}  # fmt: skip
_TESTS = {
    "is_nan": "IsNaN", "is_inf": "IsInf", "equal": "Equal", "less": "Less",
    "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual",
    "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor", "logical_not": "Not",
}  # fmt: skip
_BITS = {"bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor"}


def direct(op: str, dtype: str | None = None) -> Any:
    """Return an elementwise operation that is one operator of the format."""

    def emit(b: Builder, *operands: Ref) -> Ref:
        result = operands[1].dtype if op == "Where" else dtype
        return b.op(op, *operands, dtype=result)

    return emit


for _name, _op in (_SAME | _BITS).items():
    elementwise(_name)(direct(_op))
for _name, _op in _TESTS.items():
    elementwise(_name)(direct(_op, "bool"))


def number(b: Builder, value: float, like: Ref) -> Ref:
    """Return a scalar in the dtype of a tensor."""
    return b.constant(np.asarray(value), like.dtype)


def _is_float(x: Ref) -> bool:
    return x.dtype in ("float16", "bfloat16", "float32", "float64")


@elementwise("not_equal")
def not_equal(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.op("Not", b.op("Equal", x, y, dtype="bool"))


@elementwise("is_finite")
def is_finite(b: Builder, x: Ref) -> Ref:
    infinite = b.op("IsInf", x, dtype="bool")
    return b.op("Not", b.op("Or", infinite, b.op("IsNaN", x, dtype="bool")))


@elementwise("sign")
def sign(b: Builder, x: Ref) -> Ref:
    found = b.op("Sign", x)
    if not _is_float(x):
        return found
    return b.op("Where", b.op("IsNaN", x, dtype="bool"), x, found, dtype=x.dtype)


@elementwise("square")
def square(b: Builder, x: Ref) -> Ref:
    return b.op("Mul", x, x)


@elementwise("squared_difference")
def squared_difference(b: Builder, x: Ref, y: Ref) -> Ref:
    return square(b, b.op("Sub", x, y))


@elementwise("rsqrt")
def rsqrt(b: Builder, x: Ref) -> Ref:
    return b.op("Reciprocal", b.op("Sqrt", x))


@elementwise("relu")
def relu(b: Builder, x: Ref) -> Ref:
    return b.op("Relu", x) if _is_float(x) else b.op("Max", x, number(b, 0, x))


@elementwise("expm1")
def expm1(b: Builder, x: Ref) -> Ref:
    # tanh(x / 2) (exp(x) + 1), exact near 0.
    half = b.op("Tanh", b.op("Mul", x, number(b, 0.5, x)))
    return b.op("Mul", half, b.op("Add", b.op("Exp", x), number(b, 1, x)))


@elementwise("log1p")
def log1p(b: Builder, x: Ref) -> Ref:
    # log(u) x / (u - 1) with u = 1 + x corrects the rounding of u.
    one = number(b, 1, x)
    u = b.op("Add", x, one)
    rounded = b.op("Sub", u, one)
    far = b.op("Or", b.op("Equal", rounded, number(b, 0, x), dtype="bool"),
               b.op("IsInf", u, dtype="bool"))  # fmt: skip
    divisor = b.op("Where", far, one, rounded, dtype=x.dtype)
    found = b.op("Mul", b.op("Log", u), b.op("Div", x, divisor))
    return b.op("Where", far, b.op("Where", b.op("IsInf", u, dtype="bool"), u, x, dtype=x.dtype),
                found, dtype=x.dtype)  # fmt: skip


@elementwise("flush_denormals")
def flush_denormals(b: Builder, x: Ref) -> Ref:
    least = np.finfo("float64" if x.dtype == "float64" else "float32").tiny
    if x.dtype in ("float16", "bfloat16"):
        return x if x.dtype == "float16" else b.cast(flush_denormals(b, b.cast(x, "float32")), x[1])
    small = b.op("Less", b.op("Abs", x), number(b, float(least), x), dtype="bool")
    zero = b.op("Mul", b.op("Sign", x), number(b, 0, x))
    return b.op("Where", small, zero, x, dtype=x.dtype)


@elementwise("flushed_sum")
def flushed_sum(b: Builder, x: Ref, y: Ref) -> Ref:
    return flush_denormals(b, b.op("Add", x, y))


@elementwise("sub_flushed")
def sub_flushed(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.op("Sub", x, flush_denormals(b, y))


def _zero_where(b: Builder, test: Ref, compute: Any) -> Ref:
    """Return 0 where an operand is 0, and what is computed of others elsewhere."""
    zero = b.op("Equal", test, number(b, 0, test), dtype="bool")
    safe = b.op("Where", zero, number(b, 1, test), test, dtype=test.dtype)
    return b.op("Where", zero, number(b, 0, test), compute(safe), dtype=test.dtype)


@elementwise("div_no_nan")
def div_no_nan(b: Builder, x: Ref, y: Ref) -> Ref:
    return _zero_where(b, y, lambda safe: b.op("Div", x, safe))


@elementwise("multiply_no_nan")
def multiply_no_nan(b: Builder, x: Ref, y: Ref) -> Ref:
    return _zero_where(b, y, lambda safe: b.op("Mul", x, safe))


@elementwise("xdivy")
def xdivy(b: Builder, x: Ref, y: Ref) -> Ref:
    return _zero_where(b, x, lambda safe: b.op("Div", safe, y))


@elementwise("xlogy")
def xlogy(b: Builder, x: Ref, y: Ref) -> Ref:
    return _zero_where(b, x, lambda safe: b.op("Mul", safe, b.op("Log", y)))


@elementwise("mod")
def mod(b: Builder, x: Ref, y: Ref) -> Ref:
    if not _is_float(x):
        return b.op("Mod", x, y)
    rest = b.op("Mod", x, y, fmod=1)
    zero = number(b, 0, x)
    signs = b.op("Xor", b.op("Less", rest, zero, dtype="bool"),
                 b.op("Less", y, zero, dtype="bool"))  # fmt: skip
    apart = b.op("And", signs, not_equal(b, rest, zero))
    return b.op("Where", apart, b.op("Add", rest, y), rest, dtype=x.dtype)


@elementwise("floor_div")
def floor_div(b: Builder, x: Ref, y: Ref) -> Ref:
    if _is_float(x):
        return b.op("Floor", b.op("Div", x, y))
    return b.op("Div", b.op("Sub", x, b.op("Mod", x, y)), y)


@elementwise("atan2")
def atan2(b: Builder, y: Ref, x: Ref) -> Ref:
    both = b.op("And", b.op("IsInf", y, dtype="bool"), b.op("IsInf", x, dtype="bool"))
    y = b.op("Where", both, b.op("Sign", y), y, dtype=y.dtype)
    x = b.op("Where", both, b.op("Sign", x), x, dtype=x.dtype)
    zero = number(b, 0, x)
    no_x, no_y = (b.op("Equal", one, zero, dtype="bool") for one in (x, y))
    vertical = b.op("And", no_x, b.op("Not", no_y))
    negative_x, negative_y = (_is_negative(b, one) for one in (x, y))
    safe = b.op("Where", no_x, number(b, 1, x), x, dtype=x.dtype)
    angle = b.op("Where", b.op("And", no_x, no_y), y, b.op("Atan", b.op("Div", y, safe)),
                 dtype=x.dtype)  # fmt: skip
    half, none = number(b, math.pi / 2, x), number(b, math.pi, x)
    turn = b.op("Where", negative_y, b.op("Neg", none), none, dtype=x.dtype)
    turned = b.op("Where", negative_x, b.op("Add", angle, turn), angle, dtype=x.dtype)
    upright = b.op("Mul", b.op("Sign", y), half)
    return b.op("Where", vertical, upright, turned, dtype=x.dtype)


def _is_negative(b: Builder, x: Ref) -> Ref:
    """Return where a number has the sign bit, which a zero may have."""
    zero = number(b, 0, x)
    below = b.op("Less", b.op("Reciprocal", x), zero, dtype="bool")
    is_zero = b.op("Equal", x, zero, dtype="bool")
    less = b.op("Less", x, zero, dtype="bool")
    return b.op("Or", less, b.op("And", is_zero, below))


# 2 to the power 0, 1, … 63, the last one as its bits are.
_POWERS = np.array([1 << bit for bit in range(63)] + [-(1 << 63)], dtype=np.int64)


@elementwise("shift_left")
def shift_left(b: Builder, x: Ref, y: Ref) -> Ref:
    powers = b.op("Gather", b.constant(_POWERS), b.cast(y, "int64"), dtype="int64")
    return b.cast(b.op("Mul", b.cast(x, "int64"), powers), x.dtype)


@elementwise("shift_right")
def shift_right(b: Builder, x: Ref, y: Ref) -> Ref:
    if x.dtype == "uint64":
        return b.op("BitShift", x, y, direction="RIGHT")
    wide, bits = b.cast(x, "int64"), b.cast(y, "int64")
    most = b.constant(62, "int64")
    powers = b.op("Gather", b.constant(_POWERS), b.op("Min", bits, most), dtype="int64")
    found = floor_div(b, wide, powers)
    # 63 bits leave the sign.
    last = b.op("Less", most, bits, dtype="bool")
    twice = floor_div(b, found, b.constant(2, "int64"))
    return b.cast(b.op("Where", last, twice, found, dtype="int64"), x.dtype)


@row("cast")
def cast(call: Call) -> Value:
    dtype = call.attributes["dtype"]
    x = call.value(0)
    if dtype == "bool" and x.dtype != "bool":
        return call.builder.elementwise(lambda b, x: not_equal(b, x, number(b, 0, x)), call.inputs)
    return call.builder.elementwise(lambda b, x: b.cast(x, str(dtype)), call.inputs)


@row(
    "identity", "stop_gradient", "as_examples", "as_rows", "computed_again", "replica_share",
    "all_reduce", "collective_broadcast",
)  # fmt: skip
def identity(call: Call) -> Any:
    return call.inputs[0]


@row("gradient_by_graph")
def results_of_a_rule(call: Call) -> Any:
    return call.inputs[: call.results]


@row("softmax")
def softmax(call: Call) -> Value:
    return call.builder.value(call.builder.op("Softmax", call.ref(0), axis=-1), call.value(0).shape)


@row("log_softmax")
def log_softmax(call: Call) -> Value:
    found = call.builder.op("LogSoftmax", call.ref(0), axis=-1)
    return call.builder.value(found, call.value(0).shape)


def numpy_number(value: Any, dtype: str) -> Any:
    """Return a number as an array of a dtype without axes."""
    return np.asarray(value).astype(numpy_dtype(dtype))
