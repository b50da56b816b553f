"""Gathering and scattering as ONNX nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.dtypes import numpy_dtype
from samegrad.export._elementwise import numpy_number
from samegrad.export._movement import numbers_to
from samegrad.export._table import Call, row
from samegrad.export._values import Ref, Value


def _indices(call: Call, index: int) -> Ref:
    return call.builder.cast(call.ref(index), "int64")


@row("gather")
def gather(call: Call) -> Value:
    b, params, indices = call.builder, call.value(0), call.value(1)
    axis = call.attributes["axis"] % params.rank
    found = b.op("Gather", call.ref(0), _indices(call, 1), axis=axis)
    return b.value(found, [*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :]])


@row("batch_gather")
def batch_gather(call: Call) -> Value:
    b, params, indices = call.builder, call.value(0), call.value(1)
    batch = call.attributes["batch_dims"]
    places = b.op("Unsqueeze", _indices(call, 1), b.integers([-1]))
    found = b.op("GatherND", call.ref(0), places, batch_dims=batch)
    return b.value(found, [*indices.shape, *params.shape[batch + 1 :]])


@row("take_along_axis")
def take_along_axis(call: Call) -> Value:
    b, x, indices = call.builder, call.value(0), call.value(1)
    axis = call.attributes["axis"] % x.rank
    found = b.op("GatherElements", call.ref(0), _indices(call, 1), axis=axis)
    return b.value(found, indices.shape)


@row("one_hot")
def one_hot(call: Call) -> Value:
    b, attributes = call.builder, call.attributes
    dtype, depth = str(attributes["dtype"]), attributes["depth"]
    classes = numbers_to(call, call.sizes.of(depth))
    here = b.op("Equal", b.op("Unsqueeze", _indices(call, 0), b.integers([-1])), classes,
                dtype="bool")  # fmt: skip
    on, off = (b.constant(numpy_number(attributes[name], dtype), dtype) for name in ("on", "off"))
    return b.value(b.op("Where", here, on, off, dtype=dtype), [*call.value(0).shape, depth])


@row("ravel_index")
def ravel_index(call: Call) -> Value:
    """Emit the joint index of several axes, by Horner's rule."""
    b, indices, like = call.builder, call.value(0), call.value(1)
    batch, parts = call.attributes["batch_dims"], _indices(call, 0)
    count = indices.shape[-1]
    if not isinstance(count, int):
        raise AssertionError("the axes that are indexed are known")
    total, size, absent = b.constant(0, "int64"), b.integers([1]), None
    for part in range(count):
        own = b.op("Gather", parts, b.constant(part, "int64"), axis=-1)
        length = b.size_at(like, batch + part)
        total = b.op("Add", b.op("Mul", total, b.scalar(length)), own)
        size = b.op("Mul", size, length)
        below = b.op("Less", own, b.constant(0, "int64"), dtype="bool")
        absent = below if absent is None else b.op("Or", absent, below)
    if call.attributes["absent"] and absent is not None:
        total = b.op("Where", absent, b.scalar(size), total, dtype="int64")
    if not count:
        total = b.op("Expand", total, b.op("Slice", b.shape_of(indices), b.integers([0]),
                                           b.integers([-1])))  # fmt: skip
    return b.value(total, indices.shape[:-1])


# ---- scattering ----


def _extreme(dtype: str, sign: int) -> Any:
    kind = np.dtype(numpy_dtype(dtype))
    if kind.kind in "iu":
        return np.asarray(np.iinfo(kind).max if sign > 0 else np.iinfo(kind).min, kind)
    return np.asarray(sign * np.inf).astype(kind)


