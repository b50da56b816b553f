"""Operations that TensorFlow has and ONNX lacks, or has in another layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from samegrad.export import _convert  # noqa: F401 - it fills the table of all formats
from samegrad.export._builder import Builder
from samegrad.export._elementwise import direct, number
from samegrad.export._table import ROWS, TENSORFLOW_ROWS, Call, elementwise, row
from samegrad.export._values import Dim, Missing, Ref, RefusedError, Value
from samegrad.export._windows import spatial_sizes, window_attributes

_FUNCTIONS = {
    "lgamma": "Lgamma", "digamma": "Digamma", "polygamma": "Polygamma", "zeta": "Zeta",
    "erfc": "Erfc", "erfinv": "Erfinv", "ndtri": "Ndtri", "bessel_i0e": "BesselI0e",
    "bessel_i1e": "BesselI1e", "igamma": "Igamma", "igammac": "Igammac", "next_after": "NextAfter",
    "igamma_grad_a": "IgammaGradA",
}  # fmt: skip
# The axis that TensorFlow's operations take.
_AXES = {"arg_sort": -1, "take_along_axis": -1, "cumprod": 0, "affine_scan": 0}


for _name, _op in _FUNCTIONS.items():
    elementwise(_name, rows=TENSORFLOW_ROWS)(direct(_op))


def _enter_along(name: str, place: int) -> None:
    @row(name, rows=TENSORFLOW_ROWS)
    def along(call: Call) -> Value:
        """Emit a row with two axes swapped before and after."""
        b, order = call.builder, list(range(call.value(0).rank))
        axis = order[call.attributes["axis"]]
        order[axis], order[place] = order[place], order[axis]
        swapped = [_permuted(b, call.value(at), order) for at in range(len(call.inputs))]
        attributes = {**call.attributes, "axis": place}
        found = ROWS[name](call._replace(inputs=swapped, attributes=attributes))
        return _permuted(b, found, order)


def _permuted(b: Builder, x: Value, order: list[int]) -> Value:
    if order == sorted(order):
        return x
    return b.value(b.permuted(x, order), [x.shape[axis] for axis in order])


for _name, _place in _AXES.items():
    _enter_along(_name, _place)


# ---- windows ----


def _window(call: Call, x: Ref, value: float = 0.0) -> tuple[Ref, dict[str, Any]]:
    """Return an operand with its padding, and strides and dilations of all axes."""
    b, pads = call.builder, window_attributes(call.attributes)["pads"]
    attributes = {key: [1, *call.attributes[key], 1] for key in ("strides", "dilations")}
    half = len(pads) // 2
    amounts = b.integers([0, *pads[:half], 0, 0, *pads[half:], 0])
    found = b.op("Pad", x, amounts, number(b, value, x)) if any(pads) else x
    return found, {**attributes, "padding": "VALID"}


def _shape(call: Call, window: Sequence[Any], channels: Dim) -> list[Dim]:
    x = call.value(0)
    return [x.shape[0], *spatial_sizes(x, window, window_attributes(call.attributes)), channels]


def _numbers(sizes: Sequence[Dim]) -> list[int]:
    if not all(isinstance(size, int) for size in sizes):
        raise RefusedError("TensorFlow asks for weights whose sizes are known")
    return [size for size in sizes if isinstance(size, int)]


def _check_groups(groups: int, x: Value) -> None:
    if groups > 1 and x.rank == 5:
        raise RefusedError("TensorFlow has no groups in three dimensions")


@row("conv2d", "conv2d_bias", "conv3d", "conv3d_bias", rows=TENSORFLOW_ROWS)
def convolution(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    *window, own, filters = _numbers(call.value(1).shape)
    groups = _numbers(x.shape[-1:])[0] // max(own, 1)
    _check_groups(groups, x)
    operands = [call.ref(at) for at in range(len(call.inputs))]
    # Half types are rounded once, at the end.
    wide = "float64" if x.dtype == "float64" else "float32"
    operand, taps, *bias = (b.cast(ref, wide) for ref in operands)
    operand, attributes = _window(call, operand)
    op = f"Conv{x.rank - 2}D"
    if groups > 1 and own == 1:
        op = "DepthwiseConv2dNative"
        taps = b.op("Reshape", taps, b.integers([*window, groups, filters // groups]))
    found = b.op(op, operand, taps, **attributes)
    for one in bias:
        found = b.op("Add", found, one)
    if call.attributes.get("activation") == "relu":
        found = b.op("Relu", found)
    return b.value(b.cast(found, x.dtype), _shape(call, window, filters))


@row("conv2d_transpose", "conv3d_transpose", rows=TENSORFLOW_ROWS)
def transposed_convolution(call: Call) -> Value:
    """Emit the gradient of a convolution without padding; what was padding is cut off."""
    b, x, sizes = call.builder, call.value(0), list(call.attributes["size"])
    groups = call.attributes["groups"]
    _check_groups(groups, x)
    filters = _numbers(call.value(1).shape)[-2] * groups
    pads = window_attributes(call.attributes)["pads"]
    _, attributes = _window(call, call.ref(0))
    before, after = b.integers(pads[: len(sizes)]), b.integers(pads[len(sizes) :])
    end = b.op("Add", before, call.sizes.vector(sizes))
    whole = b.op("Concat", b.size_at(x, 0), b.op("Add", end, after), b.integers([filters]), axis=0)
    op = "Conv2DBackpropInput" if x.rank == 4 else "Conv3DBackpropInputV2"
    operands = [b.cast(whole, "int32"), call.ref(1), call.ref(0)]
    found = b.op(op, *operands, dtype=x.dtype, **attributes)
    if any(pads):
        found = b.op("Slice", found, before, end, b.integers(range(1, x.rank - 1)))
    return b.value(found, [x.shape[0], *sizes, filters])


def _pooled(call: Call, op: str, x: Ref, value: float) -> Ref:
    operand, attributes = _window(call, x, value)
    if any(rate != 1 for rate in attributes.pop("dilations")):
        raise RefusedError("TensorFlow has no pooling with dilations")
    return call.builder.op(op, operand, ksize=[1, *call.attributes["window"], 1], **attributes)


@row("max_pool2d", rows=TENSORFLOW_ROWS)
def max_pool(call: Call) -> list[Any]:
    found = _pooled(call, "MaxPool", call.ref(0), -math.inf)
    shape = _shape(call, call.attributes["window"], call.value(0).shape[-1])
    place = Missing("TensorFlow has another place of the largest element of a window")
    return [call.builder.value(found, shape), place]


@row("avg_pool2d", rows=TENSORFLOW_ROWS)
def average_pool(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    found = _pooled(call, "AvgPool", call.ref(0), 0.0)
    if any(call.attributes["padding"]):  # divided by the part of each window outside of the padding
        one = b.integers([1])
        sizes = b.op("Concat", one, b.size_at(x, 1), b.size_at(x, 2), one, axis=0)
        ones = b.op("Expand", number(b, 1, found), sizes)
        found = b.op("Div", found, _pooled(call, "AvgPool", ones, 0.0))
    return b.value(found, _shape(call, call.attributes["window"], x.shape[-1]))


@elementwise("betainc", rows=TENSORFLOW_ROWS)
def betainc(b: Builder, *operands: Ref) -> Ref:
    shape, *others = (b.op("Shape", x, dtype="int64") for x in operands)
    for other in others:
        shape = b.op("BroadcastArgs", shape, other)
    return b.op("Betainc", *(b.op("Expand", x, shape) for x in operands))


# ---- matrices ----


def _enter_matrix(name: str, op: str, *attributes: str, results: int = 1) -> None:
    @row(name, rows=TENSORFLOW_ROWS)
    def emit(call: Call) -> list[Value]:
        b = call.builder
        made = [Ref(b.name(op.lower()), call.value(0).dtype) for _ in range(results)]
        b.emit(op, [call.ref(at) for at in range(len(call.inputs))], made,
               **{key: bool(call.attributes[key]) for key in attributes})  # fmt: skip
        last = call.value(len(call.inputs) - 1)
        shape = last.shape[:-2] if results > 1 else last.shape
        return [b.value(ref, shape) for ref in made]


_enter_matrix("cholesky", "Cholesky")
_enter_matrix("triangular_solve", "MatrixTriangularSolve", "lower", "adjoint")
_enter_matrix("matrix_solve", "MatrixSolve", "adjoint")
_enter_matrix("matrix_inverse", "MatrixInverse", "adjoint")
_enter_matrix("slogdet", "LogMatrixDeterminant", results=2)
