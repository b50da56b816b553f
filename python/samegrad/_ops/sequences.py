"""Rows that are shorter than their array, elements moved along an axis, and distinct elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._ops.creation import range_
from samegrad._ops.gather import gather
from samegrad._tensor.axes import axes_of, axis_of
from samegrad._tensor.sizes import size_of, whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


class Unique(NamedTuple):
    """Distinct elements, and which of them each element is."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """Distinct elements, which of them each element is, and how often each is there."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # TensorFlow's name, and a method of tuples


def sequence_mask(
    lengths: TensorLike, maxlen: Any = None, dtype: DTypeLike = "bool", name: str | None = None
) -> Tensor:
    """Create masks of sequences: mask[..., j] is j < lengths[...].

    Args:
        lengths: Integers of any shape.
        maxlen: The size of the new last axis; default the largest length, which only eager code
            knows.
        dtype: The dtype of the result.
        name: Ignored.

    Returns:
        A tensor of shape [*lengths.shape, maxlen].

    Raises:
        TypeError: The lengths are not integers, or maxlen is missing in `Strategy.run` on several
            replicas; a `function` falls back to Python.
        ValueError: `maxlen` is negative.

    Example:
        >>> sequence_mask([1, 3], 4, "int32").numpy()
        array([[1, 0, 0, 0],
               [1, 1, 1, 0]], dtype=int32)
    """
    who = "sequence_mask"
    counts = convert_to_tensor(lengths)
    if counts._dtype not in ("int32", "int64", "uint8"):
        raise TypeError(f"[{who}] lengths must be integers: got {counts._dtype}.")
    if maxlen is None and counts._symbolic:
        need_python(
            f"[{who}] the largest length depends on the values, which a traced function does not "
            "know: pass maxlen.",
            TypeError,
        )
    if maxlen is None:
        most: Any = int(counts.numpy().max(initial=0))
    else:
        most = size_of(maxlen)
    if isinstance(most, int) and most < 0:
        raise ValueError(f"[{who}] maxlen must not be negative: got {shown(maxlen)}.")
    places = _ops.cast(range_(most), dtype=counts._dtype)
    mask = _ops.less(places, _ops.expand_dims(counts, axes=[counts._rank]))
    return mask if as_dtype(dtype).name == "bool" else _ops.cast(mask, dtype=as_dtype(dtype).name)


def reverse_sequence(
    input: TensorLike, seq_lengths: TensorLike, seq_axis: int | None = None,
    batch_axis: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Reverse the first seq_lengths[i] elements of each sequence, and keep the rest.

    Args:
        input: A tensor of any dtype.
        seq_lengths: The length of each sequence, int32 or int64 [batch].
        seq_axis: The axis to reverse.
        batch_axis: The axis of the sequences; default 0.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        TypeError: The lengths are not integers.
        ValueError: The axes are equal or missing, or the lengths do not have one number per
            sequence.
        InvalidArgumentError: A length is negative or larger than the axis.

    Example:
        >>> reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1).numpy()
        array([[2, 1, 3],
               [6, 5, 4]], dtype=int32)
    """
    who = "reverse_sequence"
    x, lengths = convert_to_tensor(input), convert_to_tensor(seq_lengths)
    if lengths._dtype not in ("int32", "int64"):
        raise TypeError(f"[{who}] seq_lengths must be integers: got {lengths._dtype}.")
    if seq_axis is None:
        raise ValueError(f"[{who}] seq_axis must be given: got None.")
    along, rows = axis_of(x, seq_axis), axis_of(x, 0 if batch_axis is None else batch_axis)
    if along == rows or lengths._rank != 1:
        raise ValueError(
            f"[{who}] seq_axis and batch_axis must differ, and seq_lengths must be one number per "
            f"row: got axes {along} and {rows} and lengths of shape {lengths._shape}."
        )
    rest = [axis for axis in range(x._rank) if axis not in (rows, along)]
    order = [rows, along, *rest]
    moved = _ops.transpose(x, perm=order)
    places = _ops.cast(range_(moved.shape[1]), dtype=lengths._dtype)
    ends = _ops.expand_dims(lengths, axes=[1])
    # A length out of range asks for an index out of range.
    turned = _ops.select(_ops.less(places, ends), ends - 1 - places, places)
    turned = _ops.select(_ops.less(ends, ends * 0), ends + places * 0, turned)
    back = [order.index(axis) for axis in range(x._rank)]
    return _ops.transpose(gather(moved, turned, axis=1, batch_dims=1), perm=back)


def roll(input: TensorLike, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Shift the elements along axes, cyclically.

    Args:
        input: A tensor of any dtype.
        shift: The number of positions for each axis, an integer or a list; negative shifts move
            towards the start.
        axis: One axis or a list; an axis may occur more than once.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        ValueError: There is no such axis, or the numbers of shifts and axes differ.

    Example:
        >>> roll([1, 2, 3, 4], 1, 0).numpy(), roll([[1, 2], [3, 4]], [1, -1], [0, 1]).numpy()
        (array([4, 1, 2, 3], dtype=int32), array([[4, 3],
               [2, 1]], dtype=int32))
    """
    x = convert_to_tensor(input)
    axes = [axis_of(x, a) for a in axes_of(x, axis)]
    several = isinstance(shift, list | tuple) or getattr(shift, "ndim", 0) == 1
    shifts = list(shift) if several else [shift]
    if len(shifts) != len(axes):
        raise ValueError(
            f"[roll] shift and axis must be as many: got {len(shifts)} shifts and {len(axes)} axes."
        )
    for step, place in zip(shifts, axes, strict=True):
        x = _rolled(x, step, place)
    return x


