"""Creation of ragged tensors, and functions of their values."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad._base.dtypes import DTypeLike, as_dtype, element_type, string
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_places import known
from samegrad._tensor.ragged_rows import stacked
from samegrad._tensor.tensor import convert_to_tensor
from samegrad._tensor.text import Text, is_text
from samegrad.ragged import _each

_LISTS = (list, tuple, np.ndarray)
_KINDS = ("int32", "int64", "float32", "float64")  # each holds what those before do


def constant(
    pylist: Sequence[Any], dtype: DTypeLike | None = None, ragged_rank: int | None = None,
    inner_shape: Sequence[int] | None = None, name: str | None = None,
    row_splits_dtype: DTypeLike = "int64",
) -> Any:  # fmt: skip
    """Create a ragged tensor from nested lists of numbers or strings.

    Args:
        pylist: List of lists, whose members have one shape.
        dtype: Dtype of the values. None: as for `tf.constant`.
        ragged_rank: Number of ragged axes: 1, or None.
        inner_shape: Shape of each value. None: inferred.
        name: Ignored.
        row_splits_dtype: Ignored; row splits are int64.

    Returns:
        `tf.RaggedTensor` of shape [rows, None, *inner_shape].

    Raises:
        ValueError: Members of pylist are not lists, or hold values of different shapes or kinds.
        NotImplementedError: More than one axis is ragged.

    Example:
        >>> import samegrad as tf
        >>> tf.ragged.constant([[1, 2], [], [3]]).row_lengths().numpy()
        array([2, 0, 1])
    """
    who = "tf.ragged.constant"
    if ragged_rank not in (None, 1):
        raise NotImplementedError(
            f"[{who}] one axis has different sizes: got ragged_rank={shown(ragged_rank)}; fill the "
            "others up."
        )
    if not isinstance(pylist, _LISTS) or not all(isinstance(row, _LISTS) for row in pylist):
        raise ValueError(f"[{who}] pylist must be a list of lists: got {shown(pylist)}.")
    flat = [value for row in pylist for value in row]
    shapes = {_shape_of(value, who) for value in flat}
    if len(shapes) > 1:
        raise (NotImplementedError if all(shapes) else ValueError)(
            f"[{who}] all values of the rows must have one shape: got {shown(sorted(shapes))}; one "
            "axis has different sizes, so fill inner lists up."
        )
    if len({is_text(value) for value in flat}) > 1:
        raise ValueError(f"[{who}] values are numbers or strings: got both in {shown(pylist)}.")
    found = next(iter(shapes), ())
    shape = found if inner_shape is None else tuple(inner_shape)
    if flat and shape == () != found:
        raise NotImplementedError(
            f"[{who}] one axis has different sizes: got inner_shape=() for values of shape "
            f"{found}, whose axes would be ragged as well; leave it out."
        )
    if flat and shape != found:
        raise ValueError(f"[{who}] values must be of inner_shape {shape}: got {shown(found)}.")
    wanted = None if dtype is None else element_type(dtype)
    return RaggedTensor(_flat(flat, wanted, shape, who), [len(row) for row in pylist])


def _shape_of(value: Any, who: str) -> tuple[int, ...]:
    if isinstance(value, str | bytes | Text):
        return ()
    if not isinstance(value, list | tuple):
        return tuple(np.shape(value))
    parts = {_shape_of(part, who) for part in value}
    if len(parts) > 1:
        raise NotImplementedError(
            f"[{who}] one axis has different sizes: got {shown(value)} within a row; fill inner "
            "lists up."
        )
    return (len(value), *next(iter(parts), ()))


def _flat(values: list[Any], wanted: Any, shape: tuple[int, ...], who: str) -> Any:
    if wanted is string or (wanted is None and values and is_text(values)):
        if values and not is_text(values):
            raise ValueError(f"[{who}] dtype is string: got {shown(values)}.")
        return Text(values) if values else Text(np.empty((0, *shape), object))
    if values:
        return convert_to_tensor(values, wanted)
    kind = as_dtype(wanted or "float32").as_numpy_dtype
    return convert_to_tensor(np.zeros((0, *shape), kind))


def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> Any:
    """Stack tensors of different lengths to a ragged tensor.

    Args:
        values: Non-empty list of tensors of one rank above 0 and, except for axis 0, of one shape;
            or one tensor or array.
        axis: 0.
        name: Ignored.

    Returns:
        `tf.RaggedTensor` of shape [len(values), None, ...].

    Raises:
        ValueError: values is empty, or its members differ in other axes.
        NotImplementedError: axis is another one.

    Example:
        >>> import samegrad as tf
        >>> tf.ragged.stack([[1, 2], [3]]).to_list()
        [[1, 2], [3]]
    """
    who = "tf.ragged.stack"
    if axis != 0:
        raise NotImplementedError(f"[{who}] axis must be 0: got {shown(axis)}.")
    listed = values if isinstance(values, list | tuple) else [values]
    rows = [Text(value) if is_text(value) else convert_to_tensor(value) for value in listed]
    if not rows or any(row._rank == 0 for row in rows):
        raise ValueError(f"[{who}] values must be lists, at least one: got {shown(values)}.")
    if len({row._dtype for row in rows}) > 1:
        raise ValueError(
            f"[{who}] values must have one dtype: got {sorted({row._dtype for row in rows})}."
        )
    return stacked(rows, who)


def range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: DTypeLike | None = None,
    name: str | None = None, row_splits_dtype: DTypeLike = "int64",
) -> Any:  # fmt: skip
    """Create a ragged tensor whose rows are ranges.

    Args:
        starts: Start of each row, shape [rows], or one for all. Without limits these are the
            limits, and rows start at 0.
        limits: Limit of each row, exclusive, shape [rows] or [].
        deltas: Difference of neighbours, not 0, shape [rows] or [].
        dtype: Dtype of the result. None: that of the arguments.
        name: Ignored.
        row_splits_dtype: Ignored; row splits are int64.

    Returns:
        `tf.RaggedTensor` of shape [rows, None].

    Raises:
        InvalidArgumentError: A delta is 0.
        ValueError: Arguments have different lengths, or more than one axis.

    Example:
        >>> import samegrad as tf
        >>> tf.ragged.range([3, 0, 2]).to_list()
        [[0, 1, 2], [], [0, 1]]
    """
    who = "tf.ragged.range"
    if limits is None:
        starts, limits = 0, starts
    tensors = [convert_to_tensor(part, dtype) for part in (starts, limits, deltas)]
    kinds = [tensor._dtype for tensor in tensors]
    if not set(kinds) <= set(_KINDS):
        raise TypeError(
            f"[{who}] numbers must be of {', '.join(_KINDS)}: got {', '.join(kinds)}; use "
            "samegrad.cast."
        )
    kind = np.dtype(max(kinds, key=_KINDS.index))
    parts = [known(tensor, "numbers").astype(kind) for tensor in tensors]
    try:
        rows = list(zip(*np.broadcast_arrays(*map(np.atleast_1d, parts)), strict=True))
    except ValueError:
        rows = None
    if rows is None or any(part.ndim > 1 for part in parts):
        raise ValueError(
            f"[{who}] starts, limits and deltas must be numbers or lists of one length: got shapes "
            f"{', '.join(str(part.shape) for part in parts)}."
        )
    if any(delta == 0 for _, _, delta in rows):
        raise InvalidArgumentError(f"[{who}] deltas must not be 0: got {shown(deltas)}.")
    made = [_range(*row) for row in rows]
    flat = np.concatenate([np.zeros(0, kind), *made])
    return RaggedTensor(convert_to_tensor(flat), [*builtins.map(len, made)])


def _range(start: Any, limit: Any, delta: Any) -> np.ndarray[Any, Any]:
    """Count as TensorFlow does: each number is the previous one plus the difference."""
    if start.dtype.kind == "i":
        return np.arange(int(start), int(limit), int(delta)).astype(start.dtype)
    count = np.ceil((limit - start) / delta)
    if not np.isfinite(count):
        raise InvalidArgumentError(
            f"[tf.ragged.range] numbers must be finite: got a row from {start} to {limit} by "
            f"{delta}."
        )
    numbers = np.full(max(int(count), 0), delta, start.dtype)
    numbers[:1] = start
    return np.add.accumulate(numbers, dtype=start.dtype)


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Apply a function to the values of ragged tensors, keeping their row lengths.

    Args:
        op: Function that receives the flat values in place of the ragged tensors. Its result has as
            many values.
        *args: Arguments of op.
        **kwargs: Keyword arguments of op.

    Returns:
        `tf.RaggedTensor` with the row lengths of the arguments.

    Raises:
        InvalidArgumentError: Row lengths differ, or op returns another number of values.

    Example:
        >>> import samegrad as tf
        >>> rows = tf.ragged.constant([[1, 2], [3]])
        >>> tf.ragged.map_flat_values(lambda x: x * 2, rows).to_list()
        [[2, 4], [6]]
    """
    rows = [value for value in (*args, *kwargs.values()) if isinstance(value, RaggedTensor)]
    if not rows:
        return op(*args, **kwargs)
    lengths = [row.row_lengths()._numpy() for row in rows]
    if not all(np.array_equal(lengths[0], other) for other in lengths):
        raise InvalidArgumentError(
            "[tf.ragged.map_flat_values] rows must have the same lengths: got "
            f"{' and '.join(shown(each.tolist()) for each in lengths)}."
        )

    def flat(value: Any) -> Any:
        return value.flat_values if isinstance(value, RaggedTensor) else value

    found = op(*map(flat, args), **{key: flat(value) for key, value in kwargs.items()})
    return rows[0].with_flat_values(found)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """Select values by a mask, each in its row.

    Args:
        data: Ragged tensor, or tensor of numbers or strings.
        mask: bool, shape [rows], or a ragged mask with the row lengths of data.
        name: Ignored.

    Returns:
        `tf.RaggedTensor`; for a tensor and a mask of shape [rows] a tensor.

    Raises:
        ValueError: mask is not bool, or does not fit data.
        InvalidArgumentError: The row lengths of mask differ from those of data.
        NotImplementedError: mask has more than two axes.

    Example:
        >>> import samegrad as tf
        >>> rows = tf.ragged.constant([[3, 1, 4], [], [5]])
        >>> tf.ragged.boolean_mask(rows, rows > 3).to_list()
        [[4], [], [5]]
    """
    return _each.boolean_mask(data, mask)
