"""Scattered sums, updates, maxima and minima, at positions given by several indices."""

from __future__ import annotations

import math
from typing import Any

from samegrad import _core
from samegrad._ops.gather import Places, check_policy, zeros_of
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair

_ops = _core.ops


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: Any, bad_indices_policy: str = "",
               name: str | None = None) -> Tensor:  # fmt: skip
    """Scatter updates into a tensor of zeros; updates of equal indices are summed.

    The sum has a fixed order, whatever the number of threads. Updates along the batch axis are
    summed by the reduction tree of the examples.

    Args:
        indices: Integers of shape [..., k]: k indices into the first k axes.
        updates: Numbers of shape [..., *shape[k:]].
        shape: The shape of the result.
        bad_indices_policy: "ERROR" or "", which means the same.
        name: Ignored.

    Returns:
        A tensor of the shape `shape`, in the dtype of `updates`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of its axis.

    Example:
        >>> scatter_nd([[1], [3], [1]], [1.0, 2.0, 3.0], [4]).numpy()
        array([0., 4., 0., 2.], dtype=float32)
    """
    check_policy("scatter_nd", bad_indices_policy)
    values = convert_to_tensor(updates)
    like = zeros_of(_sizes.sizes_of(shape), values._dtype)
    return Places("scatter_nd", like, indices).added(values)


def tensor_scatter_nd_add(tensor: TensorLike, indices: TensorLike, updates: TensorLike,
                          bad_indices_policy: str = "",
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Add updates to a tensor at indices; updates of equal indices are summed.

    Args:
        tensor: A tensor of numbers.
        indices: Integers of shape [..., k]: k indices into the first k axes of the tensor.
        updates: Numbers of shape [..., *tensor.shape[k:]], in the dtype of the tensor.
        bad_indices_policy: "ERROR" or "", which means the same.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `tensor`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of its axis.

    Example:
        >>> tensor_scatter_nd_add([1.0, 2.0], [[1], [1]], [10.0, 20.0]).numpy()
        array([ 1., 32.], dtype=float32)
    """
    check_policy("tensor_scatter_nd_add", bad_indices_policy)
    x, values = pair(tensor, updates)
    return x + Places("tensor_scatter_nd_add", x, indices).added(values)


def tensor_scatter_nd_sub(tensor: TensorLike, indices: TensorLike, updates: TensorLike,
                          bad_indices_policy: str = "",
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Subtract updates from a tensor at indices; updates of equal indices are summed.

    Args:
        tensor: A tensor of numbers.
        indices: Integers of shape [..., k]: k indices into the first k axes of the tensor.
        updates: Numbers of shape [..., *tensor.shape[k:]], in the dtype of the tensor.
        bad_indices_policy: "ERROR" or "", which means the same.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `tensor`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of its axis.

    Example:
        >>> tensor_scatter_nd_sub([1.0, 2.0], [[1], [1]], [10.0, 20.0]).numpy()
        array([  1., -28.], dtype=float32)
    """
    check_policy("tensor_scatter_nd_sub", bad_indices_policy)
    x, values = pair(tensor, updates)
    return x - Places("tensor_scatter_nd_sub", x, indices).added(values)


def tensor_scatter_nd_update(tensor: TensorLike, indices: TensorLike, updates: TensorLike,
                             name: str | None = None) -> Tensor:  # fmt: skip
    """Replace elements of a tensor at indices.

    Of updates with equal indices the last one wins, and gradients flow to it alone.

    Args:
        tensor: A tensor of any dtype.
        indices: Integers of shape [..., k]: k indices into the first k axes of the tensor.
        updates: Values of shape [..., *tensor.shape[k:]], in the dtype of the tensor.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `tensor`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of its axis.

    Example:
        >>> tensor_scatter_nd_update([1.0, 2.0, 3.0], [[2], [0], [2]], [7.0, 8.0, 9.0]).numpy()
        array([8., 2., 9.], dtype=float32)
    """
    _, values, places = _checked("tensor_scatter_nd_update", tensor, indices, updates)
    last = _ops.segment_last(places.rows, places.table)
    # A row in front, so that there is one to read without updates.
    first = zeros_of([1, *places.rest], values._dtype)
    rows = _sizes.reshape(values, [math.prod(places.rows.shape), *places.rest])
    found = _ops.gather(_ops.concat(first, rows, axis=0), last + 1, axis=0)
    named = _ops.expand_dims(last >= 0, axes=list(range(1, 1 + len(places.rest))))
    return places.whole(_ops.select(named, found, places.table))


def tensor_scatter_nd_max(tensor: TensorLike, indices: TensorLike, updates: TensorLike,
                          bad_indices_policy: str = "",
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Take the maximum of a tensor and updates at indices.

    Args:
        tensor: A tensor of numbers.
        indices: Integers of shape [..., k]: k indices into the first k axes of the tensor.
        updates: Numbers of shape [..., *tensor.shape[k:]], in the dtype of the tensor.
        bad_indices_policy: "ERROR" or "", which means the same.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `tensor`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of its axis.

    Example:
        >>> tensor_scatter_nd_max([1.0, 2.0], [[1], [1]], [0.0, 5.0]).numpy()
        array([1., 5.], dtype=float32)
    """
    check_policy("tensor_scatter_nd_max", bad_indices_policy)
    x, values, places = _checked("tensor_scatter_nd_max", tensor, indices, updates)
    return _ops.maximum(x, places.whole(_ops.segment_max(values, places.rows, places.table)))


def tensor_scatter_nd_min(tensor: TensorLike, indices: TensorLike, updates: TensorLike,
                          bad_indices_policy: str = "",
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Take the minimum of a tensor and updates at indices.

    Args:
        tensor: A tensor of numbers.
        indices: Integers of shape [..., k]: k indices into the first k axes of the tensor.
        updates: Numbers of shape [..., *tensor.shape[k:]], in the dtype of the tensor.
        bad_indices_policy: "ERROR" or "", which means the same.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `tensor`.

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of its axis.

    Example:
        >>> tensor_scatter_nd_min([1.0, 2.0], [[1], [1]], [0.0, 5.0]).numpy()
        array([1., 0.], dtype=float32)
    """
    check_policy("tensor_scatter_nd_min", bad_indices_policy)
    x, values, places = _checked("tensor_scatter_nd_min", tensor, indices, updates)
    return _ops.minimum(x, places.whole(_ops.segment_min(values, places.rows, places.table)))


def _checked(
    who: str, tensor: TensorLike, indices: TensorLike, updates: TensorLike
) -> tuple[Tensor, Tensor, Places]:
    x, values = pair(tensor, updates)
    places = Places(who, x, indices)
    places.check(values)
    return x, values, places
