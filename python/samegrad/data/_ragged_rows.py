"""Ragged and sparse tensors as elements: row by row, or as a whole."""

from __future__ import annotations

from typing import Any

from samegrad._tensor.spec import TensorSpec
from samegrad.data._cursor import Cursor
from samegrad.data._nodes import PythonNode, Run
from samegrad.data._structure import Structure, map_leaves


class OneRow:
    """A value of any kind as the only row of a tensor."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._shape, self._dtype = (1, *value._shape), value._dtype

    def __getitem__(self, row: int) -> Any:
        return self._value


class RaggedRowsNode(PythonNode):
    """Row by row; what is ragged has an element's size open.

    Args:
        tensors: Tensors, text, ragged tensors, `SparseRows` and `OneRow`s with as many rows each.
        rows: How many.
    """

    def __init__(self, tensors: Structure, rows: int) -> None:
        super().__init__(batched=False)
        self._tensors, self._rows = tensors, rows

    @property
    def spec(self) -> Structure:
        return map_leaves(lambda leaf: TensorSpec(leaf._shape[1:], leaf._dtype), self._tensors)

    def cardinality(self) -> int:
        return self._rows

    def python_cursor(self, run: Run) -> Cursor:
        return _RowsCursor(self._tensors, self._rows)


class _RowsCursor(Cursor):
    def __init__(self, tensors: Structure, rows: int) -> None:
        self._tensors, self._rows = tensors, rows
        self._next = 0

    def next(self) -> Structure:
        if self._next >= self._rows:
            raise StopIteration
        row = self._next
        self._next += 1
        return map_leaves(lambda leaf: leaf[row], self._tensors)

    def skip(self, count: int) -> int:
        done = min(count, self._rows - self._next)
        self._next += done
        return done
