"""Rows of different lengths, as the splitting of texts makes them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from samegrad._base.dtypes import DType, as_dtype
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.text import Text, is_text, of_bytes


def _padding_of(padding: Any, of_text: bool) -> Any:
    try:
        return Text(padding).numpy() if of_text else np.asarray(padding)
    except ValueError:
        raise TypeError(
            f"[RaggedTensor.from_tensor] padding must be one element: got {shown(padding)}."
        ) from None


class Ragged:
    """Rows of different lengths: the values of all, and where each begins and ends.

    `tf.RaggedTensor`, with one axis of different sizes. It is for preparing data: what a step
    computes with is a tensor (`to_tensor`, and `tf.sequence_mask` of `row_lengths`).

    Args:
        flat_values: Of all rows, one after the other: a tensor or text.
        lengths: Of the rows.

    Example:
        >>> Ragged(Text(["a", "b", "c"]), [2, 0, 1]).to_list()
        [[b'a', b'b'], [], [b'c']]
    """

    __array_ufunc__ = None  # NumPy leaves + and == to this class
    __hash__: ClassVar[None]  # type: ignore[assignment]
    ragged_rank = 1

    def __init__(self, flat_values: Any, lengths: Sequence[int]) -> None:
        self.flat_values = self.values = flat_values
        self._ends = np.cumsum([0, *lengths])

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Row i has the values from row_splits[i] to row_splits[i + 1].

        Args:
            values: Of all rows: a tensor or text with at least one axis.
            row_splits: Whole numbers, from 0 to the number of values, one more than rows.
            name: Ignored.
            validate: Ignored: they are always checked.

        Raises:
            InvalidArgumentError: They do not begin with 0, go down or do not end with the values.

        Example:
            >>> Ragged.from_row_splits([3, 1, 4, 1, 5], [0, 2, 2, 5]).to_list()
            [[3, 1], [], [4, 1, 5]]
        """
        return _split(values, _whole(row_splits, "row_splits"), "row_splits")

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Rows of these lengths; else as `from_row_splits`.

        Example:
            >>> Ragged.from_row_lengths([3, 1, 4], [2, 0, 1]).to_list()
            [[3, 1], [], [4]]
        """
        lengths = _whole(row_lengths, "row_lengths")
        return _split(values, np.cumsum([0, *lengths]), "row_lengths")

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Rows that begin there; else as `from_row_splits`.

        Example:
            >>> Ragged.from_row_starts([3, 1, 4], [0, 2, 2]).to_list()
            [[3, 1], [], [4]]
        """
        starts, found = _whole(row_starts, "row_starts"), _values_of(values, "RaggedTensor")
        return _split(found, np.array([*starts, found._shape[0]]), "row_starts")

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> Ragged:
        """Rows that end there; else as `from_row_splits`.

        Example:
            >>> Ragged.from_row_limits([3, 1, 4], [2, 2, 3]).to_list()
            [[3, 1], [], [4]]
        """
        limits = _whole(row_limits, "row_limits")
        return _split(values, np.array([0, *limits]), "row_limits")

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None,
        validate: bool = True,
    ) -> Ragged:  # fmt: skip
        """The row of each value, in their order.

        Args:
            values: Of all rows: a tensor or text with at least one axis.
            value_rowids: As many whole numbers, which do not go down.
            nrows: How many rows there are; None: up to the last one named.
            name: Ignored.
            validate: Ignored: they are always checked.

        Raises:
            InvalidArgumentError: They go down, are not as many, or name more rows.

        Example:
            >>> Ragged.from_value_rowids([3, 1, 4], [0, 0, 2]).to_list()
            [[3, 1], [], [4]]
        """
        rows, found = _whole(value_rowids, "value_rowids"), _values_of(values, "RaggedTensor")
        count = int(rows.max(initial=-1)) + 1 if nrows is None else operator.index(nrows)
        right = rows.shape == found._shape[:1] and not (np.diff(rows) < 0).any()
        if not right or rows.min(initial=0) < 0 or rows.max(initial=-1) >= count:
            raise InvalidArgumentError(
                "[RaggedTensor] value_rowids must name a row for each value, in their order: got "
                f"{shown(rows.tolist())} for {found._shape[0]} values and {count} rows."
            )
        return Ragged(found, np.bincount(rows, minlength=count).tolist())

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, name: str | None = None
    ) -> Ragged:
        """The rows of a matrix without what fills them up.

        Args:
            tensor: A tensor or text with at least two axes.
            lengths: Of the rows; None: all of it.
            padding: Instead: what is left out at the ends of rows.
            name: Ignored.

        Raises:
            ValueError: The tensor has fewer axes, or both lengths and padding are given.
            InvalidArgumentError: Lengths do not fit the rows.

        Example:
            >>> Ragged.from_tensor([[1, 3, -1], [2, -1, -1]], padding=-1).to_list()
            [[1, 3], [2]]
        """
        found = _values_of(tensor, "RaggedTensor.from_tensor")
        if found._rank < 2 or (lengths is not None and padding is not None):
            raise ValueError(
                "[RaggedTensor.from_tensor] a matrix, and lengths or padding or neither, are "
                f"needed: got shape {found._shape}, {lengths=} and {padding=}."
            )
        array = found.encoded if isinstance(found, Text) else found._numpy()
        count, width = array.shape[:2]
        if padding is not None:
            fill = _padding_of(padding, isinstance(found, Text))
            if np.shape(fill) not in ((), array.shape[2:]):
                raise ValueError(
                    f"[RaggedTensor.from_tensor] padding must have shape {array.shape[2:]} or be "
                    f"one element: got shape {np.shape(fill)}."
                )
            kept = (array != fill).reshape(count, width, -1).any(-1)
            sizes = (
                np.where(kept.any(1), width - kept[:, ::-1].argmax(1), 0) if width else [0] * count
            )
        else:
            sizes = [width] * count if lengths is None else _whole(lengths, "lengths")
        sizes = np.asarray(sizes, np.int64)
        if sizes.shape != (count,) or sizes.min(initial=0) < 0 or sizes.max(initial=0) > width:
            raise InvalidArgumentError(
                f"[RaggedTensor.from_tensor] lengths must be {count} numbers from 0 to {width}: "
                f"got {shown(sizes.tolist())}."
            )
        flat = array[np.arange(width) < sizes[:, None]]
        return Ragged(of_bytes(flat) if isinstance(found, Text) else Tensor(flat), sizes.tolist())

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """The values and their places.

        Example:
            >>> Ragged.from_row_lengths([3, 1, 4], [2, 1]).to_sparse().indices.numpy().tolist()
            [[0, 0], [0, 1], [1, 0]]
        """
        if self.flat_values._rank > 1:
            raise ValueError(
                "[RaggedTensor.to_sparse] values must be numbers or text: got shape "
                f"{tuple(self.flat_values._shape[1:])} for each."
            )
        rows = self.value_rowids()._numpy()
        places = np.stack([rows, np.arange(len(rows)) - self._ends[rows]], axis=1)
        return SparseTensor(places, self.flat_values, self.bounding_shape())

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

    @property
    def row_splits(self) -> Tensor:
        """Where rows begin, and where the last one ends (int64)."""
        return convert_to_tensor(self._ends.astype(np.int64))

    @property
    def nested_row_splits(self) -> tuple[Tensor]:
        """The `row_splits` of the one axis of different sizes."""
        return (self.row_splits,)

    def row_starts(self) -> Tensor:
        """Where each row begins (int64)."""
        return convert_to_tensor(self._ends[:-1].astype(np.int64))

    def row_limits(self) -> Tensor:
        """Where each row ends (int64)."""
        return convert_to_tensor(self._ends[1:].astype(np.int64))

    def value_rowids(self) -> Tensor:
        """The row of each value (int64)."""
        return convert_to_tensor(np.repeat(np.arange(self.nrows()), np.diff(self._ends)))

    def bounding_shape(self) -> Tensor:
        """The rows and the length of the longest (int64)."""
        longest = max(np.diff(self._ends).tolist(), default=0)
        return convert_to_tensor(np.array([self.nrows(), longest], np.int64))

    def __len__(self) -> int:
        return self.nrows()

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self.nrows()))

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return self._chosen(range(self.nrows())[row], slice(None))
        if isinstance(row, tuple) and len(row) == 2:
            first, second = row
            if isinstance(first, slice) and isinstance(second, slice):
                return self._chosen(range(self.nrows())[first], second)
            return self[first][second]
        try:
            place = range(self.nrows())[operator.index(row)]
        except TypeError:
            raise TypeError(
                f"[RaggedTensor] a row is a whole number or a slice: got {shown(row)}; pass an int."
            ) from None
        return self.flat_values[int(self._ends[place]) : int(self._ends[place + 1])]

    def _chosen(self, rows: range, columns: slice) -> Ragged:
        """Some rows, of each some values."""
        ends = self._ends
        places = [np.arange(ends[row], ends[row + 1])[columns] for row in rows]
        flat = np.concatenate([np.zeros(0, np.int64), *places]).astype(np.int64)
        texts = isinstance(self.flat_values, Text)
        values = self.flat_values.encoded if texts else self.flat_values._numpy()
        chosen = values[flat]
        return Ragged(of_bytes(chosen) if texts else Tensor(chosen), [*map(len, places)])

    def with_values(self, flat_values: Any) -> Ragged:
        """The same rows of other values."""
        return Ragged(flat_values, np.diff(self._ends).tolist())

    def with_flat_values(self, new_values: Any) -> Ragged:
        """The same rows of other values.

        Raises:
            InvalidArgumentError: There are more or fewer of them.
        """
        values = _values_of(new_values, "RaggedTensor.with_flat_values")
        if values._shape[0] != self._ends[-1]:
            raise InvalidArgumentError(
                f"[RaggedTensor.with_flat_values] new_values must be {self._ends[-1]}: got shape "
                f"{tuple(values._shape)}."
            )
        return self.with_values(values)

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
        width = int(max(lengths, default=0) if shape is None or shape[-1] is None else shape[-1])
        texts = isinstance(self.flat_values, Text)
        values = self.flat_values.encoded if texts else np.asarray(self.flat_values)
        if default_value is None:
            default_value = b"" if texts else 0
        default_value = Text(default_value).numpy() if texts else default_value
        try:
            matrix = np.full((self.nrows(), width, *values.shape[1:]), default_value, values.dtype)
        except ValueError:
            raise InvalidArgumentError(
                f"[RaggedTensor.to_tensor] default_value must be one element, of shape "
                f"{values.shape[1:]}: got {shown(default_value)}."
            ) from None
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
        raise TypeError(
            f"[RaggedTensor] this takes tensors of one length: got rows of lengths "
            f"{shown(np.diff(self._ends).tolist())}; fill them up with to_tensor(), or compute "
            "with flat_values."
        )

    def __repr__(self) -> str:
        return f"<samegrad.RaggedTensor {self.to_list()!r:.200}>"

    def _computed(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """What the function gives of the values and of a number, one for each row, or rows."""
        if isinstance(other, Ragged):
            if not np.array_equal(self._ends, other._ends):
                raise InvalidArgumentError(
                    "[RaggedTensor] rows must have the same lengths: got "
                    f"{shown(np.diff(self._ends).tolist())} and "
                    f"{shown(np.diff(other._ends).tolist())}."
                )
            return self.with_values(function(self.flat_values, other.flat_values))
        if is_text(other):
            beside: Any = Text(other)
        else:
            hint = None if isinstance(other, np.ndarray) else self._dtype
            beside = convert_to_tensor(other, dtype_hint=hint)
        if beside._rank == 0:
            return self.with_values(function(self.flat_values, beside))
        if beside._rank == 2 and beside._shape == (self.nrows(), 1):
            array = beside.encoded if isinstance(beside, Text) else beside._numpy()
            each = np.repeat(array[:, 0], np.diff(self._ends))
            made: Any = of_bytes(each) if isinstance(beside, Text) else Tensor(each)
            return self.with_values(function(self.flat_values, made))
        raise InvalidArgumentError(
            f"[RaggedTensor] a number, one for each of {self.nrows()} rows, or rows of the same "
            f"lengths are needed: got shape {tuple(beside._shape)}; see map_flat_values."
        )


def _whole(numbers: Any, what: str) -> Any:
    found = convert_to_tensor(numbers)._numpy()
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(
            f"[RaggedTensor] {what} must be a list of whole numbers: got {shown(numbers)}."
        )
    return found.astype(np.int64)


def _split(values: Any, splits: Any, what: str) -> Ragged:
    found = _values_of(values, "RaggedTensor")
    count = found._shape[0]
    ends = bool(splits.size) and splits[0] == 0 and splits[-1] == count
    if not ends or (np.diff(splits) < 0).any():
        raise InvalidArgumentError(
            f"[RaggedTensor] {what} must divide {count} values: got row_splits "
            f"{shown(splits.tolist())}, which go from 0 to {count} and never down."
        )
    return Ragged(found, np.diff(splits).tolist())


def _install() -> None:
    """Operators: those of the values."""
    names = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    for name in (*names, "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor"):
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        _add_operator(f"__{name}__", function)
        if name in (*names, "and", "or", "xor"):
            _add_operator(f"__r{name}__", _swapped(function))


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b, a)


def _add_operator(name: str, function: Callable[[Any, Any], Any]) -> None:
    def method(self: Ragged, other: Any) -> Any:
        return self._computed(other, function)

    setattr(Ragged, name, method)


_install()


def _values_of(values: Any, who: str) -> Any:
    """Values of rows: a tensor or text with at least one axis."""
    if isinstance(values, Ragged):
        raise NotImplementedError(
            f"[{who}] one axis has different sizes: got rows of rows of different lengths; fill "
            "the inner ones up with to_tensor()."
        )
    found = Text(values) if is_text(values) else convert_to_tensor(values)
    if not found._rank:
        raise ValueError(f"[{who}] values must be a list: got one value {shown(values)}.")
    return found


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
