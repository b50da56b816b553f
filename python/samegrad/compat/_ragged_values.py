"""Ragged values of version 1: NumPy arrays with row splits, for any number of ragged axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.dtypes import DTypeLike, as_dtype, element_type
from samegrad._base.shown import shown
from samegrad._tensor.ragged import RaggedTensor
from samegrad.compat._namespace import add_own

Array = NDArray[Any]
_WHO = "compat.v1.ragged.constant_value"


class RaggedTensorValue:
    """Rows of different lengths as NumPy arrays.

    Args:
        values: The elements of all rows: an array, or a `RaggedTensorValue` of inner rows.
        row_splits: The index in `values` where each row begins, and where the last one ends: int32
            or int64.

    Raises:
        TypeError: row_splits or values are something else.
        ValueError: Inner rows have row splits of another dtype.

    Example:
        >>> RaggedTensorValue(np.array([1, 2, 3]), np.array([0, 2, 3])).to_list()
        [[1, 2], [3]]
    """

    def __init__(self, values: Array | RaggedTensorValue, row_splits: Array) -> None:
        is_array = isinstance(row_splits, np.ndarray) and row_splits.ndim == 1
        if not is_array or row_splits.dtype not in (np.int32, np.int64):
            raise TypeError(
                "[RaggedTensorValue] row_splits must be a vector of int32 or int64: got "
                f"{shown(row_splits)}."
            )
        if not isinstance(values, np.ndarray | np.generic | RaggedTensorValue):
            raise TypeError(
                "[RaggedTensorValue] values must be an array or a RaggedTensorValue: got "
                f"{shown(values)}."
            )
        inner: Any = getattr(values, "row_splits", row_splits)
        if inner.dtype != row_splits.dtype:
            raise ValueError(
                "[RaggedTensorValue] row_splits of all axes must have one dtype: got "
                f"{row_splits.dtype} and {inner.dtype}."
            )
        self._values, self._row_splits = values, row_splits

    @property
    def values(self) -> Any:
        """The elements of all rows."""
        return self._values

    @property
    def row_splits(self) -> Array:
        """The index where each row begins, and where the last one ends."""
        return self._row_splits

    @property
    def flat_values(self) -> Array:
        """The innermost values."""
        inner: Any = self._values
        found: Array = getattr(inner, "flat_values", inner)
        return found

    @property
    def nested_row_splits(self) -> tuple[Array, ...]:
        """The row splits of all ragged axes, the outermost first."""
        return (self._row_splits, *getattr(self._values, "nested_row_splits", ()))

    @property
    def ragged_rank(self) -> int:
        """The number of ragged axes."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of the values."""
        return self._values.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape, None for ragged axes."""
        return (len(self._row_splits) - 1, None, *self._values.shape[1:])

    def to_list(self) -> list[Any]:
        """Return nested lists.

        Returns:
            A list for each row.
        """
        inner = self._values
        parts = inner.to_list() if isinstance(inner, RaggedTensorValue) else inner.tolist()
        ends = self._row_splits.tolist()
        return [parts[begin:end] for begin, end in pairwise(ends)]

    def __repr__(self) -> str:
        return f"RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"

    def __str__(self) -> str:
        return f"<RaggedTensorValue {self.to_list()}>"


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
