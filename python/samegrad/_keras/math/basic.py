"""keras.backend.math: segments, order, sums of exponentials, distances."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad import math
from samegrad._context.python_runs import need_python
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.linalg.decompositions import cholesky
from samegrad._tensor.tensor import Tensor
from samegrad.linalg import diag_part
from samegrad.signal._frames import framed


def _segments(name: str, data: Any, segment_ids: Any, count: Any, sorted: bool) -> Tensor:
    values, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if sorted and count is None:
        of_sorted: Tensor = getattr(math, f"segment_{name}")(values, ids)
        return of_sorted
    if count is None:
        if ids._symbolic:
            need_python(
                f"[keras.ops.segment_{name}] the number of segments depends on values: got traced "
                "segment_ids; pass num_segments.",
                ValueError,
            )
        count = int(ids.numpy().max(initial=-1)) + 1
    found: Tensor = getattr(math, f"unsorted_segment_{name}")(values, ids, count)
    return found


def segment_sum(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The sum of the rows of each segment.

    Raises:
        ValueError: Traced ids that are not sorted, without `num_segments`.
    """
    return _segments("sum", data, segment_ids, num_segments, sorted)


def segment_max(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The largest elements of the rows of each segment; see `segment_sum`."""
    return _segments("max", data, segment_ids, num_segments, sorted)


def segment_min(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The smallest elements of the rows of each segment; see `segment_sum`."""
    return _segments("min", data, segment_ids, num_segments, sorted)


def segment_prod(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> Tensor:
    """The product of the rows of each segment; see `segment_sum`."""
    return _segments("prod", data, segment_ids, num_segments, sorted)


def top_k(x: Any, k: int, sorted: bool = True) -> Any:
    """The k largest elements along the last axis, and where they are."""
    return math.top_k(convert_to_tensor(x), k, sorted=sorted)


def in_top_k(targets: Any, predictions: Any, k: int) -> Tensor:
    """Tell if fewer than k classes have a larger prediction than the target."""
    return math.in_top_k(convert_to_tensor(targets), convert_to_tensor(predictions), k)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes, which does not overflow."""
    value = convert_to_tensor(x)
    value = tf.cast(value, result_type(value._dtype, float))
    return math.reduce_logsumexp(value, axis=axis, keepdims=keepdims)


def cdist(x: Any, y: Any) -> Tensor:
    """The distance of each row of x to each row of y: [..., rows of x, rows of y].

    Raises:
        ValueError: The arguments are not matrices with rows of one length.
    """
    a, b = convert_to_tensor(x), convert_to_tensor(y)
    if a._rank < 2 or b._rank < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    kind = result_type(a._dtype, b._dtype, float)
    a, b = tf.cast(a, kind), tf.cast(b, kind)
    squares = tf.reduce_sum(tf.square(tf.expand_dims(a, -2) - tf.expand_dims(b, -3)), axis=-1)
    apart = squares > 0.0  # no distance has no slope
    return tf.where(apart, tf.sqrt(tf.where(apart, squares, 1.0)), squares)


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> Tensor:
    """Parts of the last axis, `sequence_length` long: [..., parts, sequence_length]."""
    return framed(convert_to_tensor(x), sequence_length, sequence_stride)


def rsqrt(x: Any) -> Tensor:
    """1 / sqrt(x)."""
    return math.rsqrt(convert_to_tensor(x))


def logdet(x: Any) -> Tensor:
    """The logarithm of the determinant of symmetric positive definite matrices.

    Raises:
        ValueError: They are not, or are traced.
    """
    return tf.reduce_sum(math.log(diag_part(cholesky(x))), axis=-1) * 2.0
