"""Functions of shapes: `tf.shape` of a ragged tensor, and tensors made in a ragged shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops import arrays
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_places import in_rows, known
from samegrad._tensor.tensor import convert_to_tensor
from samegrad._tensor.text import Text, is_text, leaf_of
from samegrad.ragged import _moved
from samegrad.ragged._dynamic_shape import DynamicRaggedShape
from samegrad.ragged._row_partition import RowPartition

Array = NDArray[Any]
Function = Callable[..., Any]


def shape(function: Function, input: Any, out_type: Any = None, name: str | None = None) -> Any:
    """Return the `DynamicRaggedShape` of a ragged tensor."""
    return DynamicRaggedShape.from_tensor(input, out_type or "int32")


def filled(function: Function, *args: Any, **options: Any) -> Any:
    """Call `fill`, `zeros` or `ones` with a ragged shape."""
    name = "dims" if "dims" in options else "shape"
    given, *rest = [options.pop(name), *args] if name in options else args
    if not isinstance(given, DynamicRaggedShape):
        raise _wrong(function, given)
    return in_shape(function(given.inner_shape, *rest, **options), given)


def reshape(function: Function, tensor: Any, shape: Any, name: str | None = None) -> Any:
    """Divide values into the rows of a ragged shape, or reshape a ragged tensor."""
    if not isinstance(shape, DynamicRaggedShape):
        if not isinstance(tensor, RaggedTensor):
            raise _wrong(function, shape)
        return _moved.reshape(function, tensor, shape)
    values = tensor.flat_values if isinstance(tensor, RaggedTensor) else tensor
    return in_shape(function(values, shape.inner_shape), shape)


def broadcast_to(function: Function, input: Any, shape: Any, name: str | None = None) -> Any:
    """Repeat the values of axes of size 1 in the rows of a shape, which may be ragged."""
    wanted, own = _shape_of(shape), DynamicRaggedShape.from_tensor(input)
    found, places, _ = _matched(own, wanted, "broadcast_to")
    if any(not np.array_equal(*pair) for pair in zip(found, _lengths(wanted), strict=False)):
        raise _mismatch("broadcast_to", own, wanted)
    values = input.flat_values if isinstance(input, RaggedTensor) else input
    values = Text(values) if is_text(values) else convert_to_tensor(values)
    chosen = in_rows(_reshaped(values, [-1]), places)
    return in_shape(_reshaped(chosen, known(wanted.inner_shape, "shape").tolist()), wanted)


def broadcast_dynamic_shape(function: Function, shape_x: Any, shape_y: Any) -> Any:
    """Return the shape of two broadcast tensors, of which some are ragged."""
    x, y = _shape_of(shape_x), _shape_of(shape_y)
    lengths, _, _ = _matched(x, y, "broadcast_dynamic_shape")
    rank, both = len(lengths), [each for each in (x, y) if each.row_partitions]
    count = max((each.num_row_partitions + rank - each.rank for each in both), default=0)
    kind, parts = x.dtype if x.dtype == y.dtype else "int64", []
    for axis in range(1, count + 1):
        rows = lengths[axis]
        if not any(_is_ragged(each, axis - rank) for each in (x, y)):
            size = int(rows[0]) if rows.size else 0
            parts.append(RowPartition.from_uniform_row_length(size, nrows=rows.size, dtype=kind))
        else:
            parts.append(RowPartition.from_row_lengths(rows, dtype=kind))
    values = int(lengths[count].sum()) if count else int(lengths[0][0]) if rank else 0
    inner = [values, *_inner_sizes(x, y, rank - count - 1)] if rank else []
    return DynamicRaggedShape(parts, np.array(inner, np.int64), dtype=kind)


def _inner_sizes(x: DynamicRaggedShape, y: DynamicRaggedShape, count: int) -> list[int]:
    """Return the last sizes of a broadcast shape."""
    sizes = [known(each.inner_shape, "shape").tolist() for each in (x, y)]
    last = [[1] * (count - len(each)) + each[len(each) - min(count, len(each)) :] for each in sizes]
    return [b if a == 1 else a for a, b in zip(*last, strict=True)]


def in_shape(values: Any, shape: DynamicRaggedShape) -> Any:
    """Divide flat values into the rows of a shape.

    Args:
        values: A tensor or strings of the shape's inner_shape.
        shape: The shape.

    Returns:
        A ragged tensor, or the values where the shape has no row partitions.

    Raises:
        NotImplementedError: More than one axis is ragged.
    """
    parts = list(shape.row_partitions)
    while len(parts) > 1 and parts[-1].is_uniform():
        last = parts.pop()
        length = int(known(last.uniform_row_length(), "lengths"))
        values = _reshaped(values, [int(known(last.nrows(), "rows")), length, *values._shape[1:]])
    if not parts:
        return values
    if len(parts) > 1:
        raise NotImplementedError(
            f"[RaggedTensor] one axis has different sizes: got {shape!r}; fill the inner rows up "
            "with to_tensor()."
        )
    if parts[0].is_uniform():
        return RaggedTensor.from_uniform_row_length(
            values, parts[0].uniform_row_length(), parts[0].nrows()
        )
    return RaggedTensor.from_row_splits(values, parts[0].row_splits())


def _reshaped(values: Any, sizes: Sequence[int]) -> Any:
    if isinstance(values, Text):
        return leaf_of(values.encoded.reshape(sizes))
    return arrays.reshape(values, sizes)


def _shape_of(value: Any) -> DynamicRaggedShape:
    return value if isinstance(value, DynamicRaggedShape) else DynamicRaggedShape([], value)


def _is_ragged(shape: DynamicRaggedShape, axis: int) -> bool:
    """Tell whether an axis, counted from the last one as -1, is ragged."""
    return axis >= -shape.rank and not shape.is_uniform(shape.rank + axis)


def _lengths(shape: DynamicRaggedShape) -> list[Array]:
    """Return for each axis the length of each of its rows; the first axis is one row."""
    inner = known(shape.inner_shape, "shape").tolist()
    rows = [known(part.row_lengths(), "lengths") for part in shape.row_partitions]
    if not rows:
        found = [np.array([inner[0]])] if inner else []
    else:
        found = [np.array([len(rows[0])]), *rows]
    for size in inner[1:]:
        found.append(np.full(int(found[-1].sum()), size))
    return found


def _matched(
    x: DynamicRaggedShape, y: DynamicRaggedShape, who: str
) -> tuple[list[Array], Array, Array]:
    """Broadcast two shapes axis by axis.

    Returns:
        The row lengths of each axis of the result, and the element of x and of y for each of its
        elements.
    """
    rank = max(x.rank, y.rank)
    pairs = [[np.ones(1, np.int64)] * (rank - each.rank) + _lengths(each) for each in (x, y)]
    places = [np.zeros(1, np.int64)] * 2
    found = []
    for axis, (of_x, of_y) in enumerate(zip(*pairs, strict=True), -rank):
        own = [lengths[place] for lengths, place in zip((of_x, of_y), places, strict=True)]
        both_ragged = _is_ragged(x, axis) and _is_ragged(y, axis)
        fits = own[0] == own[1]
        if not both_ragged:
            fits |= (own[0] == 1) | (own[1] == 1)
        if not fits.all():
            raise _mismatch(who, x, y)
        lengths = np.where(own[0] == 1, own[1], own[0])
        rows = np.repeat(np.arange(len(lengths)), lengths)
        offsets = np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]
        places = [
            (np.cumsum(every) - every)[place][rows] + np.where(size[rows] == 1, 0, offsets)
            for every, place, size in zip((of_x, of_y), places, own, strict=True)
        ]
        found.append(lengths)
    return found, places[0], places[1]


def _mismatch(who: str, x: DynamicRaggedShape, y: DynamicRaggedShape) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"[{who}] sizes on one axis must be equal, or one of them 1, and row lengths equal: got "
        f"{x!r} and {y!r}."
    )


def _wrong(function: Function, value: Any) -> TypeError:
    name = function.__name__.rstrip("_")
    return TypeError(
        f"[{name}] the shape alone may be a DynamicRaggedShape: got {shown(value)} beside one."
    )
