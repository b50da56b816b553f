"""Sparse tensors row by row: identities, empty rows, softmax, larger and smaller values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad import math
from samegrad._base.dtypes import DTypeLike
from samegrad._base.shown import shown
from samegrad._ops.arrays import concat as dense_concat
from samegrad._ops.creation import fill, ones
from samegrad._ops.gather import gather
from samegrad._tensor.axes import axis_in
from samegrad._tensor.sizes import sizes_of, whole
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text
from samegrad.errors import InvalidArgumentError, WrongTypeError
from samegrad.sparse._dense import sparse
from samegrad.sparse._joined import slice as sparse_slice
from samegrad.sparse._joined import taken

Array = NDArray[Any]


def eye(
    num_rows: Any, num_columns: Any = None, dtype: DTypeLike = "float32", name: str | None = None
) -> SparseTensor:
    """Make a matrix with ones on its diagonal.

    Args:
        num_rows: Number of rows.
        num_columns: Number of columns. None: as many as rows.
        dtype: Dtype of the ones.
        name: Ignored.

    Returns:
        `SparseTensor` of shape [num_rows, num_columns].

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.to_dense(tf.sparse.eye(2, 3)).numpy()
        array([[1., 0., 0.],
               [0., 1., 0.]], dtype=float32)
    """
    rows = whole(num_rows)
    columns = rows if num_columns is None else whole(num_columns)
    if rows < 0 or columns < 0:
        raise InvalidArgumentError(
            f"[sparse.eye] num_rows and num_columns must be 0 or more: got {rows} and {columns}."
        )
    places = np.arange(min(rows, columns), dtype=np.int64)
    return SparseTensor(np.stack([places] * 2, axis=1), ones([len(places)], dtype), [rows, columns])


def fill_empty_rows(
    sp_input: SparseTensor, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Give each row without values a value in its first column.

    Args:
        sp_input: `SparseTensor` of two axes.
        default_value: The value, of the dtype of sp_input.
        name: Ignored.

    Returns:
        A pair: the `SparseTensor` with indices in row-major order, and a bool tensor [rows] that
        is True where a row was empty. Gradients flow to the values.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: sp_input has not two axes.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[1, 2]], [5], [3, 4])
        >>> filled, was_empty = tf.sparse.fill_empty_rows(few, 9)
        >>> filled.indices.numpy().tolist(), filled.values.numpy(), was_empty.numpy()
        ([[0, 0], [1, 2], [2, 0]], array([9, 5, 9], dtype=int32), array([ True, False,  True]))
    """
    who = "tf.sparse.fill_empty_rows"
    found = sparse(sp_input, who)
    if len(found._shape) != 2:
        raise InvalidArgumentError(
            f"[{who}] sp_input must have two axes: got shape {found._shape}; see tf.sparse.reshape."
        )
    places = found.indices.numpy()
    empty = np.ones(found._shape[0], bool)
    empty[places[:, 0]] = False
    rows = np.flatnonzero(empty)
    every = np.concatenate([places, np.stack([rows, np.zeros_like(rows)], axis=1)])
    order = np.argsort(every[:, 0], kind="stable")
    values = _followed_by(found.values, default_value, len(rows))
    return SparseTensor(every[order], taken(values, order), found._shape), convert_to_tensor(empty)


def _followed_by(values: Any, value: Any, count: int) -> Any:
    """Return values with copies of one more behind them."""
    if isinstance(values, Text):
        return Text([*values.numpy().tolist(), *[_string_of(value)] * count])
    return dense_concat([values, fill([count], convert_to_tensor(value, values._dtype))], 0)


