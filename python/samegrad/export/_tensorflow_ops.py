"""Operators of ONNX as operations of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad.export._builder import Node
from samegrad.export._tensorflow_graph import DType, Graph
from samegrad.export._values import Ref

# Operators with the same operands, or with one more that is an attribute of ONNX.
_NAMES = {
    "And": "LogicalAnd", "Or": "LogicalOr", "Not": "LogicalNot", "Xor": "NotEqual",
    "IsNaN": "IsNan", "LessOrEqual": "LessEqual", "GreaterOrEqual": "GreaterEqual",
    "Max": "Maximum", "Min": "Minimum", "Det": "MatrixDeterminant", "Gather": "GatherV2",
    "BitShift": "RightShift", "Where": "SelectV2", "ReduceSum": "Sum", "ReduceProd": "Prod",
    "ReduceMax": "Max", "ReduceMin": "Min", "CumSum": "Cumsum",
}  # fmt: skip
_OPERANDS = {"Gather": "axis", "ArgMax": "axis", "ArgMin": "axis", "Transpose": "perm"}
_RENAMED = {"keepdims": "keep_dims"}
_FLAGS = ("keepdims", "exclusive", "reverse")
_DROPPED = ("axis", "perm", "direction", "allowzero")

Lowering = Callable[[Graph, Node, list[Any]], Any]
LOWERINGS: dict[str, Lowering] = {}


def lowering(*names: str) -> Callable[[Lowering], Lowering]:
    """Enter a function of a graph, a node and its operands, which returns the results."""

    def enter(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return enter


def lower(graph: Graph, node: Node) -> None:
    """Append what a node computes."""
    graph.location = node.name.rsplit("/", 1)[0]
    inputs = [None if ref is None else graph.find(ref.name) for ref in node.inputs]
    emit: Lowering = LOWERINGS.get(node.op, _same)
    found = emit(graph, node, inputs)
    graph.bind(node.outputs, found if isinstance(found, list) else [found])


def _same(g: Graph, node: Node, inputs: list[Any]) -> list[Ref]:
    attributes = {
        _RENAMED.get(key, key): bool(value) if key in _FLAGS else value
        for key, value in node.attributes.items() if key not in _DROPPED
    }  # fmt: skip
    if node.op in _OPERANDS:
        inputs = [*inputs, g.constant(node.attributes.get(_OPERANDS[node.op], 0))]
    if node.op.startswith("Arg"):
        attributes = {"output_type": DType("int64")}
    dtype = node.outputs[0].dtype
    return results_of(g.op(_NAMES.get(node.op, node.op), *inputs, dtype=dtype, **attributes), node)


def results_of(first: Ref, node: Node) -> list[Ref]:
    """Return all results of a node that has as many as one of ONNX."""
    rest = enumerate(node.outputs[1:], 1)
    return [first, *(Ref(f"{first.name}:{at}", ref.dtype) for at, ref in rest)]


def _numbers(g: Graph, node: Node, at: int) -> list[int]:
    """Return the elements of an operand that the export knows."""
    ref = node.inputs[at]
    return [] if ref is None else [int(number) for number in g.arrays[ref.name][0]]


@lowering("Div", "Mod")
def _divided(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    if node.op == "Div":
        return g.op("TruncateDiv" if "int" in inputs[0].dtype else "RealDiv", *inputs)
    return g.op("TruncateMod" if "fmod" in node.attributes else "FloorMod", *inputs)


@lowering("MatMul")
def _product(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    # The second version is wrong in TensorFlow 2.21 where operands are broadcast.
    return g.op("BatchMatMulV3", *inputs, Tout=DType(inputs[0].dtype))


@lowering("Cast")
def _cast(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    return cast(g, inputs[0], node.attributes["to"])


def cast(g: Graph, x: Ref, dtype: str) -> Ref:
    """Return a tensor in another dtype."""
    return g.op("Cast", x, dtype=dtype, DstT=DType(dtype))


def sizes_of(g: Graph, x: Ref, start: int | None = None, end: int = 0) -> Ref:
    """Return the sizes of a tensor, or those of some axes, of int64."""
    found = g.op("Shape", x, dtype="int64", out_type=DType("int64"))
    if start is None:
        return found
    return g.op("StridedSlice", found, *(g.constant([at]) for at in (start, end, 1)))


@lowering("Shape")
def _shape(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    return sizes_of(g, inputs[0], **node.attributes)


@lowering("Slice")
def _slice(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    """Emit a slice of all axes up to the last one that is cut; others have any bound, masked."""
    x, *bounds = inputs[:3]
    axes = _numbers(g, node, 3)
    steps = _numbers(g, node, 4) if len(inputs) > 4 else [1] * len(axes)
    all_axes = range(max(axes) + 1)
    places = [axes.index(axis) if axis in axes else -1 for axis in all_axes]
    if places != list(range(len(axes))):
        order = g.constant([max(place, 0) for place in places])
        bounds = [g.op("GatherV2", bound, order, g.constant(0)) for bound in bounds]
    strides = g.constant([1 if place < 0 else steps[place] for place in places])
    mask = sum(1 << axis for axis in all_axes if places[axis] < 0)
    return g.op("StridedSlice", x, *bounds, strides, begin_mask=mask, end_mask=mask)


@lowering("Expand")
def _expand(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    x, shape = inputs
    return g.op("BroadcastTo", x, g.op("BroadcastArgs", sizes_of(g, x), shape))


@lowering("Pad")
def _pad(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    x, _, value = inputs
    pads = _numbers(g, node, 1)
    half = len(pads) // 2
    pairs = zip(pads[:half], pads[half:], strict=True)
    return g.op("PadV2", x, g.constant(list(pairs)), value)


@lowering("Unsqueeze")
def _unsqueeze(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    x = inputs[0]
    # From the front those that count from there, then from the back.
    for axis in sorted(_numbers(g, node, 1), key=lambda axis: (axis < 0, abs(axis))):
        x = g.op("ExpandDims", x, g.constant(axis))
    return x  # type: ignore[no-any-return]


@lowering("Squeeze")
def _squeeze(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    return squeezed(g, inputs[0], *_numbers(g, node, 1))


def squeezed(g: Graph, x: Ref, *axes: int) -> Ref:
    """Return a tensor without axes of size 1."""
    return g.op("Squeeze", x, squeeze_dims=list(axes))


@lowering("Concat")
def _concat(g: Graph, node: Node, inputs: list[Any]) -> Any:
    axis = g.constant(node.attributes["axis"])
    if len(inputs) == 1:
        return inputs
    return g.op("ConcatV2", *inputs, axis, Tidx=DType("int64"), N=len(inputs))


@lowering("GatherND")
def _gather_nd(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    batch = node.attributes["batch_dims"]
    index = squeezed(g, inputs[1], -1)  # one axis is indexed
    return g.op("GatherV2", inputs[0], index, g.constant(batch), batch_dims=batch)


@lowering("GatherElements")
def _gather_elements(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    return g.op("GatherV2", *inputs, g.constant(-1), batch_dims=-1)  # rows bring the axis there


@lowering("ScatterND")
def _scatter(g: Graph, node: Node, inputs: list[Any]) -> Ref:
    way = node.attributes.get("reduction", "update")
    return g.op(f"TensorScatter{way.capitalize()}", *inputs)


@lowering("TopK")
def _top(g: Graph, node: Node, inputs: list[Any]) -> list[Ref]:
    x, count = inputs
    if not node.attributes["largest"]:  # the order of its opposite
        x = g.op("Invert" if "int" in x.dtype else "Neg", x)
    found = g.op("TopKV2", x, squeezed(g, count, 0), index_type=DType("int64"))
    return results_of(found, node)  # rows bring the axis to the end
