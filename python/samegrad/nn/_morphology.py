"""Maxima and minima of windows with their positions or offsets: pooling and morphology."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._ops.arrays import reverse
from samegrad._ops.padding import pad
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.nn._window import (
    Padding,
    Sizes,
    check_channels_last,
    images_of,
    rows_and_columns,
    space_of,
    window_attrs,
)

_ops = _core.ops


class MaxPoolWithArgmax(NamedTuple):
    """Result of `max_pool_with_argmax`.

    Args:
        output: The maximum of each window.
        argmax: Where it is in the flattened input.
    """

    output: Tensor
    argmax: Tensor


def max_pool_with_argmax(
    input: TensorLike,
    ksize: Sizes,
    strides: Sizes,
    padding: Padding,
    data_format: str = "NHWC",
    output_dtype: DTypeLike = "int64",
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> MaxPoolWithArgmax:
    """Compute the maximum of each window and its position; the first of equal ones counts.

    Args:
        input: Images: floats of shape [n, height, width, channels].
        ksize: The size of the window: an integer, two, or four (1, height, width, 1).
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID" or "SAME".
        data_format: "NHWC", channels last.
        output_dtype: "int64" or "int32", the dtype of the positions.
        include_batch_in_index: Count the positions through the batch, not through each image.
        name: Ignored.

    Returns:
        A named tuple (output, argmax), both [n, new height, new width, channels]. The position of
        (y, x, channel) is (y * width + x) * channels + channel.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> found = max_pool_with_argmax([[[[1.0], [5.0]], [[2.0], [4.0]]]], 2, 2, "VALID")
        >>> found.output.numpy().ravel(), found.argmax.numpy().ravel()
        (array([5.], dtype=float32), array([1]))
    """
    who = "max_pool_with_argmax"
    check_channels_last(who, data_format)
    x = images_of(who, input)
    height, width, channels = (int(size) for size in x.shape[1:])
    places = np.arange(height * width * channels).reshape(1, height, width, channels)
    window = rows_and_columns(who, "ksize", ksize)
    taps = _taps(who, x, window, strides, padding, None)
    of_places = _taps(who, convert_to_tensor(places), window, strides, padding, None)
    best: Tensor | None = None
    for (_, value), (_, place) in zip(taps, of_places, strict=True):
        if best is None:
            best, at = value, place + _ops.full_like(_ops.cast(value, dtype="int64"), value=0)
        else:
            larger = value > best
            best, at = _ops.select(larger, value, best), _ops.select(larger, place, at)
    assert best is not None
    if include_batch_in_index:
        numbers = _ops.cumsum(_ops.full_like(at[:, :1, :1, :1], value=1), axis=0) - 1
        at = at + numbers * places.size
    return MaxPoolWithArgmax(best, _ops.cast(at, dtype=as_dtype(output_dtype).name))


def dilation2d(
    input: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str,
    dilations: Sizes,
    name: str | None = None,
) -> Tensor:
    """Compute the grayscale dilation: the maximum of each window plus the filter.

    Args:
        input: Images [n, height, width, channels].
        filters: The offsets [height, width, channels] of a window.
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID" or "SAME"; padding never wins.
        data_format: "NHWC", channels last.
        dilations: The dilation rates: an integer, two, or four (1, height, width, 1).
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> x = [[[[1.0], [2.0]], [[3.0], [4.0]]]]
        >>> dilation2d(x, [[[0.0], [10.0]]], 1, "VALID", "NHWC", 1).numpy().ravel()
        array([12., 14.], dtype=float32)
    """
    return _dilated("dilation2d", input, filters, strides, padding, data_format, dilations)


def erosion2d(
    value: TensorLike,
    filters: TensorLike,
    strides: Sizes,
    padding: Padding,
    data_format: str,
    dilations: Sizes,
    name: str | None = None,
) -> Tensor:
    """Compute the grayscale erosion: the minimum of each window minus the reversed filter.

    Args:
        value: Images [n, height, width, channels].
        filters: The offsets [height, width, channels] of a window.
        strides: The strides: an integer, two, or four (1, height, width, 1).
        padding: "VALID" or "SAME"; padding never wins.
        data_format: "NHWC", channels last.
        dilations: The dilation rates: an integer, two, or four (1, height, width, 1).
        name: Ignored.

    Returns:
        A tensor [n, new height, new width, channels], in the dtype of `value`.

    Raises:
        ValueError: Shapes or arguments do not fit.

    Example:
        >>> x = [[[[1.0], [2.0]], [[3.0], [4.0]]]]
        >>> erosion2d(x, [[[0.0], [0.5]]], 1, "VALID", "NHWC", 1).numpy().ravel()
        array([0.5, 2.5], dtype=float32)
    """
    negative = -convert_to_tensor(value)
    turned = reverse(convert_to_tensor(filters), [0, 1])
    return -_dilated("erosion2d", negative, turned, strides, padding, data_format, dilations)


def _dilated(
    who: str, input: TensorLike, filters: TensorLike, strides: Sizes, padding: Padding,
    data_format: str, dilations: Sizes,
) -> Tensor:  # fmt: skip
    check_channels_last(who, data_format)
    x, offsets = images_of(who, input), convert_to_tensor(filters)
    if offsets._rank != 3 or offsets.shape[2] != x.shape[3]:
        raise ValueError(
            f"[{who}] filters must be [rows, columns, channels] for images {x._shape}: got shape "
            f"{offsets._shape}."
        )
    window = int(offsets.shape[0]), int(offsets.shape[1])
    best: Tensor | None = None
    for (row, column), tap in _taps(who, x, window, strides, padding, dilations):
        value = tap + offsets[row, column]
        best = value if best is None else _ops.select(value > best, value, best)
    assert best is not None
    return best


def _taps(
    who: str, x: Tensor, window: tuple[int, int], strides: Sizes, padding: Padding,
    dilations: Sizes | None,
) -> Iterator[tuple[tuple[int, int], Tensor]]:  # fmt: skip
    """Yield each position of the window and the pixels that it has there in all windows."""
    sizes = space_of(x)
    attrs = window_attrs(who, sizes, window, strides, padding, dilations)
    top, bottom, left, right = attrs["padding"]
    kind = as_dtype(x._dtype)
    lowest = -np.inf if kind.is_floating else kind.min
    whole = pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]], constant_values=lowest)
    steps, rates = attrs["strides"], attrs["dilations"]
    spans = [
        (size + before + after - (width - 1) * rate - 1) // step * step + 1
        for size, before, after, width, rate, step in zip(
            sizes, (top, left), (bottom, right), window, rates, steps, strict=True
        )
    ]
    for row, column in product(range(window[0]), range(window[1])):
        y, z = row * rates[0], column * rates[1]
        yield (
            (row, column),
            whole[:, y : y + spans[0] : steps[0], z : z + spans[1] : steps[1]],
        )


__all__ = ["dilation2d", "erosion2d", "max_pool_with_argmax"]
