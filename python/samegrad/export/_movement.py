"""Shapes, sizes and movements of elements as ONNX nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad.export._elementwise import numpy_number
from samegrad.export._table import Call, row
from samegrad.export._values import (
    Dim,
    Ref,
    RefusedError,
    Value,
    axis_in_first,
    broadcast,
    product,
    slice_bounds,
    to_first,
)  # fmt: skip


def _dims(sizes: Sequence[Any]) -> tuple[Dim, ...]:
    return tuple(None if isinstance(size, int) and size < 0 else size for size in sizes)


# ---- sizes ----


@row("size_of", "global_size_of")
def size_of(call: Call) -> Value:
    b = call.builder
    x = call.value(0)
    total = b.integers([1])
    for axis in call.attributes["axes"]:
        total = b.op("Mul", total, b.size_at(x, axis))
    return b.value(b.scalar(total), ())


@row("dimension_sizes")
def dimension_sizes(call: Call) -> Value:
    b = call.builder
    found = b.cast(b.shape_of(call.value(0)), "int32")
    return b.value(found, (call.value(0).rank,))


@row("size_value")
def size_value(call: Call) -> Value:
    b = call.builder
    return b.value(b.scalar(call.sizes.of(call.attributes["size"])), ())


@row("replica_id")
def replica_id(call: Call) -> Value:
    return call.builder.value(call.builder.constant(0, "int64"), ())


@row("full_sizes")
def full_sizes(call: Call) -> Value:
    attributes = call.attributes
    number = numpy_number(attributes["value"], attributes["dtype"])
    return _filled(call, number, str(attributes["dtype"]), attributes["shape"])


@row("zeros")
def zeros(call: Call) -> Value:
    dtype = str(call.attributes["dtype"])
    return _filled(call, numpy_number(0, dtype), dtype, call.attributes["shape"])


def _filled(call: Call, number: Any, dtype: str, shape: Sequence[Any]) -> Value:
    b = call.builder
    found = b.op("Expand", b.constant(number, dtype), call.sizes.vector(shape))
    return b.value(found, _dims(shape))


@row("full_like")
def full_like(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    number = b.constant(numpy_number(call.attributes["value"], x.dtype), x.dtype)
    return b.value(b.op("Expand", number, b.shape_of(x)), x.shape)


@row("iota")
def iota(call: Call) -> Value:
    b, size = call.builder, call.attributes["size"]
    return b.value(numbers_to(call, call.sizes.of(size)), (size,))


@row("row_numbers")
def row_numbers(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    return b.value(numbers_to(call, b.size_at(x, 0)), x.shape[:1])


def numbers_to(call: Call, size: Ref) -> Ref:
    """Return 0, 1, … of int64, as many as a vector of one element says."""
    b = call.builder
    zero, one = b.constant(0, "int64"), b.constant(1, "int64")
    return b.op("Range", zero, b.scalar(size), one)


# ---- shapes ----


@row("reshape")
def reshape(call: Call) -> Value:
    b, x, wanted = call.builder, call.value(0), list(call.attributes["shape"])
    if -2 in wanted:
        at = wanted.index(-2)
        wanted[at] = _examples(call, x, at) if -1 in wanted else -1
    shape = call.sizes.vector(wanted)
    # allowzero: a size of 0 is one, not that of the operand.
    found = b.op("Reshape", call.ref(0), shape, allowzero=int(0 in wanted))
    return b.value(found, _inferred(x, wanted))


def _examples(call: Call, x: Value, axis: int) -> Any:
    """Return the size of the examples of an operand, next to one that is inferred."""
    varying = [size for size in x.shape if not isinstance(size, int)]
    named = [size for size in varying if isinstance(size, str) and call.sizes.is_input(size)]
    if len(named) == 1:
        return named[0]
    if not varying and axis < x.rank:
        return x.shape[axis]
    raise RefusedError("its shape has two sizes that follow from the data")


def _inferred(x: Value, wanted: list[Any]) -> tuple[Dim, ...]:
    shape = list(_dims(wanted))
    total, rest = product(x.shape), product(size for size in wanted if size != -1)
    if -1 in wanted and total is not None and rest:
        shape[wanted.index(-1)] = total // rest
    if -1 in wanted and total is None:
        symbols = [size for size in x.shape if not isinstance(size, int)]
        own = product(size for size in x.shape if isinstance(size, int))
        if len(symbols) == 1 and rest is not None and own == rest:
            shape[wanted.index(-1)] = symbols[0]
    return tuple(shape)


@row("reshape_like")
def reshape_like(call: Call) -> Value:
    b, like = call.builder, call.value(1)
    return b.value(b.op("Reshape", call.ref(0), b.shape_of(like), allowzero=1), like.shape)


@row("expand_dims")
def expand_dims(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    axes = list(call.attributes["axes"])
    rank = x.rank + len(axes)
    places = {axis % rank for axis in axes}
    rest = iter(x.shape)
    shape = [1 if axis in places else next(rest) for axis in range(rank)]
    return b.value(b.op("Unsqueeze", call.ref(0), b.integers(axes)), shape)


@row("squeeze")
def squeeze(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    axes = [axis % x.rank for axis in call.attributes["axes"]] or [
        axis for axis, size in enumerate(x.shape) if size == 1
    ]
    shape = [size for axis, size in enumerate(x.shape) if axis not in axes]
    if not axes:
        return x
    return b.value(b.op("Squeeze", call.ref(0), b.integers(axes)), shape)


@row("transpose")
def transpose(call: Call) -> Value:
    b, x, perm = call.builder, call.value(0), list(call.attributes["perm"])
    return b.value(b.permuted(x, perm), [x.shape[axis] for axis in perm])


@row("broadcast_to")
def broadcast_to(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    wanted = [1 if size == -1 else size for size in call.attributes["shape"]]
    found = b.op("Expand", call.ref(0), call.sizes.vector(wanted))
    return b.value(found, broadcast(x.shape, tuple(wanted)))


@row("broadcast_like")
def broadcast_like(call: Call) -> Value:
    b, like = call.builder, call.value(1)
    return b.value(b.op("Expand", call.ref(0), b.shape_of(like)), like.shape)


# ---- elements ----


@row("reverse")
def reverse(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    axes = [axis % x.rank for axis in call.attributes["axes"]]
    starts, ends = [2**63 - 1] * len(axes), [-(2**63)] * len(axes)
    steps = [-1] * len(axes)
    found = b.op("Slice", call.ref(0), *map(b.integers, (starts, ends, axes, steps)))
    return b.value(found, x.shape)


@row("slice")
def slice_(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    strides = list(call.attributes["strides"])
    begin, end = slice_bounds(call.attributes["begin"], call.attributes["end"], strides)
    bounds = list(zip(begin, end, strides, strict=True))
    shape = [_sliced(x.shape[axis], *bound) for axis, bound in enumerate(bounds)]
    cut = [axis for axis, bound in enumerate(bounds) if bound != (0, 2**63 - 1, 1)]
    if not cut:
        return x
    first = x.first is not None
    axes = [axis_in_first(axis, x.rank) if first else axis for axis in cut]
    starts, ends = ([part[axis] for axis in cut] for part in (begin, end))
    found = b.op(
        "Slice", b.first(x) if first else call.ref(0), call.sizes.vector(starts),
        call.sizes.vector(ends), b.integers(axes), b.integers([strides[axis] for axis in cut]),
    )  # fmt: skip
    return b.value(found, shape, first=first)


def _sliced(size: Dim, begin: Any, end: Any, stride: int) -> Dim:
    if (begin, end, stride) == (0, 2**63 - 1, 1):
        return size
    if not isinstance(size, int) or isinstance(begin, str) or isinstance(end, str):
        return 1 if (begin, end) == (0, 1) or (begin, end) == (-1, 2**63 - 1) else None
    last: int | None = end
    if end == -(2**63):
        last = None
    return len(range(size)[begin:last:stride])


@row("concat")
def concat(call: Call) -> Value:
    b = call.builder
    values = [call.value(index) for index in range(len(call.inputs))]
    rank = values[0].rank
    axis = call.attributes["axis"] % rank
    sizes = [value.shape[axis] for value in values]
    shape = list(broadcast(*(value.shape for value in values)))
    shape[axis] = product(sizes) and sum(size for size in sizes if isinstance(size, int))
    if product(sizes) is None:
        shape[axis] = None
    if rank in (4, 5) and all(value.first is not None for value in values):
        found = b.op("Concat", *map(b.first, values), axis=axis_in_first(axis, rank))
        return b.value(found, shape, first=True)
    return b.value(b.op("Concat", *map(b.plain, values), axis=axis), shape)


@row("pad")
def pad(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    paddings = [int(amount) for amount in call.attributes["paddings"]]
    pairs = list(zip(paddings[::2], paddings[1::2], strict=True))
    first = x.first is not None
    order = to_first(x.rank) if first else list(range(x.rank))
    amounts = [pairs[axis][side] for side in (0, 1) for axis in order]
    number = b.constant(numpy_number(call.attributes["value"], x.dtype), x.dtype)
    operand = b.first(x) if first else call.ref(0)
    found = b.op("Pad", operand, b.integers(amounts), number)
    shape = [
        size + sum(pair) if isinstance(size, int) else (None if any(pair) else size)
        for size, pair in zip(x.shape, pairs, strict=True)
    ]
    return b.value(found, shape, first=first)


@row("tile")
def tile(call: Call) -> Value:
    b, x, multiples = call.builder, call.value(0), list(call.attributes["multiples"])
    shape = [
        size * times if isinstance(size, int) and isinstance(times, int)
        else size if times == 1 else None
        for size, times in zip(x.shape, multiples, strict=True)
    ]  # fmt: skip
    return b.value(b.op("Tile", call.ref(0), call.sizes.vector(multiples)), shape)


@row("repeat")
def repeat(call: Call) -> Value:
    b, x = call.builder, call.value(0)
    times, axis = call.attributes["repeats"], call.attributes["axis"] % x.rank
    total = b.op("Mul", b.size_at(x, axis), b.integers([times]))
    places = b.op("Div", numbers_to(call, total), b.constant(times, "int64"))
    shape = list(x.shape)
    size = shape[axis]
    shape[axis] = size * times if isinstance(size, int) else None
    if x.first is not None:
        found = b.op("Gather", b.first(x), places, axis=axis_in_first(axis, x.rank))
        return b.value(found, shape, first=True)
    return b.value(b.op("Gather", call.ref(0), places, axis=axis), shape)
