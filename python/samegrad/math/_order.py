"""Elements in order: sorted, the largest, and where a value would stand among them."""

from __future__ import annotations

from typing import NamedTuple

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.enums import TextChoice
from samegrad._tensor.axes import axis_of, counts_examples
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.math._softmax import move_axis_last
from samegrad.math._unary import is_finite

_ops = _core.ops


class Direction(TextChoice):
    ASCENDING = "ASCENDING"
    DESCENDING = "DESCENDING"


class Side(TextChoice):
    left = "left"
    right = "right"


class TopK(NamedTuple):
    """Result of `top_k`.

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
    """Sort the elements along an axis; NaN is last in both directions.

    Gradients flow to the original positions. Inside `run`, sorting along the batch axis orders this
    replica's examples.

    Args:
        values: A tensor of real numbers with at least one axis.
        axis: The axis, negative from the last.
        direction: "ASCENDING" or "DESCENDING".
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `values`.

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
    """Return the indices that sort the elements along an axis.

    Equal elements keep their order in both directions, and NaN is last.

    Args:
        values: A tensor of real numbers with at least one axis.
        axis: The axis, negative from the last.
        direction: "ASCENDING" or "DESCENDING".
        stable: Ignored: the sort is always stable.
        name: Ignored.

    Returns:
        An int32 tensor of the shape of `values`.

    Raises:
        ValueError: There is no such axis or direction.

    Example:
        >>> argsort([3.0, 1.0, 3.0, 2.0], direction="DESCENDING").numpy()
        array([0, 2, 3, 1], dtype=int32)
    """
    return _order(convert_to_tensor(values), axis, direction)


def top_k(input: TensorLike, k: int = 1, sorted: bool = True, index_type: DTypeLike = "int32",
          name: str | None = None) -> TopK:  # fmt: skip
    """Find the k largest elements along the last axis, and their indices.

    Equal elements keep their order, and NaN comes after all numbers. Gradients flow to the chosen
    elements.

    Args:
        input: A tensor of real numbers, of shape [..., n].
        k: The number of elements.
        sorted: Ignored: the elements are always in descending order.
        index_type: "int32" or "int64", the dtype of the indices.
        name: Ignored.

    Returns:
        A named tuple (values, indices), both of shape [..., k].

    Raises:
        ValueError: k is negative, or larger than n.

    Example:
        >>> values, indices = top_k([1.0, 5.0, 3.0], k=2)
        >>> values.numpy(), indices.numpy()
        (array([5., 3.], dtype=float32), array([1, 2], dtype=int32))
    """
    x = convert_to_tensor(input)
    places = _ops.top_k(x, k=whole(k, "k is an integer"))
    values = _ops.take_along_axis(x, places, axis=-1)
    return TopK(values, _ops.cast(places, dtype=as_dtype(index_type).name))


def approx_max_k(
    operand: TensorLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:  # fmt: skip
    """Find the k largest elements along an axis; the result is exact.

    Args:
        operand: A tensor of real numbers.
        k: The number of elements.
        reduction_dimension: The axis.
        recall_target: Ignored: all elements are found.
        reduction_input_size_override: Ignored.
        aggregate_to_topk: Ignored: there are k elements.
        name: Ignored.

    Returns:
        A named tuple (values, indices), in the shape of `operand` with k elements along the axis.

    Raises:
        ValueError: There is no such axis, or k is larger than it.

    Example:
        >>> values, indices = approx_max_k([1.0, 5.0, 3.0], k=2)
        >>> values.numpy(), indices.numpy()
        (array([5., 3.], dtype=float32), array([1, 2], dtype=int32))
    """
    moved, swap = move_axis_last("approx_max_k", convert_to_tensor(operand), reduction_dimension)
    found = top_k(moved, k)
    if swap is None:
        return found
    return TopK(*(_ops.transpose(part, perm=swap) for part in found))


def approx_min_k(
    operand: TensorLike, k: int, reduction_dimension: int = -1, recall_target: float = 0.95,
    reduction_input_size_override: int = -1, aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:  # fmt: skip
    """Find the k smallest elements along an axis; the result is exact.

    Args:
        operand: A tensor of floats.
        k: The number of elements.
        reduction_dimension: The axis.
        recall_target: Ignored: all elements are found.
        reduction_input_size_override: Ignored.
        aggregate_to_topk: Ignored: there are k elements.
        name: Ignored.

    Returns:
        A named tuple (values, indices), in the shape of `operand` with k elements along the axis.

    Raises:
        ValueError: There is no such axis, or k is larger than it.

    Example:
        >>> values, indices = approx_min_k([1.0, 5.0, 3.0], k=2)
        >>> values.numpy(), indices.numpy()
        (array([1., 3.], dtype=float32), array([0, 2], dtype=int32))
    """
    found = approx_max_k(-convert_to_tensor(operand), k, reduction_dimension)
    return TopK(-found.values, found.indices)


def in_top_k(targets: TensorLike, predictions: TensorLike, k: int,
             name: str | None = None) -> Tensor:  # fmt: skip
    """Test each target for being among the k largest predictions.

    Classes that equal the k-th largest are all in. The result is False where the target is not a
    class or where a prediction is not finite, as in TensorFlow.

    Args:
        targets: The true classes: integers of shape [n].
        predictions: Floats of shape [n, classes].
        k: The number of classes that are in.
        name: Ignored.

    Returns:
        A bool tensor of shape [n].

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
    """Find the positions at which values keep a sorted sequence sorted.

    Args:
        sorted_sequence: Numbers that ascend along the last axis: [..., n], or [n] for all values.
        values: Numbers of the same dtype, with the same leading axes.
        side: "left": before the elements equal to the value; "right": after them.
        out_type: "int32" or "int64", the dtype of the positions.
        name: Ignored.

    Returns:
        Positions in [0, n], of the shape of `values`.

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
