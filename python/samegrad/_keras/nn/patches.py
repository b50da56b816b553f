"""keras.backend.nn: windows of images side by side, and blocks of pixels as channels."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import samegrad as tf
from samegrad import math, nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.nn.layout import channels_last, each, put_back
from samegrad._tensor.tensor import Tensor


def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Each window of images [n, channels, rows, columns]: [n, channels * window, windows].

    Args:
        input: The images.
        kernel_size: Rows and columns of a window.
        dilation: From element to element of a window.
        padding: Zeros on each side of rows and columns.
        stride: From window to window.
    """
    x = convert_to_tensor(input)
    before = each(padding, 2)
    if any(before):
        x = tf.pad(x, [[0, 0], [0, 0], [before[0]] * 2, [before[1]] * 2])
    n, channels, *sizes = x.shape
    rows, columns = _places(sizes, kernel_size, dilation, stride)
    windows = tf.gather(tf.gather(x, rows, axis=2), columns, axis=4)
    window, count = rows.shape[0] * columns.shape[0], rows.shape[1] * columns.shape[1]
    return tf.reshape(tf.transpose(windows, [0, 1, 2, 4, 3, 5]), (n, channels * window, count))


def fold(
    x: Any,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Sum windows, as `unfold` makes them, at their positions in images of `output_size`."""
    values = convert_to_tensor(x)
    before, size = each(padding, 2), each(output_size, 2)
    padded = [side + 2 * more for side, more in zip(size, before, strict=True)]
    rows, columns = _places(padded, kernel_size, dilation, stride)
    window = (rows.shape[0], columns.shape[0])
    n, channels = values.shape[0], values.shape[1] // prod(window)
    # [kernel rows, rows, kernel columns, columns, n, channels]
    parts = tf.reshape(values, (n, channels, *window, rows.shape[1], columns.shape[1]))
    parts = tf.transpose(parts, [2, 4, 3, 5, 0, 1])
    places = rows[:, :, None, None] * padded[1] + columns
    parts = tf.reshape(parts, (places.size, n, channels))
    sums = math.unsorted_segment_sum(parts, places.reshape(-1), prod(padded))
    images = tf.transpose(tf.reshape(sums, (*padded, n, channels)), [2, 3, 0, 1])
    inner = [slice(more, more + side) for side, more in zip(size, before, strict=True)]
    return images[:, :, inner[0], inner[1]] if any(before) else images


def _places(
    sizes: Any, kernel_size: Any, dilation: Any, stride: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the positions of windows' elements along rows and columns: [element, window] each."""
    found = []
    numbers = (each(value, 2) for value in (kernel_size, dilation, stride))
    for size, length, apart, step in zip(sizes, *numbers, strict=True):
        count = (int(size) - apart * (length - 1) - 1) // step + 1
        found.append(np.arange(length)[:, None] * apart + np.arange(max(count, 0)) * step)
    return found[0], found[1]


def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """The channels of a pixel become a block of pixels."""
    last, moved = channels_last(convert_to_tensor(x), data_format)
    return put_back(nn.depth_to_space(last, block_size), moved)


def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> Tensor:
    """A block of pixels becomes the channels of a pixel."""
    last, moved = channels_last(convert_to_tensor(x), data_format)
    return put_back(nn.space_to_depth(last, block_size), moved)