def _string_of(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


def reset_shape(sp_input: SparseTensor, new_shape: Any = None) -> SparseTensor:
    """Replace the shape of a sparse tensor, by default by the smallest one.

    Args:
        sp_input: `SparseTensor`.
        new_shape: Sizes that are not below those of sp_input. None: the smallest that hold the
            values.

    Returns:
        `SparseTensor` with the same indices and values.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: new_shape has other axes, or a smaller size.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1], [1, 0]], [1, 2], [4, 5])
        >>> tf.sparse.reset_shape(few).shape, tf.sparse.reset_shape(few, [4, 9]).shape
        ((2, 2), (4, 9))
    """
    who = "tf.sparse.reset_shape"
    found = sparse(sp_input, who)
    places = found.indices.numpy()
    if new_shape is None:
        sizes = (places.max(axis=0) + 1 if len(places) else np.zeros(len(found._shape))).tolist()
        return SparseTensor(places, found.values, [int(size) for size in sizes])
    wanted = [int(size) for size in sizes_of(new_shape)]
    if len(wanted) != len(found._shape) or any(
        a < b for a, b in zip(wanted, found._shape, strict=True)
    ):
        raise InvalidArgumentError(
            f"[{who}] new_shape must have the axes of {found._shape}, none smaller: got "
            f"{shown(new_shape)}; see tf.sparse.slice."
        )
    return SparseTensor(places, found.values, wanted)


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Compute the softmax of the values of each row; other elements take no part.

    Args:
        sp_input: `SparseTensor` of floats with two axes or more, indices in row-major order.
        name: Ignored.

    Returns:
        `SparseTensor` with the same indices; gradients flow to the values.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: sp_input has fewer than two axes.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 0], [0, 2], [1, 1]], [1.0, 1.0, 7.0], [2, 3])
        >>> tf.sparse.softmax(few).values.numpy()
        array([0.5, 0.5, 1. ], dtype=float32)
    """
    who = "tf.sparse.softmax"
    found = sparse(sp_input, who)
    if len(found._shape) < 2:
        raise InvalidArgumentError(
            f"[{who}] sp_input must have two axes or more: got shape {found._shape}; see "
            "tf.sparse.expand_dims."
        )
    places, _ = found.checked(who)
    _, rows = np.unique(places[:, :-1], axis=0, return_inverse=True)
    segments = convert_to_tensor(rows.reshape(-1).astype(np.int64))
    count = int(rows.max()) + 1 if len(places) else 0
    largest = math.unsorted_segment_max(found.values, segments, count)
    powers = math.exp(found.values - gather(largest, segments))
    sums = gather(math.unsorted_segment_sum(powers, segments, count), segments)
    return SparseTensor(places, powers / sums, found._shape)


def maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """Compute the larger of two sparse tensors at each place where one of them has a value.

    Args:
        sp_a: `SparseTensor` of numbers, indices in row-major order.
        sp_b: `SparseTensor` of its shape and dtype.
        name: Ignored.

    Returns:
        `SparseTensor`; a missing value counts as 0. Gradients flow to all values.

    Raises:
        TypeError: One is not a SparseTensor, or the dtypes differ.
        InvalidArgumentError: The shapes differ.

    Example:
        >>> import samegrad as tf
        >>> one = tf.sparse.SparseTensor([[0], [1]], [-1, 5], [4])
        >>> other = tf.sparse.SparseTensor([[1]], [7], [4])
        >>> tf.sparse.maximum(one, other).values.numpy()
        array([0, 7], dtype=int32)
    """
    return _of_both("tf.sparse.maximum", math.maximum, sp_a, sp_b)


def minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """Compute the smaller of two sparse tensors at each place where one of them has a value.

    Args:
        sp_a: `SparseTensor` of numbers, indices in row-major order.
        sp_b: `SparseTensor` of its shape and dtype.
        name: Ignored.

    Returns:
        `SparseTensor`; a missing value counts as 0. Gradients flow to all values.

    Raises:
        TypeError: One is not a SparseTensor, or the dtypes differ.
        InvalidArgumentError: The shapes differ.

    Example:
        >>> import samegrad as tf
        >>> one = tf.sparse.SparseTensor([[0], [1]], [-1, 5], [4])
        >>> other = tf.sparse.SparseTensor([[1]], [7], [4])
        >>> tf.sparse.minimum(one, other).values.numpy()
        array([-1,  5], dtype=int32)
    """
    return _of_both("tf.sparse.minimum", math.minimum, sp_a, sp_b)


def _of_both(who: str, function: Any, a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Return a function of the values of two tensors, zeros where one has none."""
    one, other = sparse(a, who), sparse(b, who)
    if one._shape != other._shape:
        raise InvalidArgumentError(
            f"[{who}] shapes must agree: got {one._shape} and {other._shape}; see "
            "tf.sparse.reset_shape."
        )
    if one.values._dtype != other.values._dtype or one.values._dtype == "string":
        raise WrongTypeError(
            f"[{who}] numbers of one dtype are needed: got {one.values._dtype} and "
            f"{other.values._dtype}; use samegrad.cast."
        )
    every = np.concatenate([one.checked(who)[0], other.checked(who)[0]])
    places, where = np.unique(every, axis=0, return_inverse=True)
    where = where.reshape(-1).astype(np.int64)
    cut = len(one.indices.numpy())
    spread = [math.unsorted_segment_sum(part.values, convert_to_tensor(rows), len(places))
              for part, rows in ((one, where[:cut]), (other, where[cut:]))]  # fmt: skip
    return SparseTensor(places, function(*spread), one._shape)


