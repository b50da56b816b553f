"""Functions that concatenate, repeat, transpose and split ragged tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops import complex_arrays as arrays
from samegrad._tensor.axes import axes_of, axis_in
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_broadcast import beside, check_same_rows, dense_rows
from samegrad._tensor.ragged_places import in_rows, known
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import convert_to_tensor
from samegrad.ragged._each import as_rows, plain

Function = Callable[..., Any]


def another_axis(who: str, what: str, remedy: str) -> NotImplementedError:
    """Return the error of a second ragged axis."""
    return NotImplementedError(
        f"[{who}] one axis has different sizes, the second one: got {what}; {remedy}."
    )


def divided(function: Function, input: Any, *args: Any, **options: Any) -> Any:
    """Refused: parts of each text of rows."""
    what = f"rows of shape {input.shape}, of which each string is divided"
    raise another_axis(f"tf.strings.{function.__name__}", what, "divide their flat_values")


def _ragged(values: Any, who: str) -> list[RaggedTensor]:
    """Operands of one rank, all of them as rows."""
    given = list(values) if isinstance(values, list | tuple) else [values]
    first = next(value for value in given if isinstance(value, RaggedTensor))
    made = []
    for value in given:
        found = value
        if not isinstance(value, RaggedTensor):
            found = beside(value, first.flat_values, who)
        if found._rank != first._rank:
            raise ValueError(
                f"[{who}] operands must have as many axes: got shapes {first.shape} and "
                f"{tuple(found.shape)}; see expand_dims and from_row_lengths."
            )
        rows = isinstance(found, RaggedTensor)
        made.append(found if rows else RaggedTensor(*dense_rows(found, who)))
    return made


def concat(function: Function, values: Any, axis: Any, name: str | None = None) -> Any:
    """Rows behind rows, or the values of a row behind those of another one."""
    if isinstance(values, RaggedTensor):
        return values
    rows = _ragged(values, "concat")
    along = axis_in(rows[0]._rank, axis)
    if len(rows) == 1:
        return rows[0]
    if along > 1:
        return _side_by_side(function, rows, along - 1, "concat")
    lengths = [np.diff(each._ends) for each in rows]
    flat = function([each.flat_values for each in rows], 0)
    if along == 0:
        return RaggedTensor(flat, np.concatenate(lengths).tolist())
    if len({each.nrows() for each in rows}) > 1:
        raise InvalidArgumentError(
            f"[concat] operands must have as many rows: got {[each.nrows() for each in rows]}, of "
            f"the lengths {' and '.join(shown(each.tolist()) for each in lengths)}."
        )
    return RaggedTensor(in_rows(flat, _row_by_row(rows)), np.sum(lengths, 0).tolist())


def _row_by_row(rows: Sequence[RaggedTensor]) -> np.ndarray[Any, Any]:
    """Return the permutation that interleaves the rows of all operands."""
    lengths = [np.diff(each._ends) for each in rows]
    row = np.concatenate([np.repeat(np.arange(len(each)), each) for each in lengths])
    return np.argsort(row, kind="stable")


def _side_by_side(function: Function, rows: Sequence[RaggedTensor], axis: int, who: str) -> Any:
    for other in rows[1:]:
        check_same_rows(rows[0], other, who)
    return as_rows(rows[0], function([each.flat_values for each in rows], axis), who)


def stack(function: Function, values: Any, axis: Any = 0, name: str | None = None) -> Any:
    """Along a new axis of the values."""
    if isinstance(values, RaggedTensor):
        values = [values]
    rows = _ragged(values, "stack")
    along = axis_in(rows[0]._rank + 1, axis)
    if along < 2:
        what = f"axis={along} for rows of shape {rows[0].shape}"
        raise another_axis("stack", what, "concatenate them, or stack their to_tensor()")
    return _side_by_side(arrays.stack, rows, along - 1, "stack")


def tile(function: Function, input: Any, multiples: Any, name: str | None = None) -> Any:
    """Rows, and the values of each, several times."""
    counts = known(convert_to_tensor(multiples), "multiples")
    if counts.shape != (input._rank,) or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InvalidArgumentError(
            f"[tile] multiples must be {input._rank} integers, 0 or more, one for each axis: "
            f"got {shown(multiples)} for shape {input.shape}."
        )
    outer, within, *inner = (int(count) for count in counts)
    parts = [np.tile(np.arange(a, b), within) for a, b in _bounds(input)]
    flat = np.tile(np.concatenate([np.zeros(0, np.int64), *parts]), outer).astype(np.int64)
    values = in_rows(input.flat_values, flat)
    if any(count != 1 for count in inner):
        values = function(values, [1, *inner])
    return RaggedTensor(values, np.tile(np.diff(input._ends) * within, outer).tolist())


def _bounds(rows: RaggedTensor) -> list[tuple[int, int]]:
    ends = rows._ends.tolist()
    return list(pairwise(ends))


def expand_dims(function: Function, input: Any, axis: Any, name: str | None = None) -> Any:
    """A new axis within the values."""
    along = axis_in(input._rank + 1, axis)
    if along < 2:
        what = f"axis={along} for rows of shape {input.shape}"
        raise another_axis("expand_dims", what, "pass 2 or more, -1, or take to_tensor()")
    return as_rows(input, function(input.flat_values, along - 1), "expand_dims")


def squeeze(function: Function, input: Any, axis: Any = None, name: str | None = None) -> Any:
    """Without axes of size 1: rows that have one value become a tensor, and one row its values."""
    if axis is None:
        raise ValueError(
            f"[squeeze] axis must be given for a ragged tensor: got shape {input.shape}; pass axis."
        )
    axes = {axis_in(input._rank, one) for one in axes_of(input.flat_values, axis)}
    lengths = np.diff(input._ends).tolist()
    if (0 in axes and len(lengths) != 1) or (1 in axes and set(lengths) - {1}):
        raise InvalidArgumentError(
            f"[squeeze] an axis must have size 1: got axis={sorted(axes)} for "
            f"{len(lengths)} rows of the lengths {shown(lengths)}."
        )
    inner = sorted(one - 1 for one in axes if one > 1)
    values = function(input.flat_values, inner) if inner else input.flat_values
    if axes >= {0, 1}:
        return values[0]
    return values if axes & {0, 1} else as_rows(input, values, "squeeze")


def reverse(function: Function, tensor: Any, axis: Any, name: str | None = None) -> Any:
    """Rows, or what is in them, from the last to the first."""
    if not isinstance(axis, list | tuple) and not getattr(axis, "ndim", 0):
        raise TypeError(f"[reverse] axis must be a list of axes: got {shown(axis)}.")
    axes = {axis_in(tensor._rank, one) for one in axes_of(tensor.flat_values, axis)}
    turned = slice(None, None, -1)
    rows = range(tensor.nrows())[turned if 0 in axes else slice(None)]
    chosen = tensor._chosen(rows, turned if 1 in axes else slice(None))
    inner = sorted(one - 1 for one in axes if one > 1)
    return chosen._like(function(chosen.flat_values, inner)) if inner else chosen


def split(
    function: Function, value: Any, num_or_size_splits: Any, axis: Any = 0, num: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Rows in parts, or their values along inner axes."""
    if isinstance(num_or_size_splits, int) and num_or_size_splits == 1:
        return [value]
    along = axis_in(value._rank, axis)
    if along == 1:
        raise ValueError(
            f"[split] a ragged axis cannot be split: got axis=1 for shape "
            f"{value.shape}; split the rows (axis=0), or to_tensor()."
        )
    if along > 1:
        parts = function(value.flat_values, num_or_size_splits, along - 1, num)
        return [as_rows(value, part, "split") for part in parts]
    ends = np.concatenate([[0], np.cumsum(_parts(num_or_size_splits, value.nrows()))]).tolist()
    return [value[a:b] for a, b in pairwise(ends)]


