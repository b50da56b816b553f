"""Counts of integers as sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import reshape
from samegrad._ops.creation import ones
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_places import known
from samegrad._tensor.sizes import whole
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import convert_to_tensor
from samegrad.errors import InvalidArgumentError
from samegrad.math import unsorted_segment_sum

Array = NDArray[Any]
_WHO = "tf.sparse.bincount"
_KINDS = ("int32", "int64", "float32", "float64")


def bincount(
    values: Any, weights: Any = None, axis: int | None = 0, minlength: Any = None,
    maxlength: Any = None, binary_output: bool = False, name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """Count the occurrences of each integer, or sum the weights at them, in a sparse tensor.

    Args:
        values: Integers of 0 or more, int32 or int64: a tensor, a ragged or a sparse tensor. With
            axis -1 it has one or two axes.
        weights: Numbers of the kind and shape of values, for a sparse tensor with its indices. None
            counts each value once.
        axis: 0 or None counts all values, -1 those of each row.
        minlength: The least size of the last axis.
        maxlength: The largest size of the last axis; larger values are left out.
        binary_output: Return 1 for each integer that occurs, however often.
        name: Ignored.

    Returns:
        `SparseTensor` of shape [N], or [rows, N] with axis -1; N is the largest value + 1 within
        the limits. Counts have the dtype of values, sums that of weights.

    Raises:
        ValueError: axis is another one, weights are of another kind than values, or given beside
            binary_output.
        InvalidArgumentError: A value is negative or not an integer, or weights differ in shape.

    Example:
        >>> import samegrad as tf
        >>> counts = tf.sparse.bincount([[10, 20, 10], [7, 7, 7]], axis=-1)
        >>> counts.indices.numpy().tolist(), counts.values.numpy().tolist(), counts.shape
        ([[0, 10], [0, 20], [1, 7]], [2, 1, 3], (2, 21))
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"[{_WHO}] axis must be None, 0 or -1: got {shown(axis)}.")
    if weights is not None and binary_output:
        raise ValueError(f"[{_WHO}] binary_output counts, so there are no weights: got both.")
    least, most = (None if n is None else _limit(n) for n in (minlength, maxlength))
    flat, rows, count = _rows(values, by_row=axis == -1)
    numbers = known(flat, "counts").ravel()
    if str(numbers.dtype) not in ("int32", "int64"):
        raise InvalidArgumentError(
            f"[{_WHO}] values must be int32 or int64: got {numbers.dtype}; use samegrad.cast."
        )
    if numbers.min(initial=0) < 0:
        raise InvalidArgumentError(
            f"[{_WHO}] values must all be non-negative: got {numbers.min()}; shift them first."
        )
    size = max(int(numbers.max(initial=0)) + 1, least or 0)
    size = size if most is None else min(size, most)
    places = np.stack([np.broadcast_to(rows, numbers.shape), numbers.astype(np.int64)], axis=1)
    inside = numbers < size
    found, group = np.unique(places[inside], axis=0, return_inverse=True)
    if binary_output:
        sums = ones([len(found)], as_dtype(numbers.dtype).name)
    else:
        sums = _sums(values, weights, flat, inside, group.ravel(), len(found))
    if count is None:
        return SparseTensor(found[:, 1:], sums, [size])
    return SparseTensor(found, sums, [count, size])


def _limit(size: Any) -> int:
    found = whole(size)
    if found < 0:
        raise InvalidArgumentError(
            f"[{_WHO}] minlength and maxlength must be 0 or more: got {found}."
        )
    return found


def _rows(values: Any, by_row: bool) -> tuple[Any, Any, int | None]:
    """Return the values in a line, the row of each, and the number of rows."""
    if isinstance(values, RaggedTensor):
        rows = values.value_rowids().numpy() if by_row else 0
        flat, count = values.flat_values, len(values)
        rank = values._rank
    elif isinstance(values, SparseTensor):
        flat, count, rank = values.values, values._shape[0], values._rank
        rows = values.indices.numpy()[:, 0] if by_row and rank == 2 else 0
    else:
        flat = convert_to_tensor(values)
        rank, count = flat._rank, flat._shape[0] if flat._rank else 1
        rows = np.arange(count).repeat(flat._shape[1]) if by_row and rank == 2 else 0
    if by_row and rank > 2:
        raise InvalidArgumentError(
            f"[{_WHO}] values must have one or two axes with axis=-1: got {rank}; use reshape."
        )
    return flat, rows, count if by_row and rank == 2 else None


def _sums(values: Any, weights: Any, flat: Any, inside: Array, group: Array, count: int) -> Any:
    """Return the sum of the weights of each group of values."""
    if weights is None:
        given: Any = ones([len(inside)], flat._dtype)
    else:
        given = reshape(_weights(values, weights, flat), [-1])
    if given._dtype not in _KINDS:
        raise InvalidArgumentError(
            f"[{_WHO}] weights must be {', '.join(_KINDS)}: got {given._dtype}; use samegrad.cast."
        )
    group_of = np.full(len(inside), -1)
    group_of[inside] = group
    return unsorted_segment_sum(given, group_of, count)


def _weights(values: Any, weights: Any, flat: Any) -> Any:
    """Return the weights in a line, checked to be those of the values."""
    for kind, name in ((RaggedTensor, "RaggedTensor"), (SparseTensor, "SparseTensor")):
        if isinstance(values, kind) and not isinstance(weights, kind):
            raise ValueError(
                f"[{_WHO}] weights must be a {name} if values are one: got "
                f"{type(weights).__name__}; use the same kind for both."
            )
    if isinstance(values, RaggedTensor):
        if not values._fits(weights):
            _refuse("row splits", values.row_splits.numpy(), weights.row_splits.numpy())
        return weights.flat_values
    if isinstance(values, SparseTensor):
        if values._shape != weights._shape:
            _refuse("dense shape", values._shape, weights._shape)
        if not np.array_equal(values.indices.numpy(), weights.indices.numpy()):
            _refuse("indices", values.indices.numpy(), weights.indices.numpy())
        return weights.values
    if isinstance(weights, RaggedTensor | SparseTensor):
        raise ValueError(
            f"[{_WHO}] weights must be a tf.Tensor if values are one: got "
            f"{type(weights).__name__}; use the same kind for both."
        )
    made = convert_to_tensor(weights)
    if made._shape != flat._shape:
        _refuse("shape", flat._shape, made._shape)
    return made


def _refuse(what: str, own: Any, other: Any) -> None:
    raise InvalidArgumentError(
        f"[{_WHO}] weights and values must have the same {what}: got {shown(other)} and "
        f"{shown(own)}."
    )