def to_indicator(sp_input: SparseTensor, vocab_size: Any, name: str | None = None) -> Tensor:
    """Tell for each row which numbers are among its values.

    Args:
        sp_input: `SparseTensor` of integers from 0 to vocab_size - 1.
        vocab_size: Number of numbers.
        name: Ignored.

    Returns:
        A bool tensor: the shape of sp_input, with vocab_size as the last size.

    Raises:
        TypeError: sp_input is not a SparseTensor of integers.
        InvalidArgumentError: A value is outside of [0, vocab_size).

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 0], [0, 1], [1, 0]], [2, 0, 2], [2, 2])
        >>> tf.sparse.to_indicator(few, 3).numpy()
        array([[ True, False,  True],
               [False, False,  True]])
    """
    who = "tf.sparse.to_indicator"
    found = sparse(sp_input, who)
    size, values = whole(vocab_size), np.asarray(found.values.numpy())
    if values.dtype.kind not in "iu":
        raise WrongTypeError(f"[{who}] integers are needed: got {found.values._dtype}.")
    if values.size and not 0 <= values.min() <= values.max() < size:
        raise InvalidArgumentError(
            f"[{who}] values must lie in [0, {size}): got {values.min()} to {values.max()}."
        )
    made = np.zeros((*found._shape[:-1], size), bool)
    made[(*found.indices.numpy()[:, :-1].T, values)] = True
    return convert_to_tensor(made)


def split(
    sp_input: Any = None, num_split: Any = None, axis: Any = None, name: str | None = None
) -> list[SparseTensor]:
    """Split a sparse tensor along an axis; the first parts are larger by 1 where sizes differ.

    Args:
        sp_input: `SparseTensor`.
        num_split: Number of parts.
        axis: The axis; negative from the last.
        name: Ignored.

    Returns:
        A list of `SparseTensor`.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: num_split is not between 1 and the size of the axis.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1], [0, 4]], [1, 2], [1, 5])
        >>> [part.shape for part in tf.sparse.split(few, 2, axis=1)]
        [(1, 3), (1, 2)]
    """
    who = "tf.sparse.split"
    found, parts = sparse(sp_input, who), whole(num_split)
    at = axis_in(len(found._shape), axis)
    if not 1 <= parts <= found._shape[at]:
        raise InvalidArgumentError(
            f"[{who}] num_split must lie between 1 and the size of the axis, {found._shape[at]}: "
            f"got {parts}."
        )
    small, larger = divmod(found._shape[at], parts)
    start, made = [0] * len(found._shape), []
    for number in range(parts):
        sizes = list(found._shape)
        sizes[at] = small + (number < larger)
        made.append(sparse_slice(found, list(start), sizes))
        start[at] += sizes[at]
    return made


__all__ = [
    "eye", "fill_empty_rows", "maximum", "minimum", "reset_shape", "softmax", "split",
    "to_indicator",
]  # fmt: skip
