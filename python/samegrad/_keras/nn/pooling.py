"""keras.backend.nn: pooling of signals, images and volumes."""

from __future__ import annotations

import math
from typing import Any

from samegrad import nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.nn.layout import channels_last, each, put_back
from samegrad._tensor.tensor import Tensor

_MOST = 256  # elements of a window of the engine


def max_pool(
    inputs: Any,
    pool_size: Any,
    strides: Any = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The largest element of each window, channel by channel.

    Raises:
        ValueError: Shapes or arguments do not fit.
    """
    x, moved = channels_last(convert_to_tensor(inputs), data_format)
    window, steps = _window(x, pool_size, strides)
    if math.prod(window) <= _MOST:
        return put_back(nn.max_pool(x, window, steps, padding.upper()), moved)
    for axis in range(len(window)):  # a maximum of maxima
        one, step = [1] * len(window), [1] * len(window)
        one[axis], step[axis] = window[axis], steps[axis]
        x = nn.max_pool(x, one, step, padding.upper())
    return put_back(x, moved)


def average_pool(
    inputs: Any,
    pool_size: Any,
    strides: Any = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The mean of each window, channel by channel; padding does not count.

    Raises:
        ValueError: Shapes or arguments do not fit.
    """
    x, moved = channels_last(convert_to_tensor(inputs), data_format)
    window, steps = _window(x, pool_size, strides)
    return put_back(nn.avg_pool(x, window, steps, padding.upper()), moved)


def _window(x: Tensor, pool_size: Any, strides: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    window = each(pool_size, x._rank - 2)
    return window, window if strides is None else each(strides, x._rank - 2)


def adaptive_max_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Tensor:
    """The largest element of each of `output_size` windows, channel by channel.

    Raises:
        ValueError: Shapes or arguments do not fit.
    """
    x, moved = channels_last(convert_to_tensor(inputs), data_format)
    return put_back(nn.adaptive_max_pool(x, each(output_size, x._rank - 2)), moved)


def adaptive_average_pool(inputs: Any, output_size: Any, data_format: str | None = None) -> Tensor:
    """The mean of each of `output_size` windows, channel by channel.

    Raises:
        ValueError: Shapes or arguments do not fit.
    """
    x, moved = channels_last(convert_to_tensor(inputs), data_format)
    return put_back(nn.adaptive_average_pool(x, each(output_size, x._rank - 2)), moved)
