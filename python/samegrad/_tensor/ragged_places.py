"""Indices and sizes of the values of ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.text import Text, array_of, leaf_of, text_of

Array = np.ndarray[Any, Any]


def in_rows(values: Any, places: Array) -> Any:
    """Gather values by their positions on the first axis; derivatives go through.

    Example:
        >>> in_rows(convert_to_tensor([5, 6, 7]), np.array([[2, 0]])).numpy()
        array([[7, 5]], dtype=int32)
    """
    if isinstance(values, Text):
        return leaf_of(values.encoded[places])
    return _core.ops.gather(values, Tensor(places.astype(np.int64), copy=False), axis=0)


def known(values: Any, what: str) -> Array:
    """Return the numbers that the lengths of rows follow from.

    Raises:
        TypeError: The values are those of a function that is being traced.
    """
    if isinstance(values, Tensor) and values._symbolic:
        need_python(
            f"[RaggedTensor] the lengths of rows are not part of a traced function: got {what} "
            "that follow from its arguments or variables; make rows in Dataset.map or before the "
            "function, and pass to_tensor() and row_lengths().",
            TypeError,
        )
    return array_of(values)


def whole(numbers: Any, what: str) -> Array:
    """Convert a list of integers to an int64 array.

    Raises:
        ValueError: The list does not hold integers.
    """
    found = known(convert_to_tensor(numbers), what)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(f"[RaggedTensor] {what} must be a list of integers: got {shown(numbers)}.")
    return found.astype(np.int64)


def lengths_of_sparse(tensor: Any) -> list[int]:
    """Return the row lengths of a sparse matrix whose rows have no gaps.

    Raises:
        TypeError: The value is not a sparse tensor.
        ValueError: The tensor is not a matrix.
        InvalidArgumentError: A row has a gap, or indices are out of order.
    """
    who = "RaggedTensor.from_sparse"
    if not isinstance(tensor, SparseTensor):
        raise TypeError(f"[{who}] a tf.sparse.SparseTensor is needed: got {shown(tensor)}.")
    if tensor._rank != 2:
        raise ValueError(f"[{who}] the tensor must have two axes: got shape {tensor._shape}.")
    rows, columns = tensor.checked(who)[0].T
    lengths = np.bincount(rows, minlength=tensor._shape[0])
    begins = np.cumsum(lengths) - lengths
    if (columns != np.arange(len(rows)) - begins[rows]).any():
        raise InvalidArgumentError(
            f"[{who}] the values of a row must be at its beginning, without gaps: got indices "
            f"{shown(tensor.indices.numpy().tolist())}; see tf.sparse.to_dense."
        )
    return [int(length) for length in lengths]


def index_parts(key: Any, rank: int) -> list[Any]:
    """Split an index into one integer or slice for each axis.

    Raises:
        IndexError: The index has more parts than there are axes.
        TypeError: The index holds something else.
        NotImplementedError: The index makes a new axis.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(parts) - len(dots) > rank or len(dots) > 1:
        raise IndexError(
            f"[RaggedTensor] an index has at most one number or slice for each of {rank} axes, and "
            f"one ...: got {shown(key)}."
        )
    if any(part is None for part in parts):
        raise NotImplementedError(
            "[RaggedTensor] the second axis alone has different sizes, so that there are no new "
            f"axes: got {shown(key)}; call to_tensor() first."
        )
    wrong = [part for part in parts if part is not Ellipsis and not _is_index(part)]
    if wrong:
        raise TypeError(
            "[RaggedTensor] an index is an integer, a slice or ...: got "
            f"{type(wrong[0]).__name__} {shown(wrong[0])}."
        )
    for place in dots:
        parts[place : place + 1] = [slice(None)] * (rank - len(parts) + 1)
    return parts or [slice(None)]


def _is_index(part: Any) -> bool:
    if isinstance(part, slice):
        return True
    if isinstance(part, bool | np.bool_) or getattr(part, "ndim", 0) != 0:
        return False
    kind = getattr(part, "_dtype", getattr(part, "dtype", "int"))
    return hasattr(type(part), "__index__") and "int" in str(kind)


def filled_sizes(shape: Any, needed: list[Any]) -> tuple[int, int]:
    """Return the number of rows of a matrix and their length.

    Args:
        shape: The sizes, some of which are None (in a tensor: -1); None: as needed.
        needed: The sizes that hold all rows.

    Raises:
        InvalidArgumentError: The number of sizes differs, or a size is invalid or not that of a
            value.
    """
    if isinstance(shape, Tensor):
        asked = [None if n == -1 else n for n in np.ravel(known(shape, "shape")).tolist()]
    else:
        asked = list(needed if shape is None else shape if np.iterable(shape) else [shape])
    sizes = [n if size is None else size for size, n in zip(asked, needed, strict=False)]
    fits = len(asked) == len(needed) and all(
        hasattr(type(n), "__index__") and n >= 0 for n in sizes
    )
    if not fits or sizes[2:] != needed[2:]:
        raise InvalidArgumentError(
            "[RaggedTensor.to_tensor] shape must have a size or None for each axis, and those of a "
            f"value at the end: got {shown(shape)} for rows that need {tuple(needed)}."
        )
    return int(sizes[0]), int(sizes[1])


def unpadded_lengths(found: Any, padding: Any) -> Any:
    """Return the row lengths without the padding at the ends."""
    array = known(found, "padding")
    count, width = array.shape[:2]
    fill = Text(padding).numpy() if isinstance(found, Text) else np.asarray(padding)
    if np.shape(fill) not in ((), array.shape[2:]):
        raise ValueError(
            f"[RaggedTensor.from_tensor] padding must have shape {array.shape[2:]} or be one "
            f"element: got shape {np.shape(fill)}."
        )
    kept = (array != fill).reshape(count, width, -1).any(-1)
    last = width - kept[:, ::-1].argmax(1) if width else np.zeros(count)
    return np.where(kept.any(1), last, 0)


def with_one_more(values: Any, default: Any) -> Any:
    """Return the values, and behind them what rows are filled up with."""
    who, inner = "RaggedTensor.to_tensor", list(values._shape[1:])
    if isinstance(values, Text):
        given = b"" if default is None else default
        one: Any = text_of(given, who, "default_value must be a string")
    else:
        one = convert_to_tensor(0 if default is None else default, values._dtype)
    if list(one._shape) not in ([], inner):
        raise ValueError(
            f"[{who}] default_value must be one, or of the shape of a value, {tuple(inner)}: got "
            f"shape {tuple(one._shape)}."
        )
    if isinstance(values, Text):
        row = np.broadcast_to(one.encoded, [1, *inner])
        return leaf_of(np.concatenate([values.encoded, row]))
    return _core.ops.concat(values, _core.ops.broadcast_to(one, shape=[1, *inner]), axis=0)
