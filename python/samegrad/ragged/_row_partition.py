"""`tf.experimental.RowPartition`: how the elements of a ragged tensor are divided into rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, as_dtype
from samegrad._base.shown import shown
from samegrad._control import assertions as debugging
from samegrad._ops.arrays import cast, concat, repeat
from samegrad._ops.creation import fill, zeros
from samegrad._ops.creation import range_ as _range
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.math import cumsum
from samegrad.ragged._row_ids import segment_ids_to_row_splits

_KINDS = ("int32", "int64")


class RowPartition:
    """A division of consecutive elements into rows.

    Make one with `from_row_splits`, `from_row_lengths`, `from_row_starts`, `from_row_limits`,
    `from_value_rowids` or `from_uniform_row_length`.

    Args:
        row_splits: The index where each row begins, and where the last one ends.
        row_lengths: The number of elements of each row, if it is known.
        value_rowids: The row of each element, if it is known.
        nrows: The number of rows, if it is known.
        uniform_row_length: The number of elements of every row, if all have as many.
        nvals: The number of elements, if it is known.

    Example:
        >>> import samegrad as tf
        >>> rows = tf.experimental.RowPartition.from_row_lengths([2, 0, 1])
        >>> rows.row_splits().numpy(), rows.value_rowids().numpy()
        (array([0, 2, 2, 3]), array([0, 0, 2]))
    """

    def __init__(
        self, row_splits: Tensor, row_lengths: Tensor | None = None,
        value_rowids: Tensor | None = None, nrows: Tensor | None = None,
        uniform_row_length: Tensor | None = None, nvals: Tensor | None = None,
    ) -> None:  # fmt: skip
        self._row_splits, self._row_lengths = row_splits, row_lengths
        self._value_rowids, self._nrows = value_rowids, nrows
        self._uniform_row_length, self._nvals = uniform_row_length, nvals

    @classmethod
    def from_row_splits(
        cls, row_splits: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Create a partition from the indices where rows begin, and where the last one ends.

        Args:
            row_splits: Ascending integers from 0, [rows + 1].
            validate: Check the values.
            dtype: int32 or int64; None: that of row_splits.
            dtype_hint: The dtype of lists; None: int64.

        Returns:
            The partition.

        Raises:
            ValueError: row_splits is empty or no vector of integers.
            InvalidArgumentError: The values do not ascend from 0.
        """
        who = "from_row_splits"
        splits = _vector(who, "row_splits", row_splits, dtype, dtype_hint)
        if splits._shape[0] == 0:
            raise ValueError(
                f"[RowPartition.{who}] row_splits tensor may not be empty: got {shown(row_splits)}."
            )
        if validate:
            _check(who, "row_splits must begin with 0", debugging.assert_equal, splits[0], 0)
            _check(who, "row_splits must ascend", debugging.assert_less_equal, splits[:-1],
                   splits[1:])  # fmt: skip
        return cls(splits)

    @classmethod
    def from_row_lengths(
        cls, row_lengths: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Create a partition from the number of elements of each row.

        Args:
            row_lengths: Integers of 0 or more, [rows].
            validate: Check the values.
            dtype: int32 or int64; None: that of row_lengths.
            dtype_hint: The dtype of lists; None: int64.

        Returns:
            The partition.

        Raises:
            ValueError: row_lengths is not a vector of integers.
            InvalidArgumentError: A length is negative.
        """
        who = "from_row_lengths"
        lengths = _vector(who, "row_lengths", row_lengths, dtype, dtype_hint)
        if validate:
            rule = "row_lengths must be 0 or more"
            _check(who, rule, debugging.assert_greater_equal, lengths, 0)
        return cls(_with_zero(cumsum(lengths)), row_lengths=lengths)

    @classmethod
    def from_row_starts(
        cls, row_starts: Any, nvals: Any, validate: bool = True, dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """Create a partition from the index where each row begins.

        Args:
            row_starts: Ascending integers from 0, [rows].
            nvals: The number of elements.
            validate: Check the values.
            dtype: int32 or int64; None: that of row_starts.
            dtype_hint: The dtype of lists; None: int64.

        Returns:
            The partition.

        Raises:
            ValueError: row_starts is not a vector of integers.
            InvalidArgumentError: The values do not ascend from 0 to at most nvals.
        """
        starts = _vector("from_row_starts", "row_starts", row_starts, dtype, dtype_hint)
        end = _scalar("from_row_starts", "nvals", nvals, starts._dtype)
        made = cls.from_row_splits(concat([starts, _line(end)], 0), validate)
        made._nvals = end
        return made

    @classmethod
    def from_row_limits(
        cls, row_limits: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Create a partition from the index where each row ends.

        Args:
            row_limits: Ascending integers of 0 or more, [rows].
            validate: Check the values.
            dtype: int32 or int64; None: that of row_limits.
            dtype_hint: The dtype of lists; None: int64.

        Returns:
            The partition.

        Raises:
            ValueError: row_limits is not a vector of integers.
            InvalidArgumentError: The values do not ascend.
        """
        limits = _vector("from_row_limits", "row_limits", row_limits, dtype, dtype_hint)
        return cls.from_row_splits(_with_zero(limits), validate)

    @classmethod
    def from_value_rowids(
        cls, value_rowids: Any, nrows: Any = None, validate: bool = True, dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """Create a partition from the row of each element.

        Args:
            value_rowids: Ascending integers of 0 or more, [elements].
            nrows: The number of rows; None: one more than the last id.
            validate: Ignored: the values are checked.
            dtype: int32 or int64; None: that of value_rowids.
            dtype_hint: The dtype of lists; None: int64.

        Returns:
            The partition.

        Raises:
            ValueError: value_rowids is not a vector of integers, or nrows no integer above the ids.
            InvalidArgumentError: The ids do not ascend.
        """
        who = "from_value_rowids"
        ids = _vector(who, "value_rowids", value_rowids, dtype, dtype_hint)
        count = None if nrows is None else _scalar(who, "nrows", nrows, ids._dtype)
        if count is not None and not count._symbolic and int(count) < 0:
            raise ValueError(f"[RowPartition.{who}] Expected nrows >= 0; got {int(count)}.")
        if count is not None and not (count._symbolic or ids._symbolic) and ids._shape[0]:
            last = int(ids[-1])
            if last >= int(count):
                raise ValueError(
                    f"[RowPartition.{who}] Expected nrows >= value_rowids[-1] + 1; got "
                    f"nrows={int(count)}, value_rowids[-1]={last}."
                )
        splits = segment_ids_to_row_splits(ids, count)
        return cls(splits, value_rowids=ids, nrows=count)

    @classmethod
    def from_uniform_row_length(
        cls, uniform_row_length: Any, nvals: Any = None, nrows: Any = None, validate: bool = True,
        dtype: Any = None, dtype_hint: Any = None,
    ) -> RowPartition:  # fmt: skip
        """Create a partition whose rows have one length.

        Args:
            uniform_row_length: The number of elements of each row.
            nvals: The number of elements; None: that of all rows.
            nrows: The number of rows; None: that of the elements.
            validate: Check the values.
            dtype: int32 or int64; None: that of the arguments.
            dtype_hint: The dtype of Python numbers; None: int64.

        Returns:
            The partition.

        Raises:
            ValueError: Neither nvals nor nrows is given, or an argument is not an integer.
            InvalidArgumentError: The rows do not have nvals elements in all.
        """
        who = "from_uniform_row_length"
        if nvals is None and nrows is None:
            raise ValueError(f"[RowPartition.{who}] nvals or nrows must be given: got neither.")
        kind = _kind((uniform_row_length, nvals, nrows), dtype, dtype_hint)
        length = _scalar(who, "uniform_row_length", uniform_row_length, kind)
        total = None if nvals is None else _scalar(who, "nvals", nvals, kind)
        if nrows is not None:
            count = _scalar(who, "nrows", nrows, kind)
        else:
            assert total is not None
            some = length if length._symbolic or int(length) else length + 1
            count = total // some if length._symbolic or int(length) else total * 0
        made = length * count
        if validate:
            _check(who, "uniform_row_length must be 0 or more", debugging.assert_greater_equal,
                   length, 0)  # fmt: skip
            if total is not None:
                _check(who, "uniform_row_length * nrows must be nvals", debugging.assert_equal,
                       made, total)  # fmt: skip
        splits = _range(count + 1) * length
        return cls(splits, nrows=count, uniform_row_length=length, nvals=total if nrows is None
                   and total is not None else made)  # fmt: skip

    @property
    def dtype(self) -> DType:
        """The dtype of the row splits."""
        return as_dtype(self._row_splits._dtype)

    def row_splits(self) -> Tensor:
        """Return the index where each row begins, and where the last one ends, [rows + 1]."""
        return self._row_splits

    def row_starts(self) -> Tensor:
        """Return the index where each row begins, [rows]."""
        return self._row_splits[:-1]

    def row_limits(self) -> Tensor:
        """Return the index where each row ends, [rows]."""
        return self._row_splits[1:]

    def row_lengths(self) -> Tensor:
        """Return the number of elements of each row, [rows]."""
        if self._row_lengths is not None:
            return self._row_lengths
        if self._uniform_row_length is not None:
            return fill([self._row_splits.shape[0] - 1], self._uniform_row_length)
        return self._row_splits[1:] - self._row_splits[:-1]

    def value_rowids(self) -> Tensor:
        """Return the row of each element, [elements]."""
        if self._value_rowids is not None:
            return self._value_rowids
        return repeat(_range(self.nrows()), self.row_lengths())

    def offsets_in_rows(self) -> Tensor:
        """Return the index of each element in its row, [elements]."""
        return _range(self.nvals()) - repeat(self.row_starts(), self.row_lengths())

    def nrows(self) -> Tensor:
        """Return the number of rows, a scalar."""
        if self._nrows is not None:
            return self._nrows
        return cast(convert_to_tensor(self._row_splits.shape[0] - 1), self._row_splits._dtype)

    def nvals(self) -> Tensor:
        """Return the number of elements, a scalar."""
        return self._row_splits[-1] if self._nvals is None else self._nvals

    def uniform_row_length(self) -> Tensor | None:
        """Return the number of elements of every row, or None where they may differ."""
        return self._uniform_row_length

    def is_uniform(self) -> bool:
        """Return whether the partition was made of one length for all rows."""
        return self._uniform_row_length is not None

    @property
    def static_nrows(self) -> int | None:
        """The number of rows, or None where it is unknown."""
        count = self._row_splits._shape[0]
        return None if count is None or isinstance(count, Dim) else int(count) - 1

    @property
    def static_nvals(self) -> int | None:
        """The number of elements, or None where it is unknown."""
        if self._value_rowids is not None:
            size: int | None = self._value_rowids._shape[0]
            return size
        return _known(self.nvals())

    @property
    def static_uniform_row_length(self) -> int | None:
        """The number of elements of every row, or None where it is unknown or differs."""
        return None if self._uniform_row_length is None else _known(self._uniform_row_length)

    def with_dtype(self, dtype: Any) -> RowPartition:
        """Return the partition with another dtype.

        Args:
            dtype: int32 or int64.

        Returns:
            The partition.

        Raises:
            ValueError: dtype is another one.
        """
        kind = _checked("with_dtype", as_dtype(dtype).name)
        parts = {name: None if value is None else cast(value, kind)
                 for name, value in vars(self).items()}  # fmt: skip
        return RowPartition(**{name.removeprefix("_"): value for name, value in parts.items()})  # type: ignore[arg-type]

    def __repr__(self) -> str:
        if self._uniform_row_length is not None:
            parts = {"nrows": self.nrows(), "uniform_row_length": self._uniform_row_length}
        else:
            parts = {"row_splits": self._row_splits}
        values = [f"{name}={_written(value)}" for name, value in parts.items()]
        return f"tf.RowPartition({', '.join(values)})"


def _written(value: Tensor) -> str:
    return repr(value) if value._symbolic else str(value.numpy())


def _known(value: Tensor) -> int | None:
    return None if value._symbolic else int(value)


def _line(value: Tensor) -> Tensor:
    return value[None]


def _with_zero(ends: Tensor) -> Tensor:
    return concat([zeros([1], ends._dtype), ends], 0)


def _checked(who: str, kind: str) -> str:
    if kind not in _KINDS:
        raise ValueError(
            f"[RowPartition.{who}] partitions are int32 or int64: got {kind}; use samegrad.cast."
        )
    return kind


def _kind(values: Any, dtype: Any, hint: Any) -> str:
    """Return the dtype of a partition: that of tensors and arrays, or else int64."""
    if dtype is not None:
        return as_dtype(dtype).name
    kinds = [
        value._dtype if isinstance(value, Tensor) else str(value.dtype)
        for value in values
        if isinstance(value, Tensor | np.ndarray | np.generic)
    ]
    if kinds:
        return "int64" if "int64" in kinds else kinds[0]
    return "int64" if hint is None else as_dtype(hint).name


def _integers(who: str, name: str, value: Any) -> Tensor:
    made = convert_to_tensor(value)
    if not as_dtype(made._dtype).is_integer and made._shape != (0,):
        raise ValueError(f"[RowPartition.{who}] {name} must be integers: got {shown(value)}.")
    return made


def _vector(who: str, name: str, value: Any, dtype: Any, hint: Any) -> Tensor:
    kind = _checked(who, _kind((value,), dtype, hint))
    made = _integers(who, name, value)
    found = cast(made, kind) if made._dtype != kind else made
    if found._rank != 1:
        raise ValueError(
            f"[RowPartition.{who}] {name} is a vector: Shape {found._shape} must have rank 1."
        )
    return found


def _scalar(who: str, name: str, value: Any, kind: str) -> Tensor:
    _checked(who, kind)
    made = _integers(who, name, value)
    if made._rank != 0:
        raise ValueError(
            f"[RowPartition.{who}] {name} is a scalar: Shape {made._shape} must have rank 0."
        )
    return cast(made, kind) if made._dtype != kind else made


def _check(who: str, rule: str, check: Any, *values: Any) -> None:
    if values[0]._rank and values[0]._shape[0] == 0:
        return
    check(*values, message=f"[RowPartition.{who}] {rule}")


__all__ = ["RowPartition"]
