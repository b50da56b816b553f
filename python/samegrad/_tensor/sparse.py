"""`samegrad.sparse.SparseTensor`, as records hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.composite import Composite
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.shape import TensorShape
from samegrad._tensor.text import Text, array_of, is_text, leaf_of

Array = np.ndarray[Any, Any]


def _whole_numbers(value: Any, name: str) -> Array:
    try:
        return np.asarray(value, np.int64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"[SparseTensor] {name} must be integers in rows of one length: got {shown(value)}."
        ) from None


class SparseTensor(Composite):
    """A tensor given by its non-zero values and their indices.

    Elsewhere are zeros, or empty strings. It serves the preparation of data: steps compute with
    dense tensors, see `tf.sparse.to_dense`.

    Args:
        indices: Integers of shape [values, axes].
        values: Numbers or strings of shape [values].
        dense_shape: The sizes of the axes.

    Raises:
        ValueError: The shapes do not fit each other.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1], [1, 2]], [5, 6], [2, 3])
        >>> tf.sparse.to_dense(few).numpy()
        array([[0, 5, 0],
               [0, 0, 6]], dtype=int32)
    """

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.values = Text(values) if is_text(values) else convert_to_tensor(values)
        places = _whole_numbers(indices, "indices")
        sizes = _whole_numbers(dense_shape, "dense_shape")
        if not places.size and places.ndim < 2:
            places = places.reshape(0, sizes.size)
        if sizes.ndim != 1 or places.shape != (*self.values._shape, sizes.size) or any(sizes < 0):
            raise ValueError(
                "[SparseTensor] indices must be [values, axes], values [values] and dense_shape "
                f"[axes]: got shapes {places.shape}, {self.values._shape} and dense_shape "
                f"{shown(sizes.tolist())}."
            )
        self.indices, self.dense_shape = convert_to_tensor(places), convert_to_tensor(sizes)

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        return TensorShape(tuple(self.dense_shape.numpy().tolist()))

    def checked(self, who: str) -> tuple[Array, Array]:
        """Return the indices and the values as arrays, after a check of the indices.

        Args:
            who: The name of the op, for errors.

        Returns:
            A pair of NumPy arrays, [values, axes] and [values].

        Raises:
            InvalidArgumentError: Indices are outside of the shape, out of order, or equal.
        """
        places, sizes = self.indices.numpy(), self.dense_shape.numpy()
        outside = ((places < 0) | (places >= sizes)).any(axis=1)
        if outside.any():
            first = int(outside.argmax())
            raise InvalidArgumentError(
                f"[{who}] indices must be inside of the tensor: got {places[first].tolist()} for "
                f"shape {tuple(sizes.tolist())}."
            )
        order = np.ravel_multi_index(tuple(places.T), tuple(sizes)) if len(sizes) else []
        wrong = np.flatnonzero(np.diff(order) <= 0)
        if len(wrong):
            first = int(wrong[0])
            raise InvalidArgumentError(
                f"[{who}] indices must ascend, each of them once: got {places[first].tolist()} "
                f"before {places[first + 1].tolist()}; see tf.sparse.reorder."
            )
        return places, array_of(self.values)

    def numpy(self) -> Array:
        """Return a dense NumPy array."""
        places, values = self.checked("SparseTensor.numpy")
        made = np.full(self._shape, b"" if values.dtype == object else 0, values.dtype)
        made[tuple(places.T)] = values
        return made

    def __mul__(self, other: Any) -> SparseTensor:
        return self._with(other, "mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._with(other, "div")

    __array_priority__ = 100  # NumPy's arrays leave products to it

    def _with(self, other: Any, op: str) -> SparseTensor:
        """Return the values with a number, or with what a dense tensor has at their places."""
        if isinstance(self.values, Text) or isinstance(other, SparseTensor | Text):
            raise TypeError(
                f"[SparseTensor.{op}] numbers and a number or a dense tensor are needed: got "
                f"{shown(self)} and {shown(other)}; see tf.sparse.to_dense."
            )
        plain = not isinstance(other, Tensor) and not hasattr(type(other), "_as_tensor")
        factor = convert_to_tensor(other, self.values._dtype if plain else None)
        if factor._rank:
            places, _ = self.checked(f"SparseTensor.{op}")
            rows = np.ravel_multi_index(tuple(places.T), self._shape)
            every = _core.ops.broadcast_to(factor, shape=list(self._shape))
            factor = _core.ops.gather(_core.ops.reshape(every, shape=[-1]), convert_to_tensor(rows))
        values = getattr(_core.ops, op)(self.values, factor)
        return SparseTensor(self.indices, values, self.dense_shape)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices.numpy().tolist()!r:.200}, "
            f"values={self.values.numpy().tolist()!r:.200}, dense_shape={self._shape})"
        )


class SparseRows:
    """The rows of a sparse tensor along axis 0.

    Args:
        sparse: The tensor, of at least one axis.
        who: The name of the caller for messages.

    Raises:
        InvalidArgumentError: Its indices do not ascend.
    """

    def __init__(self, sparse: SparseTensor, who: str) -> None:
        indices, self._values = sparse.checked(who)
        self._indices = indices[:, 1:]
        self._ends = np.searchsorted(indices[:, 0], np.arange(sparse._shape[0] + 1))
        self._shape, self._rank, self._dtype = sparse._shape, sparse._rank, sparse._dtype

    def __getitem__(self, row: int) -> SparseTensor:
        part = slice(self._ends[row], self._ends[row + 1])
        return SparseTensor(self._indices[part], leaf_of(self._values[part]), self._shape[1:])


def stacked(column: tuple[SparseTensor, ...]) -> SparseTensor:
    """Stack sparse tensors as rows of one, with the largest sizes of all."""
    ranks = sorted({each._rank for each in column})
    if len(ranks) > 1:
        raise ValueError(
            f"[Dataset.batch] sparse tensors must have the same number of axes: got {ranks}."
        )
    sizes = np.max([each._shape for each in column], axis=0).astype(np.int64)
    rows = np.repeat(np.arange(len(column)), [each.indices._shape[0] for each in column])
    places = np.concatenate([each.indices.numpy() for each in column])
    parts = [each.checked("Dataset.batch")[1] for each in column]
    values = leaf_of(np.concatenate(parts))
    return SparseTensor(np.column_stack([rows, places]), values, [len(column), *sizes])


def sparse_rows(members: Sequence[Any], sizes: Sequence[int], who: str) -> SparseTensor:
    """Stack dense tensors or strings as the rows of one sparse tensor with all their values.

    Args:
        members: The rows, at least one.
        sizes: The shape of a row; -1: the largest.
        who: The name of the op, for errors.

    Raises:
        ValueError: A row is not a tensor, has other axes, or is larger.
    """
    wrong = [row for row in members if not isinstance(row, Tensor | Text)]
    if wrong:
        raise ValueError(f"[{who}] elements must be one tensor each: got {shown(wrong[0])}.")
    for row in members:
        fits = len(row._shape) == len(sizes)
        if not fits or any(0 <= most < n for n, most in zip(row._shape, sizes, strict=True)):
            raise ValueError(
                f"[{who}] elements must have the axes of row_shape and not be larger: got shape "
                f"{row._shape} for row_shape {tuple(sizes)}."
            )
    largest = np.max([row._shape for row in members], axis=0, initial=0)
    shape = [n if most < 0 else most for n, most in zip(largest, sizes, strict=True)]
    arrays = [array_of(row) for row in members]
    places = [
        np.column_stack([np.full(a.size, n), *(axis.ravel() for axis in np.indices(a.shape))])
        for n, a in enumerate(arrays)
    ]
    values = leaf_of(np.concatenate([a.ravel() for a in arrays]))
    return SparseTensor(np.concatenate(places), values, [len(members), *shape])
