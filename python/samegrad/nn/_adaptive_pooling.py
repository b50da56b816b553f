"""Pooling to a given size: windows as wide as the sizes before and afterwards make them."""

from __future__ import annotations

import math

import numpy as np

from samegrad import _core
from samegrad._ops.gather import gather
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.nn._convolution import dimensions_of
from samegrad.nn._pooling import avg_pool, max_pool
from samegrad.nn._window import Sizes, check_channels_last, sizes_of, space_of

_ops = _core.ops
_MAX_WINDOW = 256  # elements of a window of the engine's max_pool2d


def adaptive_average_pool(
    input: TensorLike,
    output_size: Sizes,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the mean of each of `output_size` windows, channel by channel.

    Along an axis of L elements window i of O is floor(i * L / O) … ceil((i + 1) * L / O) - 1, as in
    `keras.ops.adaptive_average_pool` and PyTorch's AdaptiveAvgPool. Windows touch or overlap. Where
    O is larger than L, elements are repeated.

    Args:
        input: Floats [n, width, channels], [n, height, width, channels] or [n, depth, height,
            width, channels].
        output_size: The spatial size of the result: an integer, or one per dimension.
        data_format: Channels last: None, "NWC", "NHWC" or "NDHWC".
        name: Ignored.

    Returns:
        A tensor [n, *output_size, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit, or an axis is empty.

    Example:
        >>> adaptive_average_pool([[[1.0], [3.0], [8.0]]], 2).numpy().ravel()
        array([2. , 5.5], dtype=float32)
    """
    x, sizes = _operands("adaptive_average_pool", input, output_size, data_format)
    old = space_of(x)
    if _divide(old, sizes):
        window = _windows(old, sizes)
        return avg_pool(x, window, window, "VALID")
    for axis in range(x._rank - 2, 0, -1):
        x = _means(x, axis, *_places(old[axis - 1], sizes[axis - 1]))
    return x


def adaptive_max_pool(
    input: TensorLike,
    output_size: Sizes,
    data_format: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Compute the maximum of each of `output_size` windows, channel by channel.

    The windows are those of `adaptive_average_pool`. The gradient flows to the first of equal
    elements.

    Args:
        input: Floats [n, width, channels], [n, height, width, channels] or [n, depth, height,
            width, channels].
        output_size: The spatial size of the result: an integer, or one per dimension.
        data_format: Channels last: None, "NWC", "NHWC" or "NDHWC".
        name: Ignored.

    Returns:
        A tensor [n, *output_size, channels], in the dtype of `input`.

    Raises:
        ValueError: Shapes or arguments do not fit, or an axis is empty.

    Example:
        >>> adaptive_max_pool([[[1.0], [3.0], [8.0]]], 2).numpy().ravel()
        array([3., 8.], dtype=float32)
    """
    x, sizes = _operands("adaptive_max_pool", input, output_size, data_format)
    old = space_of(x)
    if _divide(old, sizes) and math.prod(_windows(old, sizes)) <= _MAX_WINDOW:
        window = _windows(old, sizes)
        return max_pool(x, window, window, "VALID")
    for axis in range(x._rank - 2, 0, -1):  # the last axis first: first of equals, row by row
        x = _largest(x, axis, _places(old[axis - 1], sizes[axis - 1])[0])
    return x


def _operands(
    who: str, input: TensorLike, output_size: Sizes, data_format: str | None
) -> tuple[Tensor, tuple[int, ...]]:
    x = convert_to_tensor(input)
    dimensions = dimensions_of(who, x)
    check_channels_last(who, data_format, dimensions)
    if not all(space_of(x)):
        raise ValueError(f"[{who}] the input must have elements to pool: got shape {x._shape}.")
    return x, sizes_of(who, "output_size", output_size, dimensions)


def _divide(old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    return all(a % b == 0 for a, b in zip(old, new, strict=True))


def _windows(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a // b for a, b in zip(old, new, strict=True))


def _places(old: int, new: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the elements of each window, [new, most], and a mask of the real ones."""
    ends = np.arange(new + 1) * old
    first, last = (ends[:-1] // new)[:, None], (-(-ends[1:] // new) - 1)[:, None]
    places = first + np.arange(int((last - first).max()) + 1)
    return np.minimum(places, last), places <= last


def _means(x: Tensor, axis: int, places: np.ndarray, inside: np.ndarray) -> Tensor:
    if np.array_equal(places, np.arange(x.shape[axis])[:, None]):
        return x
    shape = [1] * (x._rank + 1)
    shape[axis] = len(places)
    count = convert_to_tensor(inside.sum(1).reshape(shape[:-1]).astype("float64"), x._dtype)
    taken = gather(x, places, axis=axis)
    if not inside.all():
        shape[axis + 1] = inside.shape[1]
        # Selected, not weighted: infinity times 0 would be NaN.
        taken = _ops.select(
            convert_to_tensor(inside.reshape(shape)), taken, convert_to_tensor(0, x._dtype)
        )
    return _ops.reduce_sum(taken, axes=[axis + 1]) / count


def _largest(x: Tensor, axis: int, places: np.ndarray) -> Tensor:
    if np.array_equal(places, np.arange(x.shape[axis])[:, None]):
        return x
    steps, left = [], places.shape[1]
    while left > _MAX_WINDOW:  # a maximum of maxima
        steps.append(_MAX_WINDOW)
        left = -(-left // _MAX_WINDOW)
    steps.append(left)
    added = math.prod(steps) - places.shape[1]
    places = np.pad(places, ((0, 0), (0, added)), mode="edge")
    taken = gather(x, places.ravel(), axis=axis)
    examples, sizes = x.shape[0], [int(size) for size in x.shape[1:]]
    flat = [examples, math.prod(sizes[: axis - 1]), places.size, math.prod(sizes[axis:])]
    y = _sizes.reshape(taken, flat)
    for step in steps:
        y = max_pool(y, (1, step), (1, step), "VALID")
    sizes[axis - 1] = len(places)
    return _sizes.reshape(y, [examples, *sizes])
