"""Batch normalization of version 1."""

from __future__ import annotations

import math
from typing import Any

from samegrad._ops.arrays import cast, reshape
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.compat._namespace import add_own
from samegrad.nn import batch_normalization, moments

_LEAST_EPSILON = 1.001e-5  # as cuDNN has it

_FORMATS = {"NHWC": -1, "NCHW": 1, "NDHWC": -1, "NCDHW": 1}


def fused_batch_norm(
    x: TensorLike, scale: TensorLike, offset: TensorLike, mean: TensorLike | None = None,
    variance: TensorLike | None = None, epsilon: float = 0.001, data_format: str = "NHWC",
    is_training: bool = True, name: str | None = None, exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalize images by the statistics of the batch or by given ones.

    Args:
        x: Images: floats of 4 or 5 axes.
        scale: The factor of each channel.
        offset: The addend of each channel.
        mean: The mean of each channel to normalize by, or, in training, to average with.
        variance: The variance of each channel, likewise.
        epsilon: The number added to variances.
        data_format: "NHWC", "NCHW", "NDHWC" or "NCDHW".
        is_training: Use the statistics of the batch.
        name: Ignored.
        exponential_avg_factor: The share of the batch in the returned statistics.

    Returns:
        The images, the mean and the variance of each channel. In training the variance is the one
        of a sample: the squared differences are divided by one less than their number.

    Raises:
        ValueError: The statistics are missing, or the format is unknown.

    Example:
        >>> y, mean, variance = fused_batch_norm([[[[1.0], [3.0]]]], [1.0], [0.0])
        >>> y.numpy().ravel().round(2), mean.numpy(), variance.numpy()
        (array([-1.,  1.], dtype=float32), array([2.], dtype=float32), array([2.], dtype=float32))
    """
    images = convert_to_tensor(x)
    if data_format not in _FORMATS or images._rank not in (4, 5):
        raise ValueError(
            f"[fused_batch_norm] data_format must be one of {list(_FORMATS)} and x have 4 or 5 "
            f"axes: got {data_format!r} and shape {images._shape}."
        )
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError(
            "[fused_batch_norm] mean and variance must be given unless the batch alone is "
            f"averaged: got {mean} and {variance}."
        )
    channels = _FORMATS[data_format] % images._rank
    axes = [axis for axis in range(images._rank) if axis != channels]
    wide = cast(images, "float32") if images._dtype in ("float16", "bfloat16") else images
    if is_training:
        used = moments(wide, axes)
    else:
        used = (convert_to_tensor(mean), convert_to_tensor(variance))
    line = [1] * images._rank
    line[channels] = -1
    at, spread, shift, factor = (
        reshape(convert_to_tensor(part), line) for part in (*used, offset, scale)
    )
    least = max(epsilon, _LEAST_EPSILON)
    found = cast(batch_normalization(wide, at, spread, shift, factor, least), images._dtype)
    if not is_training:
        return found, *used
    count: Any = math.prod(images.shape[axis] for axis in axes)
    of_sample = used[1] * (count / max(count - 1, 1))
    if exponential_avg_factor == 1.0:
        return found, used[0], of_sample
    keep, share = 1.0 - exponential_avg_factor, exponential_avg_factor
    return (
        found,
        convert_to_tensor(mean) * keep + used[0] * share,
        convert_to_tensor(variance) * keep + of_sample * share,
    )


add_own("nn", {"fused_batch_norm": fused_batch_norm})
__all__ = ["fused_batch_norm"]