def _rolled(x: Tensor, step: Any, axis: int) -> Tensor:
    traced = isinstance(step, Tensor) and step._symbolic
    count = x._shape[axis]
    if traced or count is None:
        size = _ops.cast(_ops.size_of(x, axes=[axis]), dtype="int64")
        back = _ops.cast(convert_to_tensor(step), dtype="int64")
        places = _ops.cast(range_(x.shape[axis]), dtype="int64") - back
        return gather(x, _ops.mod(places, size), axis=axis)
    number = whole(step)
    number %= max(int(count), 1)
    if number == 0:
        return x
    before = (slice(None),) * axis
    last, rest = slice(-number, None), slice(None, -number)
    return _ops.concat(x[before + (last,)], x[before + (rest,)], axis=axis)  # noqa: RUF005


def unique(x: TensorLike, out_idx: DTypeLike = "int32", name: str | None = None) -> Unique:
    """Find the distinct elements of a vector, in the order of their first occurrence.

    It needs values: a `function` falls back to Python, and `Strategy.run` rejects it on several
    replicas.

    Args:
        x: A vector of any dtype.
        out_idx: The dtype of the indices.
        name: Ignored.

    Returns:
        A named tuple: `y`, the distinct elements; `idx`, the index in y of each element of x.

    Raises:
        ValueError: x is not a vector.
        TypeError: In `Strategy.run` on several replicas.

    Example:
        >>> y, idx = unique([7, 5, 7, 7])
        >>> y.numpy(), idx.numpy()
        (array([7, 5], dtype=int32), array([0, 1, 0, 0], dtype=int32))
    """
    return Unique(*_distinct("unique", x, out_idx)[:2])


def unique_with_counts(
    x: TensorLike, out_idx: DTypeLike = "int32", name: str | None = None
) -> UniqueWithCounts:
    """Find the distinct elements of a vector, and count each of them; see `unique`.

    Args:
        x: A vector of any dtype.
        out_idx: The dtype of the indices and the counts.
        name: Ignored.

    Returns:
        A named tuple: `y` and `idx` of `unique`, and `count`, the number of occurrences of each
        element of y.

    Raises:
        ValueError: x is not a vector.
        TypeError: In `Strategy.run` on several replicas.

    Example:
        >>> unique_with_counts([7, 5, 7, 7]).count.numpy()
        array([3, 1], dtype=int32)
    """
    return UniqueWithCounts(*_distinct("unique_with_counts", x, out_idx))


def _distinct(who: str, x: TensorLike, out_idx: DTypeLike) -> tuple[Tensor, Tensor, Tensor]:
    values = convert_to_tensor(x)
    if values._rank != 1:
        raise ValueError(f"[{who}] x must be a vector: got shape {values._shape}.")
    if values._symbolic:
        need_python(
            f"[{who}] how many elements differ depends on the values, which a traced function does "
            "not know: find them while preparing the data, or count with samegrad.math.bincount.",
            TypeError,
        )
    array, kind = values.numpy(), as_dtype(out_idx).as_numpy_dtype
    order = np.argsort(array)
    new = np.ones(array.shape, bool)
    new[1:] = array[order[1:]] != array[order[:-1]]
    starts = np.flatnonzero(new)
    counts = np.diff(starts, append=len(array))
    first = np.minimum.reduceat(order, starts)  # equal elements have any order
    leads = np.zeros(array.shape, bool)
    leads[first] = True
    rank = (np.cumsum(leads) - 1)[first].astype(kind)
    which, sizes = np.empty(array.shape, kind), np.empty(rank.shape, kind)
    which[order], sizes[rank] = np.repeat(rank, counts), counts
    return Tensor(array[leads]), Tensor(which), Tensor(sizes)


__all__ = ["reverse_sequence", "roll", "sequence_mask", "unique", "unique_with_counts"]
