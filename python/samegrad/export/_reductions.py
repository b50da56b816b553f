"""Reductions, scans, sorting and matrix products as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad.export._elementwise import number
from samegrad.export._table import Call, row
from samegrad.export._values import Dim, Ref, RefusedError, Value, axis_in_first, broadcast

_REDUCTIONS = {
    "reduce_sum": "ReduceSum", "reduce_prod": "ReduceProd", "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}  # fmt: skip


def _reduced(x: Value, axes: list[int], keepdims: bool) -> list[Dim]:
    sizes = list(x.shape)
    kept: list[Dim] = [1 if axis in axes else size for axis, size in enumerate(sizes)]
    return kept if keepdims else [size for axis, size in enumerate(sizes) if axis not in axes]


def _reduce(call: Call, compute: Any) -> Value:
    """Reduce along axes, channels first where the operand is so and the result has no layout."""
    b, x = call.builder, call.value(0)
    axes = sorted(axis % x.rank for axis in call.attributes["axes"]) if x.rank else []
    if not axes:
        return x
    keepdims = bool(call.attributes["keepdims"])
    shape = _reduced(x, axes, keepdims)
    whole = axes == list(range(1, x.rank - 1))
    if x.first is not None and (keepdims or whole):
        places = b.integers([axis_in_first(axis, x.rank) for axis in axes])
        return b.value(compute(b.first(x), places, keepdims), shape, first=keepdims)
    return b.value(compute(call.ref(0), b.integers(axes), keepdims), shape)


def _enter_reduction(name: str, op: str) -> None:
    def compute(call: Call) -> Value:
        return _reduce(call, lambda x, axes, keep: call.builder.op(op, x, axes, keepdims=int(keep)))

    row(name)(compute)


for _name, _op in _REDUCTIONS.items():
    _enter_reduction(_name, _op)


@row("reduce_any")
def reduce_any(call: Call) -> Value:
    b = call.builder

    def compute(x: Ref, axes: Ref, keep: bool) -> Ref:
        count = b.op("ReduceSum", b.cast(x, "int64"), axes, keepdims=int(keep))
        return b.op("Greater", count, b.constant(0, "int64"), dtype="bool")

    return _reduce(call, compute)


@row("reduce_all")
def reduce_all(call: Call) -> Value:
    b = call.builder

    def compute(x: Ref, axes: Ref, keep: bool) -> Ref:
        count = b.op("ReduceSum", b.cast(b.op("Not", x), "int64"), axes, keepdims=int(keep))
        return b.op("Equal", count, b.constant(0, "int64"), dtype="bool")

    return _reduce(call, compute)


@row("nonzero_rows")
def nonzero_rows(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    found = b.op("Not", b.op("Equal", call.ref(0), number(b, 0, call.ref(0)), dtype="bool"))
    if x.rank > 1:
        axes = b.integers(range(1, x.rank))
        count = b.op("ReduceSum", b.cast(found, "int64"), axes, keepdims=1)
        found = b.op("Greater", count, b.constant(0, "int64"), dtype="bool")
    return b.value(b.op("Expand", found, b.shape_of(x)), x.shape)


def _arg(op: str) -> Any:
    def emit(call: Call) -> Value:
        b, x = call.builder, call.value(0)
        axis = call.attributes["axis"] % x.rank
        found = b.op(op, call.ref(0), dtype="int64", axis=axis, keepdims=0)
        return b.value(found, _reduced(x, [axis], False))

    return emit


row("arg_max")(_arg("ArgMax"))
row("arg_min")(_arg("ArgMin"))


@row("cumsum")
def cumsum(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    axis = b.constant(call.attributes["axis"] % x.rank, "int64")
    found = b.op(
        "CumSum", call.ref(0), axis, exclusive=int(call.attributes["exclusive"]),
        reverse=int(call.attributes["reverse"]),
    )  # fmt: skip
    return b.value(found, x.shape)


# ---- order ----


def _top(call: Call, size: Ref, axis: int, largest: bool, shape: list[Dim]) -> Value:
    """Return the positions of the largest or smallest elements along an axis, of int32."""
    b, x = call.builder, call.ref(0)
    if x.dtype in ("float16", "bfloat16"):
        x = b.cast(x, "float32")
    elif x.dtype not in ("float32", "float64", "int32", "int64"):
        x = b.cast(x, "int64")
    values, places = Ref(b.name("values"), x.dtype), Ref(b.name("places"), "int64")
    attributes = {"axis": axis, "largest": int(largest), "sorted": 1}
    b.emit("TopK", [x, size], [values, places], **attributes)
    return b.value(b.cast(places, "int32"), shape)


@row("arg_sort")
def arg_sort(call: Call) -> Value:
    x = call.value(0)
    axis = call.attributes["axis"] % x.rank
    size = call.builder.size_at(x, axis)
    return _top(call, size, axis, bool(call.attributes["descending"]), list(x.shape))


@row("top_k")
def top_k(call: Call) -> Value:
    x, size = call.value(0), call.attributes["k"]
    return _top(call, call.sizes.of(size), x.rank - 1, True, [*x.shape[:-1], size])


@row("search_sorted")
def search_sorted(call: Call) -> Value:
    b, sequence, values = call.builder, call.value(0), call.value(1)
    last = b.integers([-1])
    among = call.ref(0)
    if sequence.rank > 1:
        among = b.op("Unsqueeze", among, b.integers([-2]))
    op = "LessOrEqual" if call.attributes["right"] else "Less"
    before = b.op(op, among, b.op("Unsqueeze", call.ref(1), last), dtype="bool")
    count = b.op("ReduceSum", b.cast(before, "int32"), last, keepdims=0)
    return b.value(count, values.shape)


# ---- products ----


@row("matmul", "matmul_bias")
def matmul(call: Call) -> Value:
    b = call.builder
    refs, shapes = [], []
    for index, name in enumerate(("transpose_a", "transpose_b")):
        x = call.value(index)
        perm = list(range(x.rank))
        if call.attributes.get(name):
            perm[-2:] = perm[-1], perm[-2]
            refs.append(b.permuted(x, perm))
        else:
            refs.append(b.plain(x))
        shapes.append([x.shape[axis] for axis in perm])
    found = b.op("MatMul", *refs)
    leading = broadcast(tuple(shapes[0][:-2]) or (1,), tuple(shapes[1][:-2]) or (1,))
    rank = max(len(shapes[0]), len(shapes[1])) - 2
    shape = [*(leading if rank else ()), shapes[0][-2], shapes[1][-1]]
    if len(call.inputs) > 2:
        found = b.op("Add", found, call.ref(2))
    if call.attributes.get("activation") == "relu":
        found = b.op("Relu", found)
    return b.value(found, shape)


@row("determinant")
def determinant(call: Call) -> Value:
    return call.builder.value(call.builder.op("Det", call.ref(0)), call.value(0).shape[:-2])


@row("dot_product_attention")
def dot_product_attention(call: Call) -> Value:
    """Emit the scores, masks and weights of (batch, length, heads, width)."""
    b, attributes = call.builder, call.attributes
    if attributes.get("rate"):
        raise RefusedError(f"{b.format} has no draws that repeat ours")
    query, key, value = (call.value(index) for index in range(3))
    # Half types are rounded once, at the end.
    wide = "float64" if query.dtype == "float64" else "float32"
    q, v = (b.cast(b.permuted(x, [0, 2, 1, 3]), wide) for x in (query, value))
    k = b.cast(b.permuted(key, [0, 2, 3, 1]), wide)
    scores = b.op("Mul", b.op("MatMul", q, k), number(b, attributes["scale"], q))
    allowed = None
    for index in range(3, len(call.inputs)):
        mask = call.ref(index)
        allowed = mask if allowed is None else b.op("And", allowed, mask)
    if allowed is not None:
        least = -0.7 * float(np.finfo(wide).max)
        scores = b.op("Where", allowed, scores, number(b, least, q), dtype=q.dtype)
    weights = b.op("Softmax", scores, axis=-1)
    if allowed is not None and attributes["zero_blind"]:
        weights = b.op("Where", allowed, weights, number(b, 0, q), dtype=q.dtype)
    found = b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    return b.value(b.cast(found, query.dtype), [*query.shape[:3], value.shape[3]])


@row("sparse_softmax_cross_entropy")
def sparse_softmax_cross_entropy(call: Call) -> list[Value]:
    b, logits, labels = call.builder, call.value(0), call.value(1)
    x = call.ref(0)
    logs = b.op("LogSoftmax", x, axis=-1)
    last = b.integers([-1])
    places = b.op("Unsqueeze", b.cast(call.ref(1), "int64"), last)
    loss = b.op("Neg", b.op("Squeeze", b.op("GatherElements", logs, places, axis=-1), last))
    smoothing = float(call.attributes["smoothing"])
    if smoothing:
        # As much as the label lacks is distributed equally over the other classes.
        classes = b.cast(b.scalar(b.size_at(logits, -1)), x.dtype)
        others = b.op("Max", b.op("Sub", classes, number(b, 1, x)), number(b, 1, x))
        total = b.op("ReduceSum", logs, last, keepdims=0)
        rest = b.op("Div", b.op("Add", total, loss), others)
        loss = b.op(
            "Sub", b.op("Mul", loss, number(b, 1 - smoothing, x)),
            b.op("Mul", rest, number(b, smoothing, x)),
        )  # fmt: skip
    probabilities = b.op("Softmax", x, axis=-1)
    return [b.value(loss, labels.shape), b.value(probabilities, logits.shape)]


@row("softmax_cross_entropy")
def softmax_cross_entropy(call: Call) -> Any:
    b, x = call.builder, call.ref(0)
    logs, last = b.op("LogSoftmax", x, axis=-1), b.integers([-1])
    total = b.op("ReduceSum", b.op("Mul", logs, call.ref(1)), last, keepdims=0)
    loss = b.value(b.op("Neg", total), call.value(0).shape[:-1])
    if call.results == 1:
        return loss
    return [loss, b.value(b.op("Softmax", x, axis=-1), call.value(0).shape)]
