"""Rows of different lengths, as the splitting of texts makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, as_dtype
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.text import Text, is_text, of_bytes


class Ragged:
    """Rows of different lengths: the values of all, and where each begins and ends.

    Args:
        flat_values: Of all rows, one after the other: a tensor or text.
        lengths: Of the rows.

    Example:
        >>> Ragged(Text(["a", "b", "c"]), [2, 0, 1]).to_list()
        [[b'a', b'b'], [], [b'c']]
    """

    def __init__(self, flat_values: Any, lengths: Sequence[int]) -> None:
        self.flat_values = self.values = flat_values
        self._ends = np.cumsum([0, *lengths])

    @property
    def dtype(self) -> DType:
        """That of the values."""
        kind = self.flat_values.dtype
        return kind if isinstance(kind, DType) else as_dtype(kind)

    @property
    def shape(self) -> TensorShape:
        """The number of rows, and None."""
        return tuple.__new__(TensorShape, (self.nrows(), None, *self.flat_values._shape[1:]))

    @property
    def _shape(self) -> tuple[Any, ...]:
        return tuple(self.shape)

    @property
    def _rank(self) -> int:
        return len(self.shape)

    @property
    def _dtype(self) -> str:
        return self.dtype.name

    def nrows(self) -> int:
        """How many rows there are."""
        return len(self._ends) - 1

    def row_lengths(self) -> Tensor:
        """How long each row is (int64)."""
        return convert_to_tensor(np.diff(self._ends).astype(np.int64))

    def bounding_shape(self) -> Tensor:
        """The rows and the length of the longest (int64)."""
        longest = max(np.diff(self._ends).tolist(), default=0)
        return convert_to_tensor(np.array([self.nrows(), longest], np.int64))

    def __len__(self) -> int:
        return self.nrows()

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self.nrows()))

    def __getitem__(self, row: int) -> Any:
        place = range(self.nrows())[row]
        return self.flat_values[int(self._ends[place]) : int(self._ends[place + 1])]

    def with_values(self, flat_values: Any) -> Ragged:
        """The same rows of other values."""
        return Ragged(flat_values, np.diff(self._ends).tolist())

    def to_tensor(self, default_value: Any = None, shape: Any = None) -> Any:
        """The rows as a matrix, the shorter ones filled up.

        Args:
            default_value: What they are filled up with. None: zeros, or empty text.
            shape: Its sizes; None in the last place: the longest row's.

        Returns:
            A tensor, or text.

        Example:
            >>> Ragged(convert_to_tensor([1, 2, 3]), [1, 2]).to_tensor().numpy()
            array([[1, 0],
                   [2, 3]], dtype=int32)
        """
        lengths = np.diff(self._ends)
        width = None if shape is None else shape[-1]
        width = int(max(lengths, default=0)) if width is None else int(width)
        texts = isinstance(self.flat_values, Text)
        values = self.flat_values.encoded if texts else np.asarray(self.flat_values)
        if default_value is None:
            default_value = b"" if texts else 0
        elif texts:
            default_value = Text(default_value).numpy()
        matrix = np.full((self.nrows(), width, *values.shape[1:]), default_value, values.dtype)
        for row, begin, length in zip(matrix, self._ends[:-1], lengths, strict=True):
            count = min(length, width)
            row[:count] = values[begin : begin + count]
        return of_bytes(matrix) if texts else convert_to_tensor(matrix)

    def numpy(self) -> Any:
        """An array if all rows have one length, else one of arrays, row by row."""
        rows = [np.asarray(row) for row in self]
        if len({len(row) for row in rows}) == 1:
            return np.stack(rows)
        made = np.empty(len(rows), object)
        made[:] = rows
        return made

    def to_list(self) -> list[Any]:
        """The rows as lists."""
        return [np.asarray(row).tolist() for row in self]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The rows filled up: with -1, which is no place in a vocabulary, or with empty text."""
        default = None if isinstance(self.flat_values, Text) else -1
        return np.asarray(self.to_tensor(default))

    def __repr__(self) -> str:
        return f"<samegrad.Ragged {self.to_list()!r:.200}>"


def stacked(column: Sequence[Any], who: str) -> Ragged:
    """Tensors or texts as rows, which may differ in their first sizes.

    Raises:
        ValueError: They differ in other sizes.
    """
    shapes = {row._shape[1:] for row in column}
    if len(shapes) > 1:
        raise ValueError(
            f"[{who}] rows may differ in their first sizes only: got shapes "
            f"{sorted(row._shape for row in column)}; see padded_batch."
        )
    if isinstance(column[0], Text):
        flat: Any = of_bytes(np.concatenate([row.encoded for row in column]))
    else:
        flat = Tensor(np.concatenate([row._numpy() for row in column]))
    return Ragged(flat, [row._shape[0] for row in column])


def rows_of(values: Any, parts: Callable[[bytes], Sequence[bytes]]) -> Any:
    """The parts of each text: of one text a row, of several rows of different lengths."""
    array = Text(values).encoded
    if not array.ndim:
        one: bytes = Text(values).numpy()
        return Text(np.array(list(parts(one)), object))
    if array.ndim > 1:
        raise ValueError(
            f"[tf.strings] texts are split one by one or row by row: got shape {array.shape}; "
            "reshape them to one axis."
        )
    encoded: list[bytes] = array.tolist()
    rows = [parts(value) for value in encoded]
    return Ragged(Text(np.array([x for row in rows for x in row], object)), [*map(len, rows)])


def ragged_constant(rows: Sequence[Any], dtype: Any = None) -> Ragged:
    """Rows of different lengths, of text or of numbers."""
    flat = [value for row in rows for value in row]
    values = Text(flat) if is_text(flat) else convert_to_tensor(flat, dtype)
    return Ragged(values, [len(row) for row in rows])