def _scattered(call: Call, empty: Any, reduction: str, axis: int = 0) -> Value:
    """Reduce values at indices along an axis; indices outside of it go to a row that is cut off."""
    b, like = call.builder, call.value(2)
    dtype = call.value(0).dtype
    order = [axis, *(other for other in range(like.rank) if other != axis)]
    length = b.size_at(like, axis)
    sizes = [b.op("Add", length, b.integers([1])), *(b.size_at(like, at) for at in order[1:])]
    start = b.op("Expand", b.constant(empty, dtype), b.op("Concat", *sizes, axis=0))
    index = _indices(call, 1)
    low = b.op("Less", index, b.constant(0, "int64"), dtype="bool")
    high = b.op("GreaterOrEqual", index, b.scalar(length), dtype="bool")
    index = b.op("Where", b.op("Or", low, high), b.scalar(length), index, dtype="int64")
    own = call.value(1).rank
    moved = [*range(axis, axis + own), *range(axis), *range(axis + own, call.value(0).rank)]
    updates = call.ref(0) if axis == 0 else b.permuted(call.value(0), moved)
    places = b.op("Unsqueeze", index, b.integers([-1]))
    found = b.op("ScatterND", start, places, updates, reduction=reduction)
    found = b.op("Slice", found, b.integers([0]), length, b.integers([0]))
    if axis:
        found = b.op("Transpose", found, perm=[order.index(at) for at in range(like.rank)])
    return b.value(found, like.shape)


@row("segment_sum")
def segment_sum(call: Call) -> Value:
    axis = call.attributes["axis"] % max(call.value(2).rank, 1)
    return _scattered(call, np.asarray(0), "add", axis)


@row("segment_max")
def segment_max(call: Call) -> Value:
    return _scattered(call, _extreme(call.value(0).dtype, -1), "max")


@row("segment_min")
def segment_min(call: Call) -> Value:
    return _scattered(call, _extreme(call.value(0).dtype, 1), "min")


@row("batch_segment_sum")
def batch_segment_sum(call: Call) -> Value:
    """Emit the sum by one joint index of batch and part."""
    b, values, like = call.builder, call.value(0), call.value(2)
    batch = call.attributes["batch_dims"]
    length = b.size_at(like, batch)
    offset = b.constant(0, "int64")
    for axis in range(batch):
        numbers = numbers_to(call, b.size_at(like, axis))
        shape = [1] * batch + [1] * (call.value(1).rank - batch)
        shape[axis] = -1
        offset = b.op("Add", b.op("Mul", offset, b.scalar(b.size_at(like, axis))),
                      b.op("Reshape", numbers, b.integers(shape)))  # fmt: skip
    # An axis more for what is outside, which is cut off.
    more = b.op("Add", length, b.integers([1]))
    index = _indices(call, 1)
    low = b.op("Less", index, b.constant(0, "int64"), dtype="bool")
    high = b.op("GreaterOrEqual", index, b.scalar(length), dtype="bool")
    inside = b.op("Where", b.op("Or", low, high), b.scalar(length), index, dtype="int64")
    joint = b.op("Add", b.op("Mul", offset, b.scalar(more)), inside)
    leading = [b.size_at(like, axis) for axis in range(batch)]
    rest = [b.size_at(like, axis) for axis in range(batch + 1, like.rank)]
    total = more
    for size in leading:
        total = b.op("Mul", total, size)
    start = b.op("Expand", b.constant(0, values.dtype), b.op("Concat", total, *rest, axis=0))
    places = b.op("Unsqueeze", joint, b.integers([-1]))
    found = b.op("ScatterND", start, places, call.ref(0), reduction="add")
    found = b.op("Reshape", found, b.op("Concat", *leading, more, *rest, axis=0), allowzero=1)
    found = b.op("Slice", found, b.integers([0]), length, b.integers([batch]))
    return b.value(found, like.shape)


# ---- rows ----


@row("read_row")
def read_row(call: Call) -> Value:
    b = call.builder
    found = b.op("Gather", call.ref(0), _indices(call, 1), axis=0)
    return b.value(found, call.value(0).shape[1:])


def _with_row(call: Call, into: Ref, index: Ref, part: Ref) -> Ref:
    b = call.builder
    place = b.op("Reshape", index, b.integers([1, 1]))
    return b.op("ScatterND", into, place, b.op("Unsqueeze", part, b.integers([0])))


@row("write_row")
def write_row(call: Call) -> Value:
    b = call.builder
    found = _with_row(call, call.ref(0), _indices(call, 1), call.ref(2))
    return b.value(found, call.value(0).shape)


@row("place_row")
def place_row(call: Call) -> Value:
    b, like = call.builder, call.value(2)
    dtype = call.value(0).dtype
    start = b.op("Expand", b.constant(-0.0, dtype), b.shape_of(like))
    found = _with_row(call, start, _indices(call, 1), call.ref(0))
    return b.value(found, like.shape)
