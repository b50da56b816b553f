"""The rows of tensors of which some are ragged: elements of different lengths."""

from __future__ import annotations

from samegrad._tensor.spec import TensorSpec
from samegrad.data._cursor import Cursor
from samegrad.data._nodes import PythonNode, Run
from samegrad.data._structure import Structure, map_leaves


class RaggedRowsNode(PythonNode):
    """Row by row; what is ragged has an element's size open.

    Args:
        tensors: Tensors, text and ragged ones with as many rows each.
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
