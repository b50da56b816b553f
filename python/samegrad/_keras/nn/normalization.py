"""keras.backend.nn: moments, and what is normalized by them."""

from __future__ import annotations

from typing import Any

import samegrad as tf
from samegrad import _core, math, nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.axes import axes_of
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import all_reduce_sum

_LARGEST = 65504.0  # of float16


def moments(
    x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False
) -> tuple[Tensor, Tensor]:
    """The mean and the variance over axes, computed in float32 at least.

    Args:
        x: Floats.
        axes: Their numbers.
        keepdims: Whether the axes stay, with size 1.
        synchronized: Whether the examples of all replicas count; else those of this one.
    """
    given = convert_to_tensor(x)
    narrow = given._dtype in ("float16", "bfloat16")
    value = tf.cast(given, "float32") if narrow else given
    if synchronized:
        mean, variance = _of_all_replicas(value, axes_of(value, axes), keepdims)
    else:
        mean, variance = nn.moments(value, axes, keepdims=keepdims)
    if not narrow:
        return mean, variance
    cut = (tf.clip_by_value(moment, -_LARGEST, _LARGEST) for moment in (mean, variance))
    mean, variance = (tf.cast(moment, given._dtype) for moment in cut)
    return mean, variance


def _of_all_replicas(x: Tensor, axes: list[int], keepdims: bool) -> tuple[Tensor, Tensor]:
    """Both over the examples of all replicas: sums by what they are the sums of."""

    def total(value: Tensor) -> Tensor:
        summed: Tensor = all_reduce_sum(tf.reduce_sum(value, axes, keepdims=True))
        return summed

    count = total(_core.ops.full_like(x, value=1.0))
    mean = math.divide_no_nan(total(x), count)
    variance = math.divide_no_nan(total(tf.square(x - mean)), count)
    if keepdims:
        return mean, variance
    return tf.squeeze(mean, axes), tf.squeeze(variance, axes)


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    axis: int,
    offset: Any = None,
    scale: Any = None,
    epsilon: float = 1e-3,
) -> Tensor:
    """Return scale * (x - mean) / sqrt(variance + epsilon) + offset, vectors along an axis."""
    value = convert_to_tensor(x)
    shape = [1] * value._rank
    shape[axis] = -1

    def along(vector: Any) -> Tensor | None:
        if vector is None:
            return None
        given = convert_to_tensor(vector, value._dtype)
        last = axis in (-1, value._rank - 1)
        return given if last or given._rank != 1 else tf.reshape(given, shape)

    first, second = along(mean), along(variance)
    assert first is not None and second is not None
    return nn.batch_normalization(value, first, second, along(offset), along(scale), epsilon)
