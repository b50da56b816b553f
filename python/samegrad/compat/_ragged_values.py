"""Ragged values of version 1: NumPy arrays with row splits, for any number of ragged axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.dtypes import DTypeLike, as_dtype, element_type
from samegrad._base.shown import shown
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.version_1_values import RaggedTensorValue
from samegrad.compat._namespace import add_own

Array = NDArray[Any]
_WHO = "compat.v1.ragged.constant_value"


def constant_value(
    pylist: Any, dtype: DTypeLike | None = None, ragged_rank: int | None = None,
    inner_shape: Sequence[int] | None = None, row_splits_dtype: DTypeLike = "int64",
) -> RaggedTensorValue | Array:  # fmt: skip
    """Create a ragged value from nested lists of numbers or strings.

    Args:
        pylist: Nested lists, whose elements have one depth.
        dtype: The dtype of the values; None: that of NumPy's array of them.
        ragged_rank: The number of ragged axes; None: all axes but the first and those of
            inner_shape.
        inner_shape: The shape of each value; None: () without ragged_rank, else that of the lists.
        row_splits_dtype: int32 or int64.

    Returns:
        A `RaggedTensorValue`, or an array where no axis is ragged.

    Raises:
        TypeError: pylist is a ragged tensor.
        ValueError: Elements differ in depth, or do not fit ragged_rank and inner_shape.

    Example:
        >>> constant_value([[[1], []], [[2, 3]]]).nested_row_splits
        (array([0, 2, 3]), array([0, 1, 1, 3]))
    """
    if isinstance(pylist, RaggedTensor | RaggedTensorValue):
        raise TypeError(f"[{_WHO}] pylist must be a nested list: got {shown(pylist)}.")
    depths: set[int] = set()
    empty = _find_depths(pylist, 0, depths)
    if len(depths) > 1 or any(empty > depth for depth in depths):
        raise ValueError(f"[{_WHO}] all elements must have one depth: got {shown(pylist)}.")
    depth = depths.pop() if depths else empty
    inner = None if inner_shape is None else tuple(inner_shape)
    rank = max(0, depth - 1 - len(inner or ())) if ragged_rank is None else ragged_rank
    inner = () if inner is None and ragged_rank is None else inner
    if rank < 0 or (rank and rank >= depth) or (inner and len(inner) > depth - 1 - rank > 0):
        raise ValueError(
            f"[{_WHO}] ragged_rank and inner_shape must fit lists of depth {depth}: got "
            f"ragged_rank={shown(ragged_rank)} and inner_shape={shown(inner_shape)}."
        )
    kind = None if dtype is None else getattr(element_type(dtype), "as_numpy_dtype", object)
    splits_kind = as_dtype(row_splits_dtype).as_numpy_dtype
    ends = []
    for _ in range(rank):
        ends.append(np.cumsum([0, *map(len, pylist)]).astype(splits_kind))
        pylist = [part for row in pylist for part in row]
    found: Any = _array(pylist, kind, inner if rank or inner else None)
    for each in reversed(ends):
        found = RaggedTensorValue(found, each)
    return found  # type: ignore[no-any-return]


def _find_depths(value: Any, depth: int, found: set[int]) -> int:
    """Add the depths of scalars, and return the depth of the deepest list."""
    if not isinstance(value, list | tuple) and np.ndim(value) == 0:
        found.add(depth)
        return depth
    return max((_find_depths(part, depth + 1, found) for part in value), default=depth + 1)


def _array(values: Any, kind: Any, inner: tuple[int, ...] | None) -> Array:
    try:
        found = np.array(values) if kind is None else np.array(values, dtype=kind)
        return found if inner is None or (inner == () and found.size) else found.reshape(
            len(values), *inner)  # fmt: skip
    except ValueError as error:
        raise ValueError(
            f"[{_WHO}] values must have one shape, that of inner_shape={inner}: got "
            f"{shown(values)}."
        ) from error


add_own("ragged", {"RaggedTensorValue": RaggedTensorValue, "constant_value": constant_value})
__all__ = ["RaggedTensorValue", "constant_value"]
