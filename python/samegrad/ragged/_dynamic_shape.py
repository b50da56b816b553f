"""`tf.experimental.DynamicRaggedShape`: the sizes of a ragged tensor's axes."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from samegrad._base.dtypes import DType, DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._control import assertions as debugging
from samegrad._ops.arrays import cast, stack
from samegrad._ops.arrays import shape as _shape
from samegrad._tensor.dim import Dim
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_spec import RaggedShape
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text, is_text
from samegrad._tensor.version_1_values import RaggedTensorValue
from samegrad.ragged._row_partition import RowPartition

_WHO = "DynamicRaggedShape"
Lengths = list[Any]


class DynamicRaggedShape(RaggedShape):
    """The shape of a ragged tensor: row partitions of the outer axes, sizes of the inner ones.

    `tf.shape` returns it for ragged tensors. `reshape`, `broadcast_to`, `broadcast_dynamic_shape`,
    `fill`, `zeros` and `ones` take it.

    Args:
        row_partitions: A `RowPartition` for each partitioned axis after the first, the outermost
            first.
        inner_shape: The shape of the flat values, a vector; without row partitions the shape of
            the tensor.
        dtype: int32 or int64; None: that of the row partitions or of inner_shape, or int64.
        validate: Check values that are known at run time only.
        static_inner_shape: Sizes of inner_shape that are known; None: those of its values.

    Raises:
        TypeError: row_partitions is not a list of `RowPartition`.
        ValueError: The row partitions and inner_shape do not fit each other.

    Example:
        >>> import samegrad as tf
        >>> shape = tf.shape(tf.ragged.constant([[1, 2], [], [3, 4, 5]]))
        >>> shape
        <DynamicRaggedShape lengths=[3, (2, 0, 3)] num_row_partitions=1>
        >>> tf.reshape(tf.range(5), shape).to_list(), int(shape[0])
        ([[0, 1], [], [2, 3, 4]], 3)
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, row_partitions: Sequence[RowPartition], inner_shape: Any,
        dtype: DTypeLike | None = None, validate: bool = False, static_inner_shape: Any = None,
    ) -> None:  # fmt: skip
        parts = _partitions(row_partitions)
        kind = _kind_of(parts, inner_shape, dtype)
        self._row_partitions = tuple(
            part if part.dtype.name == kind else part.with_dtype(kind) for part in parts
        )
        self._inner_shape = _sizes(inner_shape, kind)
        known = TensorShape(_static(self._inner_shape))
        self._static = known if static_inner_shape is None else known.merge_with(static_inner_shape)
        self._check(validate)

    def _check(self, validate: bool) -> None:
        """Check that each axis has as many rows as the one before has values."""
        for axis, part in enumerate(self._row_partitions[1:]):
            before = self._row_partitions[axis]
            rule = f"row partitions {axis} and {axis + 1} do not align"
            _fit(rule, before.static_nvals, part.static_nrows, validate, before.nvals, part.nrows)
        if self._row_partitions:
            if not self._static.rank:
                raise ValueError(
                    f"[{_WHO}] with row partitions, inner_shape must have the size of the flat "
                    f"values: got {shown(self._inner_shape)}."
                )
            last = self._row_partitions[-1]
            rule = "Last row partition does not match inner_shape"
            _fit(rule, last.static_nvals, self._static[0], validate, last.nvals,
                 lambda: self._inner_shape[0])  # fmt: skip

    @classmethod
    def from_lengths(
        cls, lengths: Lengths, num_row_partitions: int | None = None, dtype: DTypeLike = "int64"
    ) -> DynamicRaggedShape:
        """Create a shape from the size of each axis, or the lengths of its rows.

        Args:
            lengths: For each axis an integer, or a tuple with the length of each row.
            num_row_partitions: The number of partitioned axes; None: as few as hold the tuples.
            dtype: int32 or int64.

        Returns:
            The shape.

        Raises:
            ValueError: lengths is not such a list, or does not fit num_row_partitions.

        Example:
            >>> DynamicRaggedShape.from_lengths([2, (3, 2), 7]).row_partitions
            (tf.RowPartition(row_splits=[0 3 5]),)
        """
        _check_lengths(lengths)
        count = num_row_partitions
        if count is None:
            count = max((axis for axis, n in enumerate(lengths) if isinstance(n, tuple)), default=0)
        if not isinstance(count, int):
            raise ValueError(
                f"[{_WHO}] num_row_partitions should be an int or None: got {shown(count)}."
            )
        if not lengths and count:
            raise ValueError(f"[{_WHO}] num_row_partitions==0 for a scalar shape: got {count}.")
        if lengths and not 0 <= count < len(lengths):
            raise ValueError(
                f"[{_WHO}] num_row_partitions should be less than the number of axes: got {count} "
                f"for {shown(lengths)}."
            )
        parts, rows = [], lengths[0] if lengths else 0
        for each in lengths[1 : count + 1]:
            if isinstance(each, int):
                parts.append(RowPartition.from_uniform_row_length(each, nrows=rows, dtype=dtype))
                rows *= each
            else:
                _need(len(each) == rows, f"{rows} rows have no lengths {shown(each)}")
                parts.append(RowPartition.from_row_lengths(list(each), dtype=dtype))
                rows = sum(each)
        inner = [rows, *lengths[count + 1 :]] if lengths else []
        _need(all(isinstance(n, int) for n in inner), f"{shown(lengths)} with {count} partitions")
        return cls(parts, inner, dtype=dtype)

    @classmethod
    def from_row_partitions(
        cls, row_partitions: Sequence[RowPartition], dtype: DTypeLike | None = None
    ) -> DynamicRaggedShape:
        """Create a shape whose flat values are single numbers.

        Args:
            row_partitions: At least one `RowPartition`, the outermost first.
            dtype: int32 or int64; None: that of the row partitions.

        Returns:
            The shape.

        Raises:
            ValueError: There is no row partition.
        """
        if not row_partitions:
            raise ValueError(f"[{_WHO}] row_partitions cannot be empty: got {row_partitions}.")
        return cls(row_partitions, stack([row_partitions[-1].nvals()]), dtype=dtype)

    @classmethod
    def from_tensor(cls, t: Any, dtype: DTypeLike | None = None) -> DynamicRaggedShape:
        """Create the shape of a tensor, which may be ragged.

        Args:
            t: A ragged tensor, a tensor, strings, or a `compat.v1.ragged.RaggedTensorValue`.
            dtype: int32 or int64; None: int64 for a ragged tensor, int32 for another one.

        Returns:
            The shape.
        """
        if isinstance(t, RaggedTensor):
            kind = as_dtype(dtype or "int64").name
            if t._uniform is None:
                part = RowPartition.from_row_splits(t.row_splits, dtype=kind)
            else:
                part = RowPartition.from_uniform_row_length(t._uniform, nrows=len(t), dtype=kind)
            return cls([part], _tensor_shape(t.flat_values, kind), dtype)
        if isinstance(t, RaggedTensorValue):
            parts = [RowPartition.from_row_splits(splits) for splits in t.nested_row_splits]
            return cls(parts, np.array(t.flat_values.shape, t.row_splits.dtype), dtype)
        return cls([], _tensor_shape(t, "int32"), dtype)

    @property
    def row_partitions(self) -> tuple[RowPartition, ...]:
        """The row partitions, the outermost first."""
        return self._row_partitions

    @property
    def num_row_partitions(self) -> int:
        """The number of row partitions."""
        return len(self._row_partitions)

    @property
    def inner_shape(self) -> Tensor:
        """The shape of the flat values, a vector."""
        return self._inner_shape

    @property
    def inner_rank(self) -> int:
        """The number of axes of the flat values."""
        return len(self._static)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.num_row_partitions + self.inner_rank

    @property
    def dtype(self) -> DType:
        """The dtype of the sizes: int32 or int64."""
        return as_dtype(self._inner_shape._dtype)

    def with_dtype(self, dtype: DTypeLike) -> DynamicRaggedShape:
        """Return the shape with sizes of another dtype.

        Args:
            dtype: int32 or int64.

        Returns:
            The shape.

        Raises:
            ValueError: dtype is another one.
        """
        return DynamicRaggedShape(
            self._row_partitions, self._inner_shape, dtype, static_inner_shape=self._static
        )

    def is_uniform(self, axis: int) -> bool:
        """Tell whether an axis has one size.

        Args:
            axis: The number of the axis, 0 or more.

        Returns:
            A bool.

        Raises:
            IndexError: There is no such axis.
        """
        if not isinstance(axis, int):
            raise TypeError(f"[{_WHO}.is_uniform] axis must be an integer: got {shown(axis)}.")
        if axis < 0 or axis >= self.rank:
            raise IndexError(f"[{_WHO}.is_uniform] axis must lie in [0, {self.rank}): got {axis}.")
        is_partitioned = 0 < axis <= self.num_row_partitions
        return not is_partitioned or self._row_partitions[axis - 1].is_uniform()

    def static_lengths(self, ragged_lengths: bool = True) -> Lengths:
        """Return the known sizes.

        Args:
            ragged_lengths: Return the lengths of the rows of ragged axes, not None.

        Returns:
            For each axis an integer, a tuple of row lengths, or None if they are unknown.
        """
        inner: Lengths = self._static.as_list()
        if not self._row_partitions:
            return inner
        found: Lengths = [self._row_partitions[0].static_nrows]
        for part in self._row_partitions:
            lengths = part.row_lengths()
            if part.is_uniform():
                found.append(part.static_uniform_row_length)
            else:
                is_known = ragged_lengths and not lengths._symbolic
                found.append(tuple(lengths.numpy().tolist()) if is_known else None)
        return found + inner[1:]

    def __getitem__(self, index: Any) -> Any:
        """Return the size of a uniform axis, or the shape of some axes.

        A slice that does not begin with axis 0 must not contain or follow a ragged axis.

        Raises:
            IndexError: There is no such axis, or the slice has a step.
            ValueError: A ragged axis has no size.
            TypeError: The index is something else.
        """
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise IndexError(f"[{_WHO}] Cannot stride through a shape: got {index.step}.")
            start, stop, _ = index.indices(self.rank)
            return self._slice(start, stop)
        if isinstance(index, Tensor) or not hasattr(type(index), "__index__"):
            raise TypeError(f"[{_WHO}] Argument is not an int or a slice: got {shown(index)}.")
        axis = operator.index(index)
        if not -self.rank <= axis < self.rank:
            raise IndexError(
                f"[{_WHO}] an index must lie in [{-self.rank}, {self.rank}): got {axis}."
            )
        axis %= self.rank
        if not self.is_uniform(axis):
            raise ValueError(
                f"[{_WHO}] Index {axis} is not uniform: got {self!r}; read "
                f"row_partitions[{axis - 1}].row_lengths()."
            )
        return self._uniform_sizes(axis)[axis]

    def _uniform_sizes(self, last: int) -> list[Tensor | None]:
        """Return the size of each uniform axis up to one of them."""
        parts = self._row_partitions
        if not parts:
            return [self._size(axis) for axis in range(last + 1)]
        found = [parts[0].nrows(), *(part.uniform_row_length() for part in parts)]
        return found + [self._size(axis) for axis in range(1, last + 1 - len(parts))]

    def _size(self, axis: int) -> Tensor:
        size = self._static[axis]
        kind = self._inner_shape._dtype
        return self._inner_shape[axis] if size is None else convert_to_tensor(size, kind)

    def _slice(self, start: int, stop: int) -> DynamicRaggedShape:
        kind, count = self.dtype, self.num_row_partitions
        if stop <= start:
            return DynamicRaggedShape([], [], kind)
        if start == 0:
            if stop > count:
                static = self._static[: stop - count]
                inner = self._inner_shape[: stop - count]
                return DynamicRaggedShape(self._row_partitions, inner, static_inner_shape=static)
            if stop == 1:
                return DynamicRaggedShape([], stack([self._row_partitions[0].nrows()]))
            return DynamicRaggedShape.from_row_partitions(self._row_partitions[: stop - 1])
        if not all(part.is_uniform() for part in self._row_partitions[: stop - 1]):
            raise ValueError(
                f"[{_WHO}] All relevant dimensions must be uniform: got [{start}:{stop}] of "
                f"{self!r}; begin with axis 0."
            )
        return DynamicRaggedShape([], stack(self._uniform_sizes(stop - 1)[start:stop]), kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicRaggedShape):
            return NotImplemented
        return self.static_lengths() == other.static_lengths() and (
            self.num_row_partitions == other.num_row_partitions
        )

    def __repr__(self) -> str:
        return (
            f"<DynamicRaggedShape lengths={self.static_lengths()} "
            f"num_row_partitions={self.num_row_partitions}>"
        )


