"""Rows of different lengths by their indices, and values by indices in rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops import complex_arrays as arrays
from samegrad._tensor.axes import axis_in
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_places import in_rows, known
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import convert_to_tensor
from samegrad.ragged._each import as_rows, plain
from samegrad.ragged._moved import another_axis

Function = Callable[..., Any]
_WHO = "gather"


def gather(
    function: Function, params: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
    batch_dims: Any = 0, name: str | None = None,
) -> Any:  # fmt: skip
    """Slices of rows, or of a tensor by indices in rows."""
    ragged = isinstance(indices, RaggedTensor)
    if not isinstance(params, RaggedTensor):
        params = plain(params)
    batch = whole(batch_dims)
    batch += (indices._rank if ragged else plain(indices)._rank) if batch < 0 else 0
    along = axis_in(params._rank, batch if axis is None else axis)
    if not 0 <= batch <= along:
        raise ValueError(
            f"[{_WHO}] batch_dims must lie in [0, axis]: got batch_dims={shown(batch_dims)} and "
            f"axis={shown(axis)}."
        )
    if batch == along == 1:
        return _in_each_row(params, indices)
    if batch:
        raise another_axis(_WHO, f"batch_dims={batch} and axis={along}", "take to_tensor()")
    if ragged:
        if along or isinstance(params, RaggedTensor):
            what = f"ragged indices for axis {along} of shape {params.shape}"
            raise another_axis(_WHO, what, "gather by flat_values, or take to_tensor()")
        return as_rows(indices, function(params, indices.flat_values), _WHO)
    if along > 1:
        return as_rows(params, function(params.flat_values, indices, axis=along - 1), _WHO)
    if along == 1:
        return _columns(params, indices)
    return _rows(params, indices)


def _numbers(indices: Any) -> np.ndarray[Any, Any]:
    found = known(convert_to_tensor(indices), "indices")
    if found.size and found.dtype.kind not in "iu":
        raise TypeError(f"[{_WHO}] indices must be integers: got {found.dtype.name}.")
    return found.astype(np.int64)


def _check(indices: np.ndarray[Any, Any], sizes: Any, what: str, who: str = _WHO) -> None:
    """Raise InvalidArgumentError for indices that are outside their sizes."""
    wrong = (indices < 0) | (indices >= sizes)
    if wrong.any():
        most = np.broadcast_to(sizes, indices.shape)[wrong][0]
        raise InvalidArgumentError(
            f"[{who}] {what} must lie in [0, {most}): got {indices[wrong][0]}."
        )


def _rows(params: RaggedTensor, indices: Any) -> Any:
    rows = _numbers(indices)
    if rows.ndim > 1:
        what = f"indices of shape {rows.shape} for rows of shape {params.shape}"
        raise another_axis(_WHO, what, "pass a list of rows, or take to_tensor()")
    _check(rows, params.nrows(), "the index of a row")
    return params._chosen(rows, slice(None)) if rows.ndim else params[int(rows)]


def _columns(params: RaggedTensor, indices: Any) -> Any:
    """Gather the same columns of each row."""
    columns = _numbers(indices)
    starts, lengths = params._ends[:-1], np.diff(params._ends)
    spread = (slice(None), *(None,) * columns.ndim)
    _check(columns + np.zeros_like(starts)[spread], lengths[spread], "an index in each row")
    return in_rows(params.flat_values, starts[spread] + columns)


def _in_each_row(params: Any, indices: Any) -> Any:
    """Gather from each row the values at its own indices."""
    if not isinstance(params, RaggedTensor):
        params = RaggedTensor.from_tensor(params)
    ragged = isinstance(indices, RaggedTensor)
    numbers = _numbers(indices.flat_values if ragged else indices)
    rows = indices.nrows() if ragged else numbers.shape[0]
    if rows != params.nrows():
        raise ValueError(
            f"[{_WHO}] with batch_dims=1 there must be indices for each row: got shape "
            f"{indices.shape if ragged else numbers.shape} for {params.nrows()} rows."
        )
    starts, lengths = params._ends[:-1], np.diff(params._ends)
    if ragged:
        of = np.repeat(np.arange(rows), np.diff(indices._ends))
        starts, lengths = starts[of], lengths[of]
    spread = (slice(None), *(None,) * (numbers.ndim - 1))
    _check(numbers, lengths[spread], "an index in its row")
    found = in_rows(params.flat_values, starts[spread] + numbers)
    return as_rows(indices, found, _WHO) if ragged else found


def gather_nd(
    function: Function, params: Any, indices: Any, batch_dims: Any = 0, name: str | None = None
) -> Any:
    """Values by a row, a place in it and, for some of these, places in values."""
    if isinstance(indices, RaggedTensor):
        if isinstance(params, RaggedTensor) or whole(batch_dims):
            what = f"ragged indices and batch_dims={shown(batch_dims)} for shape {params.shape}"
            raise another_axis("gather_nd", what, "take to_tensor()")
        return as_rows(indices, function(params, indices.flat_values), "gather_nd")
    if whole(batch_dims):
        raise another_axis("gather_nd", f"batch_dims={shown(batch_dims)}", "take to_tensor()")
    places = _numbers(indices)
    depth = places.shape[-1] if places.ndim else 0
    if not 1 <= depth <= params._rank:
        raise ValueError(
            f"[gather_nd] an index must have 1 to {params._rank} numbers: got shape {places.shape}."
        )
    if depth == 1:
        return _rows(params, np.asarray(places[..., 0]))
    row, within, rest = np.asarray(places[..., 0]), np.asarray(places[..., 1]), places[..., 2:]
    _check(row, params.nrows(), "the index of a row", "gather_nd")
    _check(within, np.diff(params._ends)[row], "an index in its row", "gather_nd")
    flat = np.asarray(params._ends[row] + within)
    if depth == 2:
        return in_rows(params.flat_values, flat)
    return arrays.gather_nd(params.flat_values, np.concatenate([flat[..., None], rest], -1))
