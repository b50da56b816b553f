"""Reductions over segments of chosen rows, under the names of tf.sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import math
from samegrad._ops.gather import gather
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.errors import WrongTypeError


def segment_sum(
    data: TensorLike, indices: TensorLike, segment_ids: TensorLike, num_segments: Any = None,
    name: str | None = None, sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """Sum chosen rows by segments; empty segments give 0.

    Args:
        data: A tensor of numbers, of shape [rows, ...].
        indices: The chosen rows: integers [n].
        segment_ids: The segment of each of them: integers [n] in ascending order.
        num_segments: Number of segments. None: the last segment and those before it.
        name: Ignored.
        sparse_gradient: Ignored: gradients are dense.

    Returns:
        A tensor [segments, ...] in the dtype of data.

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.segment_sum([[1, 2], [3, 4], [5, 6]], [2, 0, 1], [0, 0, 1]).numpy()
        array([[6, 8],
               [3, 4]], dtype=int32)
    """
    return _reduced("sum", data, indices, segment_ids, num_segments)


def segment_mean(
    data: TensorLike, indices: TensorLike, segment_ids: TensorLike, num_segments: Any = None,
    name: str | None = None, sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """Compute the means of chosen rows by segments; empty segments give 0.

    Args:
        data: A tensor of floats, of shape [rows, ...].
        indices: The chosen rows: integers [n].
        segment_ids: The segment of each of them: integers [n] in ascending order.
        num_segments: Number of segments. None: the last segment and those before it.
        name: Ignored.
        sparse_gradient: Ignored: gradients are dense.

    Returns:
        A tensor [segments, ...] in the dtype of data.

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.segment_mean([1.0, 3.0, 5.0], [2, 0, 1], [0, 0, 1]).numpy()
        array([3., 3.], dtype=float32)
    """
    return _reduced("mean", data, indices, segment_ids, num_segments)


def segment_sqrt_n(
    data: TensorLike, indices: TensorLike, segment_ids: TensorLike, num_segments: Any = None,
    name: str | None = None, sparse_gradient: bool = False,
) -> Tensor:  # fmt: skip
    """Sum chosen rows by segments, and divide by the square roots of their numbers.

    Args:
        data: A tensor of floats, of shape [rows, ...].
        indices: The chosen rows: integers [n].
        segment_ids: The segment of each of them: integers [n] in ascending order.
        num_segments: Number of segments. None: the last segment and those before it.
        name: Ignored.
        sparse_gradient: Ignored: gradients are dense.

    Returns:
        A tensor [segments, ...] in the dtype of data.

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.segment_sqrt_n([1.0, 3.0, 1.0, 3.0], [0, 1, 2, 3], [0, 0, 0, 0]).numpy()
        array([4.], dtype=float32)
    """
    return _reduced("sqrt_n", data, indices, segment_ids, num_segments)


def _reduced(how: str, data: Any, indices: Any, ids: Any, count: Any) -> Tensor:
    rows, segments = gather(convert_to_tensor(data), indices), convert_to_tensor(ids)
    if how != "sum" and rows.dtype.is_integer:
        raise WrongTypeError(
            f"[segment_{how}] data must be floats: got {rows.dtype.name}; use samegrad.cast first."
        )
    least = math.segment_sum(segments, segments).shape[0]  # checks the order as well
    count = least if count is None else count
    reduce: Callable[..., Tensor] = getattr(math, f"unsorted_segment_{how}")
    return reduce(rows, segments, count)


__all__ = ["segment_mean", "segment_sqrt_n", "segment_sum"]
