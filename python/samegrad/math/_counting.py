"""Counts of integers: histograms and confusion matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._context.python_runs import need_python
from samegrad._ops.gather import zeros_of
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.errors import InvalidArgumentError

_ops = _core.ops


def _largest(who: str, remedy: str, *tensors: Tensor) -> int:
    """Return the largest of all elements; -1 of none."""
    if any(tensor._symbolic for tensor in tensors):
        need_python(
            f"[{who}] the number of classes depends on the values, which a traced function does "
            f"not know: {remedy}.",
            TypeError,
        )
    return max((int(x.numpy().max()) for x in tensors if x.numpy().size), default=-1)


def _check_not_negative(x: Tensor) -> None:
    """Raise InvalidArgumentError for a negative element; in a step, the operation raises it."""
    if x._symbolic:
        return
    numbers = x.numpy()
    negative = np.argwhere(numbers < 0).tolist()
    if negative:
        place = tuple(negative[0])
        raise InvalidArgumentError(
            f"[bincount] integers to count must be 0 or more: got {numbers[place]} at position "
            f"{place}; shift them, or leave them out with boolean_mask."
        )


def _ones_or(weights: TensorLike | None, like: Tensor, dtype: str) -> Tensor:
    if weights is None:
        return _ops.cast(_ops.full_like(like, value=1), dtype=dtype)
    return convert_to_tensor(weights)


def bincount(arr: TensorLike, weights: TensorLike | None = None, minlength: Any = None,
             maxlength: Any = None, dtype: DTypeLike = "int32", name: str | None = None,
             axis: int | None = None, binary_output: bool = False) -> Tensor:  # fmt: skip
    """Count the occurrences of each integer from 0, or sum the weights at them.

    Args:
        arr: Integers, 0 or more, int32 or int64.
        weights: Numbers of the shape of `arr`; None counts each element once.
        minlength: The least number of counts; the counts without elements are 0.
        maxlength: The largest number of counts; larger integers are left out.
        dtype: The dtype of the counts, unless there are weights.
        name: Ignored.
        axis: None or 0 counts over all elements, -1 over each line of the last axis.
        binary_output: Return 1 for each integer that occurs, however often.

    Returns:
        A tensor [count], or with axis -1 a tensor [..., count]; `count` is the largest integer + 1
        within the limits.

    Raises:
        TypeError: In `Strategy.run` on several replicas, unless minlength and maxlength are equal:
            the number of counts is unknown there. A `function` falls back to Python.
        ValueError: Weights and binary_output are both given, or the shapes differ.
        InvalidArgumentError: An integer is negative.

    Example:
        >>> bincount([1, 1, 3]).numpy()
        array([0, 2, 0, 1], dtype=int32)
        >>> bincount([[1, 1, 3], [0, 0, 0]], axis=-1, minlength=5).numpy()
        array([[0, 2, 0, 1, 0],
               [3, 0, 0, 0, 0]], dtype=int32)
    """
    x = convert_to_tensor(arr)
    if axis not in (None, 0, -1):
        raise ValueError(f"[bincount] axis is None, 0 or -1: got {axis}; use transpose.")
    if weights is not None and binary_output:
        raise ValueError("[bincount] binary_output counts, so there are no weights: got both.")
    least = 0 if minlength is None else _sizes.size_of(minlength)
    most = None if maxlength is None else _sizes.size_of(maxlength)
    if (isinstance(least, int) and least < 0) or (isinstance(most, int) and most < 0):
        raise ValueError(
            f"[bincount] minlength and maxlength are 0 or more: got {minlength} and {maxlength}."
        )
    if most is not None and least is not None and least == most:
        size = most
    else:
        size = max(_largest("bincount", "give minlength and maxlength the same number", x) + 1,
                   least)  # fmt: skip
        size = size if most is None else min(size, most)
    _check_not_negative(x)
    values = _ones_or(weights, x, as_dtype(dtype).name)
    if tuple(values.shape) != tuple(x.shape):
        raise ValueError(
            f"[bincount] weights must have the shape of arr: got {values.shape} and {x.shape}."
        )
    over = most is not None
    if over:  # numbers that are left out go behind the others
        x = _ops.minimum(*pair(_ops.cast(x, dtype="int64"), size))
    if axis == -1 and x._rank > 1:
        like = zeros_of([*x.shape[:-1], size + over], values._dtype)
        counts = _ops.batch_segment_sum(values, x, like, batch_dims=x._rank - 1)
    else:
        like = zeros_of([size + over], values._dtype)
        counts = _ops.segment_sum(values, x, like, axis=0)
    counts = counts[..., :size] if over else counts
    return _ops.minimum(*pair(counts, 1)) if binary_output else counts


def confusion_matrix(labels: TensorLike, predictions: TensorLike, num_classes: Any = None,
                     weights: TensorLike | None = None, dtype: DTypeLike = "int32",
                     name: str | None = None) -> Tensor:  # fmt: skip
    """Count how often each true class (axis 0) was predicted as each class (axis 1).

    Args:
        labels: The true classes: integers of shape [n].
        predictions: The predicted classes: integers of shape [n].
        num_classes: The number of classes; by default the largest class + 1.
        weights: The weight of each example, of shape [n]; by default 1.
        dtype: The dtype of the result.
        name: Ignored.

    Returns:
        A tensor of shape [num_classes, num_classes].

    Raises:
        TypeError: In `Strategy.run` on several replicas without num_classes; a `function` falls
            back to Python.
        ValueError: The shapes differ.
        InvalidArgumentError: A class is negative, or not below `num_classes`.

    Example:
        >>> confusion_matrix([0, 1, 1], [0, 0, 1]).numpy()
        array([[1, 0],
               [1, 1]], dtype=int32)
    """
    kind = as_dtype(dtype).name
    pairs = [_ops.cast(convert_to_tensor(c), dtype="int64") for c in (labels, predictions)]
    values = _ops.cast(_ones_or(weights, pairs[0], kind), dtype=kind)
    if pairs[0]._rank != 1 or any(tuple(x.shape) != tuple(values.shape) for x in pairs):
        shapes = ", ".join(str(tuple(x.shape)) for x in (*pairs, values))
        raise ValueError(
            "[confusion_matrix] labels, predictions and weights have one shape, [rows]: got "
            f"{shapes}; use reshape."
        )
    if num_classes is None:
        num_classes = _largest("confusion_matrix", "give num_classes", *pairs) + 1
    size = _sizes.size_of(num_classes)
    index = _ops.concat(*(_ops.expand_dims(x, axes=[1]) for x in pairs), axis=1)
    cells = _ops.ravel_index(index, zeros_of([size, size], kind))
    counts = _ops.segment_sum(values, cells, zeros_of([size * size], kind), axis=0)
    return _sizes.reshape(counts, [size, size])