def _partitions(row_partitions: Any) -> list[RowPartition]:
    if not isinstance(row_partitions, Iterable):
        raise TypeError(
            f"[{_WHO}] row_partitions should be a list of row partitions: got "
            f"{shown(row_partitions)}; pass [] for a dense shape."
        )
    parts = list(row_partitions)
    for part in parts:
        if not isinstance(part, RowPartition):
            raise TypeError(
                f"[{_WHO}] row_partitions should be a list of row partitions: it contains "
                f"{shown(part)} which is not a RowPartition; see RowPartition.from_row_lengths."
            )
    return parts


def _kind_of(parts: list[RowPartition], inner_shape: Any, dtype: Any) -> str:
    """Return the dtype of a shape: the first one that is given."""
    if dtype is None:
        has_kind = isinstance(inner_shape, Tensor | np.ndarray)
        dtype = parts[0].dtype if parts else inner_shape.dtype if has_kind else "int64"
    kind: str = as_dtype(dtype).name
    if kind not in ("int32", "int64"):
        raise ValueError(f"[{_WHO}] Illegal dtype: got {kind}; pass int32 or int64.")
    return kind


def _sizes(inner_shape: Any, kind: str) -> Tensor:
    is_empty = isinstance(inner_shape, list | tuple) and not inner_shape
    sizes = convert_to_tensor(np.zeros(0, kind) if is_empty else inner_shape)
    if not as_dtype(sizes._dtype).is_integer and sizes._shape != (0,):
        raise ValueError(f"[{_WHO}] inner_shape must be integers: got {shown(inner_shape)}.")
    if sizes._rank != 1 or isinstance(sizes._shape[0], Dim):
        raise ValueError(
            f"[{_WHO}] inner_shape is a vector: Shape {sizes._shape} must have rank 1."
        )
    return cast(sizes, kind) if sizes._dtype != kind else sizes


