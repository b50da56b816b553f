"""Rows of elements by splits, and splits by rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._core import InvalidArgumentError
from samegrad._ops.host_arrays import host_arrays
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

__all__ = ["row_splits_to_segment_ids", "segment_ids_to_row_splits"]


def row_splits_to_segment_ids(
    splits: TensorLike, name: str | None = None, out_type: DTypeLike | None = None
) -> Tensor:
    """Return the row of each element of a ragged tensor.

    Args:
        splits: The row splits: ascending integers from 0, [rows + 1].
        name: Ignored.
        out_type: "int32" or "int64"; None: that of the splits, int64 for a list.

    Returns:
        Integers [splits[-1]].

    Raises:
        InvalidArgumentError: The splits are not ascending integers from 0.

    Example:
        >>> row_splits_to_segment_ids([0, 3, 3, 5]).numpy()
        array([0, 0, 0, 2, 2])
    """
    who = "row_splits_to_segment_ids"
    (ends,) = host_arrays(who, splits)
    if ends.dtype.kind not in "iu":
        raise TypeError(f"[{who}] splits must be integers: got {ends.dtype}; use samegrad.cast.")
    counts = np.diff(ends)
    if ends.ndim != 1 or not ends.size or ends[0] != 0 or (counts < 0).any():
        raise InvalidArgumentError(
            f"[{who}] row splits must be ascending integers from 0: got {ends.tolist()}."
        )
    return _of_kind(np.repeat(np.arange(len(counts)), counts), splits, out_type)


def segment_ids_to_row_splits(
    segment_ids: TensorLike,
    num_segments: Any = None,
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the row splits of a ragged tensor, by the row of each element.

    Args:
        segment_ids: The row of each element: ascending integers.
        num_segments: The number of rows; None: one more than the last id.
        out_type: "int32" or "int64"; None: that of the ids, int64 for a list.
        name: Ignored.

    Returns:
        Integers [rows + 1].

    Raises:
        InvalidArgumentError: The ids are not ascending integers below the number of rows.

    Example:
        >>> segment_ids_to_row_splits([0, 0, 2], 4).numpy()
        array([0, 2, 2, 3, 3])
    """
    who = "segment_ids_to_row_splits"
    (ids,) = host_arrays(who, segment_ids)
    last = int(ids.max()) if ids.size else -1
    if ids.dtype.kind not in "iu":
        raise TypeError(f"[{who}] ids must be integers: got {ids.dtype}; use samegrad.cast.")
    count = last + 1 if num_segments is None else whole(num_segments)
    if ids.ndim != 1 or (np.diff(ids) < 0).any() or last >= count or (ids < 0).any():
        raise InvalidArgumentError(
            f"[{who}] ids must be ascending and below the number of rows: got {ids.tolist()} and "
            f"{count}."
        )
    return _of_kind(np.searchsorted(ids, np.arange(count + 1)), segment_ids, out_type)


def _of_kind(found: np.ndarray[Any, Any], given: Any, out_type: DTypeLike | None) -> Tensor:
    kind = out_type
    if kind is None:
        kind = given._dtype if isinstance(given, Tensor) else "int64"
    return convert_to_tensor(found, as_dtype(kind).name)
