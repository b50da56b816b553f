"""NumPy values of ragged and sparse tensors, as version 1 has them."""

from __future__ import annotations

from collections import namedtuple
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.shown import shown

Array = NDArray[Any]
SparseTensorValue = namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])


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


__all__ = ["RaggedTensorValue", "SparseTensorValue"]
