"""Rows of different lengths, as the splitting of texts makes them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.ragged_broadcast import fitted
from samegrad._tensor.ragged_nested import OfDivisions
from samegrad._tensor.ragged_places import (
    filled_sizes,
    in_rows,
    index_parts,
    lengths_of_sparse,
    unpadded_lengths,
    whole,
    with_one_more,
)
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, array_of, is_text, leaf_of

_ops = _core.ops


class RaggedTensor(OfDivisions):
    """A ragged tensor: rows of unequal lengths.

    `tf.RaggedTensor`, with one ragged axis. It holds the values of all rows, and the start and end
    of each. It serves the preparation of data: steps compute with tensors (`to_tensor`, and
    `tf.sequence_mask` of `row_lengths`).

    Args:
        flat_values: The values of all rows: a tensor or strings of shape [values, ...].
        lengths: The lengths of the rows.

    Example:
        >>> RaggedTensor(Text(["a", "b", "c"]), [2, 0, 1]).to_list()
        [[b'a', b'b'], [], [b'c']]
    """

    __array_ufunc__ = None  # NumPy leaves + and == to this class
    __hash__: ClassVar[None] = None  # type: ignore[assignment]
    ragged_rank = 1

    def __init__(self, flat_values: Any, lengths: Sequence[int]) -> None:
        self.flat_values = self.values = flat_values
        self._ends = np.cumsum([0, *lengths])

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Create a ragged tensor whose row i is values[row_splits[i]:row_splits[i + 1]].

        Args:
            values: Values of all rows: a tensor or strings with at least one axis.
            row_splits: Integers in ascending order, from 0 to the number of values, one more than
                rows.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`.

        Raises:
            InvalidArgumentError: The splits do not begin with 0, descend, or do not end with the
                number of values.

        Example:
            >>> RaggedTensor.from_row_splits([3, 1, 4, 1, 5], [0, 2, 2, 5]).to_list()
            [[3, 1], [], [4, 1, 5]]
        """
        return _split(values, whole(row_splits, "row_splits"), "row_splits")

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Create a ragged tensor from row lengths.

        Args:
            values: Values of all rows: a tensor or strings with at least one axis.
            row_lengths: Integers, whose sum is the number of values.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`.

        Raises:
            InvalidArgumentError: A length is negative, or the sum is another one.

        Example:
            >>> RaggedTensor.from_row_lengths([3, 1, 4], [2, 0, 1]).to_list()
            [[3, 1], [], [4]]
        """
        lengths = whole(row_lengths, "row_lengths")
        return _split(values, np.cumsum([0, *lengths]), "row_lengths")

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Create a ragged tensor from the starts of its rows.

        Args:
            values: Values of all rows: a tensor or strings with at least one axis.
            row_starts: Integers in ascending order, the first one 0.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`.

        Raises:
            InvalidArgumentError: The starts do not begin with 0, descend, or exceed the number of
                values.

        Example:
            >>> RaggedTensor.from_row_starts([3, 1, 4], [0, 2, 2]).to_list()
            [[3, 1], [], [4]]
        """
        starts, found = whole(row_starts, "row_starts"), _values_of(values, "RaggedTensor")
        return _split(found, np.array([*starts, found._shape[0]]), "row_starts")

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Create a ragged tensor from the ends of its rows.

        Args:
            values: Values of all rows: a tensor or strings with at least one axis.
            row_limits: Integers in ascending order, the last one the number of values.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`.

        Raises:
            InvalidArgumentError: The limits descend, or do not end with the number of values.

        Example:
            >>> RaggedTensor.from_row_limits([3, 1, 4], [2, 2, 3]).to_list()
            [[3, 1], [], [4]]
        """
        limits = whole(row_limits, "row_limits")
        return _split(values, np.array([0, *limits]), "row_limits")

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:  # fmt: skip
        """Create a ragged tensor from the row of each value.

        Args:
            values: Values of all rows: a tensor or strings with at least one axis.
            value_rowids: Integers in ascending order, one for each value.
            nrows: The number of rows; None: the largest row id + 1.
            name: Ignored.
            validate: Ignored: the divisions are always checked.

        Returns:
            A `RaggedTensor`.

        Raises:
            InvalidArgumentError: The row ids descend, are not as many as values, or exceed `nrows`.

        Example:
            >>> RaggedTensor.from_value_rowids([3, 1, 4], [0, 0, 2]).to_list()
            [[3, 1], [], [4]]
        """
        rows, found = whole(value_rowids, "value_rowids"), _values_of(values, "RaggedTensor")
        count = int(rows.max(initial=-1)) + 1 if nrows is None else operator.index(nrows)
        right = rows.shape == found._shape[:1] and not (np.diff(rows) < 0).any()
        if not right or rows.min(initial=0) < 0 or rows.max(initial=-1) >= count:
            raise InvalidArgumentError(
                "[RaggedTensor] value_rowids must name a row for each value, in their order: got "
                f"{shown(rows.tolist())} for {found._shape[0]} values and {count} rows."
            )
        return RaggedTensor(found, np.bincount(rows, minlength=count).tolist())

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1,
        name: str | None = None, row_splits_dtype: DTypeLike = "int64",
    ) -> RaggedTensor:  # fmt: skip
        """Create a ragged tensor from a dense one, without its padding.

        Args:
            tensor: A tensor or strings with at least two axes.
            lengths: The lengths of the rows; None: the whole rows.
            padding: The padding to remove at the ends of rows, instead of lengths.
            ragged_rank: Must be 1.
            name: Ignored.
            row_splits_dtype: Ignored.

        Returns:
            A `RaggedTensor`.

        Raises:
            ValueError: The tensor has fewer axes, or both lengths and padding are given.
            InvalidArgumentError: The lengths do not fit the rows.
            NotImplementedError: `ragged_rank` is not 1.

        Example:
            >>> RaggedTensor.from_tensor([[1, 3, -1], [2, -1, -1]], padding=-1).to_list()
            [[1, 3], [2]]
        """
        who = "RaggedTensor.from_tensor"
        if ragged_rank != 1:
            raise NotImplementedError(f"[{who}] ragged_rank must be 1: got {shown(ragged_rank)}.")
        found = _values_of(tensor, who)
        if found._rank < 2 or (lengths is not None and padding is not None):
            raise ValueError(
                f"[{who}] a matrix, and lengths or padding or neither, are needed: got shape "
                f"{found._shape}, {lengths=} and {padding=}."
            )
        count, width, *inner = found._shape
        if padding is not None:
            sizes = unpadded_lengths(found, padding)
        else:
            sizes = [width] * count if lengths is None else whole(lengths, "lengths")
        sizes = np.asarray(sizes, np.int64)
        if sizes.shape != (count,) or sizes.min(initial=0) < 0 or sizes.max(initial=0) > width:
            raise InvalidArgumentError(
                f"[RaggedTensor.from_tensor] lengths must be {count} numbers from 0 to {width}: "
                f"got {shown(sizes.tolist())}."
            )
        places = np.flatnonzero(np.arange(width) < sizes[:, None])
        flat = [count * width, *inner]
        rows = (
            leaf_of(found.encoded.reshape(flat))
            if isinstance(found, Text)
            else _ops.reshape(found, shape=flat)
        )
        return RaggedTensor(in_rows(rows, places), sizes.tolist())

    @classmethod
    def from_sparse(
        cls, st_input: SparseTensor, name: str | None = None, row_splits_dtype: DTypeLike = "int64"
    ) -> RaggedTensor:
        """Create a ragged tensor from a sparse matrix whose rows have no gaps.

        Args:
            st_input: A `SparseTensor` with two axes.
            name: Ignored.
            row_splits_dtype: Ignored; row splits are int64.

        Returns:
            A `RaggedTensor`.

        Raises:
            InvalidArgumentError: A row has a gap, or indices are out of order.
        """
        lengths = lengths_of_sparse(st_input)
        return RaggedTensor(st_input.values, lengths)

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """Return a `SparseTensor` of the values and their indices.

        Example:
            >>> rows = RaggedTensor.from_row_lengths([3, 1, 4], [2, 1])
            >>> rows.to_sparse().indices.numpy().tolist()
            [[0, 0], [0, 1], [1, 0]]
        """
        if self.flat_values._rank > 1:
            raise ValueError(
                "[RaggedTensor.to_sparse] values must be numbers or strings: got shape "
                f"{tuple(self.flat_values._shape[1:])} for each."
            )
        rows = self.value_rowids()._numpy()
        places = np.stack([rows, np.arange(len(rows)) - self._ends[rows]], axis=1)
        return SparseTensor(places, self.flat_values, self.bounding_shape())

    @property
    def shape(self) -> TensorShape:
        """The number of rows, and None, or the length of all of them."""
        return tuple.__new__(
            TensorShape, (self.nrows(), self._uniform, *self.flat_values._shape[1:])
        )

    def nrows(self, out_type: DTypeLike | None = None, name: str | None = None) -> Any:
        """Return the number of rows.

        Args:
            out_type: The dtype of the result; None: a Python int.
            name: Ignored.

        Returns:
            An int, or an integer scalar tensor.
        """
        return len(self) if out_type is None else convert_to_tensor(len(self), out_type)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """Return the lengths of the rows.

        Args:
            axis: 1; 0 gives the number of rows.
            name: Ignored.

        Returns:
            An int64 vector [rows], or an int64 scalar.

        Raises:
            ValueError: There is no such axis.
        """
        if axis in (0, -self._rank):
            return self.nrows("int64")
        if axis not in (1, 1 - self._rank):
            raise ValueError(f"[RaggedTensor.row_lengths] axis must be 0 or 1: got {axis}.")
        return convert_to_tensor(np.diff(self._ends).astype(np.int64))

    @property
    def row_splits(self) -> Tensor:
        """The starts of the rows, and the end of the last one (int64)."""
        return convert_to_tensor(self._ends.astype(np.int64))

    @property
    def nested_row_splits(self) -> tuple[Tensor]:
        """The `row_splits` of the one axis of different sizes."""
        return (self.row_splits,)

    def row_starts(self, name: str | None = None) -> Tensor:
        """Return the start of each row (int64)."""
        return convert_to_tensor(self._ends[:-1].astype(np.int64))

    def row_limits(self, name: str | None = None) -> Tensor:
        """Return the end of each row (int64)."""
        return convert_to_tensor(self._ends[1:].astype(np.int64))

    def value_rowids(self, name: str | None = None) -> Tensor:
        """Return the row of each value (int64)."""
        return convert_to_tensor(np.repeat(np.arange(self.nrows()), np.diff(self._ends)))

    def bounding_shape(
        self, axis: Any = None, name: str | None = None, out_type: DTypeLike | None = None
    ) -> Tensor:
        """Return the smallest dense shape that holds all values.

        Args:
            axis: One axis or several; None: all.
            name: Ignored.
            out_type: The dtype of the result; None: int64.

        Returns:
            A vector: the number of rows, the largest row length, and the shape of a value.

        Example:
            >>> RaggedTensor.from_row_lengths([[3, 1], [4, 1]], [2, 0]).bounding_shape().numpy()
            array([2, 2, 2])
        """
        longest = max(np.diff(self._ends).tolist(), default=0)
        sizes = np.array([self.nrows(), longest, *self.flat_values._shape[1:]], np.int64)
        axes = np.asarray(range(len(sizes)) if axis is None else axis)
        if axes.dtype.kind not in "iu" or (abs(axes + 0.5) > len(sizes)).any():
            raise ValueError(
                f"[RaggedTensor.bounding_shape] axis must lie in [{-len(sizes)}, {len(sizes)}): "
                f"got {shown(axis)}."
            )
        chosen = sizes[axes]
        return convert_to_tensor(chosen.astype(as_dtype(out_type or "int64").as_numpy_dtype))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self.nrows()))

    def __getitem__(self, key: Any) -> Any:
        first, *rest = index_parts(key, self._rank)
        if isinstance(first, slice):
            if rest and not isinstance(rest[0], slice):
                raise ValueError(
                    "[RaggedTensor] rows differ in length, so that one value of each cannot be "
                    f"taken: got {shown(key)}; take a slice of each row, or to_tensor() first."
                )
            chosen = self._chosen(range(self.nrows())[first], rest[0] if rest else slice(None))
            inner = (slice(None), *rest[1:])
            return chosen._like(chosen.flat_values[inner]) if len(inner) > 1 else chosen
        place = operator.index(first)
        if not -self.nrows() <= place < self.nrows():
            raise IndexError(
                f"[RaggedTensor] the index of a row must lie in [{-self.nrows()}, {self.nrows()}): "
                f"got {place}."
            )
        place %= self.nrows()
        row = self.flat_values[int(self._ends[place]) : int(self._ends[place + 1])]
        return row[tuple(rest)] if rest else row

    def _chosen(self, rows: Iterable[int], columns: slice) -> RaggedTensor:
        """Select rows, and values of each."""
        ends = self._ends
        places = [np.arange(ends[row], ends[row + 1])[columns] for row in rows]
        flat = np.concatenate([np.zeros(0, np.int64), *places]).astype(np.int64)
        return RaggedTensor(in_rows(self.flat_values, flat), [*map(len, places)])

    def _like(self, values: Any) -> RaggedTensor:
        made = RaggedTensor(values, np.diff(self._ends).tolist())
        made._uniform = self._uniform
        return made

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """Return the same rows with other values.

        Args:
            new_values: As many values: a tensor or strings.

        Returns:
            A `RaggedTensor`.

        Raises:
            ValueError: The number of values differs.

        Example:
            >>> RaggedTensor.from_row_lengths([3, 1, 4], [2, 1]).with_values([1, 2, 3]).to_list()
            [[1, 2], [3]]
        """
        values = _values_of(new_values, "RaggedTensor.with_values")
        if values._shape[0] != self._ends[-1]:
            raise ValueError(
                f"[RaggedTensor.with_values] new_values must be {self._ends[-1]}: got shape "
                f"{tuple(values._shape)}."
            )
        return self._like(values)

    with_values = with_flat_values

    def to_tensor(
        self, default_value: Any = None, name: str | None = None, shape: Any = None
    ) -> Any:
        """Convert to a dense tensor, with shorter rows padded.

        Args:
            default_value: The padding: a scalar, or the shape of a value. None: zeros, or empty
                strings.
            name: Ignored.
            shape: The shape of the result; None for a size, or for all: as large as the rows need.
                Rows and values beyond it are left out.

        Returns:
            A tensor, or strings.

        Raises:
            TypeError: The padding does not have the values' dtype.
            ValueError: The padding has another shape, or `shape` does not fit.

        Example:
            >>> RaggedTensor(convert_to_tensor([1, 2, 3]), [1, 2]).to_tensor().numpy()
            array([[1, 0],
                   [2, 3]], dtype=int32)
        """
        lengths = np.diff(self._ends)
        needed = [self.nrows(), int(lengths.max(initial=0)), *self.flat_values._shape[1:]]
        count, width = filled_sizes(shape, needed)
        filled = int(self._ends[-1])  # the place of what the rows are filled up with
        columns = np.arange(width)
        places = np.where(
            columns < lengths[:count, None], self._ends[:-1][:count, None] + columns, filled
        )
        more = max(count - self.nrows(), 0)
        places = np.pad(places, ((0, more), (0, 0)), constant_values=filled)
        values = with_one_more(self.flat_values, default_value)
        return in_rows(values, places)

    def numpy(self) -> Any:
        """Return a NumPy array if all rows have one length, else an array of arrays."""
        rows = self._arrays()
        if len({len(row) for row in rows}) == 1:
            return np.stack(rows)
        made = np.empty(len(rows), object)
        made[:] = rows
        return made

    def to_list(self) -> list[Any]:
        """Return the rows as lists."""
        return [row.tolist() for row in self._arrays()]

    def _arrays(self) -> list[Any]:
        values = array_of(self.flat_values)
        return [values[begin:end] for begin, end in pairwise(self._ends.tolist())]

    def __bool__(self) -> bool:
        raise TypeError(
            f"[RaggedTensor] rows are neither true nor false: got {self!r:.80}; ask reduce_all or "
            "reduce_any of flat_values, or len()."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(
            f"[RaggedTensor] a dense tensor is needed: got a ragged tensor with rows of lengths "
            f"{shown(np.diff(self._ends).tolist())}; fill them up with to_tensor(), or compute "
            "with flat_values."
        )

    def __repr__(self) -> str:
        if getattr(self.flat_values, "_symbolic", False):
            return f"<samegrad.RaggedTensor: shape={self.shape}, dtype={self._dtype}, traced>"
        return f"<samegrad.RaggedTensor {self.to_list()!r:.200}>"

    def _computed(self, other: Any, function: Callable[[Any, Any], Any]) -> Any:
        """Apply a function to the values and the operand matched to them."""
        values, rows = fitted([self, other], "RaggedTensor")
        return rows._like(function(*values))

    def _equal(self, other: Any, equal: bool) -> Any:
        """Compare values; None, strings against numbers and other row lengths differ from all."""
        text = other._dtype == "string" if isinstance(other, RaggedTensor) else is_text(other)
        if other is None or text != isinstance(self.flat_values, Text):
            return not equal
        try:
            return self._computed(other, operator.eq if equal else operator.ne)
        except InvalidArgumentError:  # rows of other lengths
            return not equal

    def __eq__(self, other: object) -> Any:
        return self._equal(other, True)

    def __ne__(self, other: object) -> Any:
        return self._equal(other, False)


def _split(values: Any, splits: Any, what: str) -> RaggedTensor:
    found = _values_of(values, "RaggedTensor")
    count = found._shape[0]
    ends = bool(splits.size) and splits[0] == 0 and splits[-1] == count
    if not ends or (np.diff(splits) < 0).any():
        raise InvalidArgumentError(
            f"[RaggedTensor] {what} must divide {count} values: got row_splits "
            f"{shown(splits.tolist())}, which go from 0 to {count} and never down."
        )
    return RaggedTensor(found, np.diff(splits).tolist())


def _install() -> None:
    """Install the operators of the values."""
    names = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
    for name in (*names, "lt", "le", "gt", "ge", "and", "or", "xor"):
        function = getattr(operator, f"{name}_" if name in ("and", "or") else name)
        _add_operator(f"__{name}__", function)
        if name in (*names, "and", "or", "xor"):
            _add_operator(f"__r{name}__", _swapped(function))
    for name in ("neg", "abs", "invert"):
        _add_operator_of_one(f"__{name}__", getattr(operator, name))


def _swapped(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(b, a)


def _add_operator(name: str, function: Callable[[Any, Any], Any]) -> None:
    def method(self: RaggedTensor, other: Any) -> Any:
        return self._computed(other, function)

    setattr(RaggedTensor, name, method)


def _add_operator_of_one(name: str, function: Callable[[Any], Any]) -> None:
    def method(self: RaggedTensor) -> Any:
        return self._like(function(self.flat_values))

    setattr(RaggedTensor, name, method)


_install()


def _values_of(values: Any, who: str) -> Any:
    """Return the values of rows: a tensor or strings with at least one axis."""
    if isinstance(values, RaggedTensor):
        raise NotImplementedError(
            f"[{who}] one axis has different sizes: got several ragged axes; fill "
            "the inner ones up with to_tensor()."
        )
    found = Text(values) if is_text(values) else convert_to_tensor(values)
    if not found._rank:
        raise ValueError(f"[{who}] values must be a list: got one value {shown(values)}.")
    return found
