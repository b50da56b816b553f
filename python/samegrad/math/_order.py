"""Elements in order: sorted, the largest, and where a value would stand among them."""

from __future__ import annotations

from typing import NamedTuple

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.enums import TextChoice
from samegrad._tensor.axes import axis_of, counts_examples
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.math._unary import is_finite

_ops = _core.ops


class Direction(TextChoice):
    ASCENDING = "ASCENDING"
    DESCENDING = "DESCENDING"


class Side(TextChoice):
    left = "left"
    right = "right"


class TopK(NamedTuple):
    """What top_k finds.

    Args:
        values: The k largest elements of each line, the largest first.
        indices: Where they are along the last axis.
    """

    values: Tensor
    indices: Tensor


def _order(x: Tensor, axis: int, direction: str) -> Tensor:
    descending = Direction(direction) is Direction.DESCENDING
    return _ops.arg_sort(x, axis=axis_of(x, axis), descending=descending)


def sort(values: TensorLike, axis: int = -1, direction: str = "ASCENDING",
         name: str | None = None) -> Tensor:  # fmt: skip
    """The elements along an axis in order; NaN comes last, in both directions.

    Gradients flow to where the elements were. Inside `run`, an order along the examples is one of
    this replica's.

    Args:
        values: Elements of any shape but ().
        axis: Along which; negative from the last.
        direction: "ASCENDING" or "DESCENDING".
        name: Ignored.

    Raises:
        ValueError: There is no such axis or direction.

    Example:
        >>> sort([3.0, 1.0, 2.0]).numpy()
        array([1., 2., 3.], dtype=float32)
        >>> sort([3.0, 1.0, 2.0], direction="DESCENDING").numpy()
        array([3., 2., 1.], dtype=float32)
    """
    x = convert_to_tensor(values)
    return _ops.take_along_axis(x, _order(x, axis, direction), axis=axis_of(x, axis))


def argsort(values: TensorLike, axis: int = -1, direction: str = "ASCENDING",
            stable: bool = False, name: str | None = None) -> Tensor:  # fmt: skip
    """The positions (int32) of the elements along an axis in order.

    Of equal elements the first one comes first, in both directions; NaN comes last.

    Args:
        values: Elements of any shape but ().
        axis: Along which; negative from the last.
        direction: "ASCENDING" or "DESCENDING".
        stable: Ignored: the order of equal elements is always kept.
        name: Ignored.

    Raises:
        ValueError: There is no such axis or direction.

    Example:
        >>> argsort([3.0, 1.0, 3.0, 2.0], direction="DESCENDING").numpy()
        array([0, 2, 3, 1], dtype=int32)
    """
    return _order(convert_to_tensor(values), axis, direction)


def top_k(input: TensorLike, k: int = 1, sorted: bool = True, index_type: DTypeLike = "int32",
          name: str | None = None) -> TopK:  # fmt: skip
    """The k largest elements along the last axis, and where they are.

    Of equal elements the first one comes first; NaN comes after all numbers. Gradients flow to the
    elements that were chosen.

    Args:
        input: Elements of any shape but ().
        k: How many of each line.
        sorted: Ignored: the largest always comes first.
        index_type: "int32" or "int64".
        name: Ignored.

    Returns:
        values and indices, of input's shape with k on the last axis.

    Raises:
        ValueError: k is negative, or the last axis has fewer elements.

    Example:
        >>> values, indices = top_k([1.0, 5.0, 3.0], k=2)
        >>> values.numpy(), indices.numpy()
        (array([5., 3.], dtype=float32), array([1, 2], dtype=int32))
    """
    x = convert_to_tensor(input)
    places = _ops.top_k(x, k=whole(k, "k is an integer"))
    values = _ops.take_along_axis(x, places, axis=-1)
    return TopK(values, _ops.cast(places, dtype=as_dtype(index_type).name))


def in_top_k(targets: TensorLike, predictions: TensorLike, k: int,
             name: str | None = None) -> Tensor:  # fmt: skip
    """Whether fewer than k classes have a larger prediction than the target.

    Classes that equal the target at the limit are all in. A row is out where its target is no
    class or one of its predictions is not finite, as in TensorFlow.

    Args:
        targets: Classes, whole numbers of shape [rows].
        predictions: Numbers of shape [rows, classes].
        k: How many classes are in.
        name: Ignored.

    Returns:
        Bools of shape [rows].

    Raises:
        ValueError: The shapes do not fit.

    Example:
        >>> in_top_k([0, 1], [[0.9, 0.1, 0.8], [0.9, 0.1, 0.8]], k=2).numpy()
        array([ True, False])
    """
    classes, scores = convert_to_tensor(targets), convert_to_tensor(predictions)
    if classes._rank != 1 or scores._rank != 2 or counts_examples(scores, 1):
        raise ValueError(
            "[in_top_k] targets has shape [rows] and predictions [rows, classes]: got "
            f"{classes._shape} and {scores._shape}; use reshape."
        )
    count = int(scores.shape[1])
    limit = convert_to_tensor(whole(k, "k is an integer"), "int64")
    if count == 0:
        return _ops.cast(_ops.full_like(classes, value=0), dtype="bool")
    place = _ops.cast(classes, dtype="int64")
    known = _ops.logical_and(place >= 0, place < count)
    own = _ops.expand_dims(_ops.select(known, place, _ops.full_like(place, value=0)), axes=[1])
    larger = scores > _ops.take_along_axis(scores, own, axis=1)
    before = _ops.reduce_sum(_ops.cast(larger, dtype="int64"), axes=[1], keepdims=False)
    known = _ops.logical_and(known, _ops.reduce_all(is_finite(scores), axes=[1], keepdims=False))
    return _ops.logical_and(known, _ops.less(before, limit))


def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: str = "left",
                 out_type: DTypeLike = "int32", name: str | None = None) -> Tensor:  # fmt: skip
    """Where each value would be put into a sorted sequence so that it stays sorted.

    Args:
        sorted_sequence: Ascending along its last axis: a line for each line of values, or one axis,
            for all values.
        values: Numbers of the same dtype.
        side: "left": before the elements that equal the value; "right": behind them.
        out_type: "int32" or "int64".
        name: Ignored.

    Returns:
        Positions from 0 to the size of the last axis, of the shape of values.

    Raises:
        ValueError: The leading axes differ.

    Example:
        >>> searchsorted([1.0, 3.0, 3.0, 5.0], [3.0, 4.0]).numpy()
        array([1, 3], dtype=int32)
        >>> searchsorted([1.0, 3.0, 3.0, 5.0], [3.0, 4.0], side="right").numpy()
        array([3, 3], dtype=int32)
    """
    right = Side(side) is Side.right
    places = _ops.search_sorted(*pair(sorted_sequence, values), right=right)
    return _ops.cast(places, dtype=as_dtype(out_type).name)