def _parts(given: Any, count: int) -> list[int]:
    """Return the number of rows of each part."""
    if isinstance(given, int):
        sizes = [count // given] * given if given > 0 else []
    else:
        sizes = [whole(size) for size in known(convert_to_tensor(given), "parts").ravel().tolist()]
    if sum(sizes) != count or min(sizes, default=0) < 0 or not sizes:
        raise InvalidArgumentError(
            f"[split] the parts must add up to the number of rows, {count}: got {shown(given)}."
        )
    return sizes


def reshape(function: Function, tensor: Any, shape: Any, name: str | None = None) -> Any:
    """One list of all values, or any shape if all rows have one length."""
    sizes = plain(shape)
    lengths = set(np.diff(tensor._ends).tolist())
    if sizes._rank == 1 and sizes._shape[0] == 1:
        return function(tensor.flat_values, shape)
    if len(lengths) < 2:
        return function(tensor.to_tensor(), shape)
    raise another_axis(
        "reshape", f"shape={shown(shape)} for rows of the lengths {shown(sorted(lengths))}",
        "pass [-1], or take to_tensor() first",
    )  # fmt: skip


def dynamic_partition(
    function: Function, data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> Any:
    """Rows by their numbers, or values by theirs."""
    if isinstance(partitions, RaggedTensor):
        rows = data if isinstance(data, RaggedTensor) else RaggedTensor.from_tensor(data)
        check_same_rows(rows, partitions, "dynamic_partition")
        return function(rows.flat_values, partitions.flat_values, num_partitions)
    numbers = known(convert_to_tensor(partitions), "partitions")
    count = whole(num_partitions)
    right = numbers.shape == (data.nrows(),) and numbers.dtype.kind in "iu"
    if not right or ((numbers < 0) | (numbers >= count)).any():
        raise InvalidArgumentError(
            f"[dynamic_partition] partitions must name one of {count} parts for each of "
            f"{data.nrows()} rows: got {shown(numbers.tolist())}."
        )
    return [data._chosen(np.flatnonzero(numbers == part), slice(None)) for part in range(count)]