def _static(sizes: Tensor) -> list[int | None]:
    if sizes._symbolic:
        return [None] * int(sizes._shape[0])
    found: list[int | None] = sizes.numpy().tolist()
    return found


def _tensor_shape(value: Any, kind: str) -> Tensor:
    if is_text(value):
        return convert_to_tensor(np.array(Text(value)._shape, kind))
    return _shape(value, kind)


def _fit(rule: str, first: Any, second: Any, validate: bool, *values: Any) -> None:
    """Check that two counts are equal: now if both are known, else at run time."""
    if None not in (first, second):
        if first != second:
            raise ValueError(f"[{_WHO}] {rule}: got {first} values and {second}.")
    elif validate:
        debugging.assert_equal(*(value() for value in values), message=f"[{_WHO}] {rule}")


def _need(fits: bool, found: str) -> None:
    if not fits:
        raise ValueError(
            f"[{_WHO}] Shape not consistent: got {found}; an axis has a length for each row of the "
            "axis before it."
        )


def _check_lengths(lengths: Any) -> None:
    if not isinstance(lengths, list):
        raise ValueError(f"[{_WHO}] lengths should be a list: got {shown(lengths)}.")
    for each in lengths:
        parts = each if isinstance(each, tuple) else (each,)
        if not all(isinstance(part, int) for part in parts):
            raise ValueError(
                f"[{_WHO}] an element of lengths should be int or tuple of ints: got {shown(each)}."
            )


__all__ = ["DynamicRaggedShape"]
