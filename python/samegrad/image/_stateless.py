"""Random changes of images that depend on a seed alone.

A seed is two integers. Equal seeds give equal results, in eager code and in functions. The samples
are not those of TensorFlow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import random
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast, reverse, where
from samegrad._ops.gather import gather
from samegrad._tensor.sizes import sizes_of
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image import _colours as colours
from samegrad.image._shape import image_of
from samegrad.math import minimum


def _drawn(low: float, high: float, seed: Any) -> Tensor:
    return random.stateless_uniform([], seed, low, high)


def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> Tensor:
    """Add a random number from [-max_delta, max_delta) to an image; see `adjust_brightness`.

    Args:
        image: A tensor of any shape.
        max_delta: The largest change, a number that is not negative.
        seed: Two integers: a list, or a tensor [2].

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> stateless_random_brightness([[[0.25]]], 0.0, [1, 2]).numpy()
        array([[[0.25]]], dtype=float32)
    """
    colours.check_change(max_delta, "stateless_random_brightness")
    return colours.adjust_brightness(image, _drawn(-max_delta, max_delta, seed))


def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> Tensor:
    """Scale the contrast by a random factor from [lower, upper); see `adjust_contrast`.

    Args:
        image: A tensor of shape [..., height, width, channels].
        lower: The lower limit of the factor, 0 or more.
        upper: The upper limit of the factor.
        seed: Two integers: a list, or a tensor [2].

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> stateless_random_contrast([[[0.5], [0.5]]], 0.5, 2.0, [1, 2]).numpy().ravel()
        array([0.5, 0.5], dtype=float32)
    """
    colours.check_factors(lower, upper, "stateless_random_contrast")
    return colours.adjust_contrast(image, _drawn(lower, upper, seed))


def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any = None) -> Tensor:
    """Scale the saturation by a random factor from [lower, upper); see `adjust_saturation`.

    Args:
        image: A tensor of shape [..., 3].
        lower: The lower limit of the factor, 0 or more.
        upper: The upper limit of the factor.
        seed: Two integers: a list, or a tensor [2].

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> stateless_random_saturation([[[0.5, 0.5, 0.5]]], 0.5, 2.0, [1, 2]).numpy()
        array([[[0.5, 0.5, 0.5]]], dtype=float32)
    """
    colours.check_factors(lower, upper, "stateless_random_saturation")
    return colours.adjust_saturation(image, _drawn(lower, upper, seed))


def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> Tensor:
    """Add a random number from [-max_delta, max_delta) to the hue; see `adjust_hue`.

    Args:
        image: A tensor of shape [..., 3].
        max_delta: The largest change, a number in [0, 0.5].
        seed: Two integers: a list, or a tensor [2].

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> stateless_random_hue([[[0.5, 0.5, 0.5]]], 0.25, [1, 2]).numpy()
        array([[[0.5, 0.5, 0.5]]], dtype=float32)
    """
    colours.check_change(max_delta, "stateless_random_hue", 0.5)
    return colours.adjust_hue(image, _drawn(-max_delta, max_delta, seed))


def _flipped(image: Any, seed: Any, axis: int, who: str) -> Tensor:
    x = image_of(image, who)
    if x._rank == 3:
        return where(_drawn(0.0, 1.0, seed) < 0.5, reverse(x, [axis]), x)
    draws = random.stateless_uniform([x.shape[0], 1, 1, 1], seed)
    return where(draws < 0.5, reverse(x, [axis]), x)


def stateless_random_flip_left_right(image: Any, seed: Any) -> Tensor:
    """Flip each image left to right with probability 1/2.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        seed: Two integers: a list, or a tensor [2].

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> stateless_random_flip_left_right([[[1], [1]]], [1, 2]).numpy().ravel()
        array([1, 1], dtype=int32)
    """
    return _flipped(image, seed, -2, "stateless_random_flip_left_right")


def stateless_random_flip_up_down(image: Any, seed: Any) -> Tensor:
    """Flip each image upside down with probability 1/2.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        seed: Two integers: a list, or a tensor [2].

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> stateless_random_flip_up_down([[[1]], [[1]]], [1, 2]).numpy().ravel()
        array([1, 1], dtype=int32)
    """
    return _flipped(image, seed, -3, "stateless_random_flip_up_down")


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """Crop a tensor at a random position.

    Args:
        value: A tensor of any dtype.
        size: The size of the crop along each axis; -1: the whole axis.
        seed: Two integers: a list, or a tensor [2].
        name: Ignored.

    Returns:
        A tensor of the shape `size`, in the dtype of `value`.

    Raises:
        ValueError: The crop is larger than the tensor, or has other axes.

    Example:
        >>> stateless_random_crop([[1, 2, 3]], (1, 2), [1, 2]).shape
        (1, 2)
    """
    x = convert_to_tensor(value)
    sizes = [int(n) for n in sizes_of(size)]
    if len(sizes) != x._rank or any(n > m for n, m in zip(sizes, x._shape, strict=True)):
        raise ValueError(
            f"[stateless_random_crop] size must have an entry for each axis, no larger than it: "
            f"got {shown(sizes)} for shape {x._shape}."
        )
    sizes = [m if n < 0 else n for n, m in zip(sizes, x._shape, strict=True)]
    room = np.array([m - n for n, m in zip(sizes, x._shape, strict=True)], np.float32)
    draws = random.stateless_uniform([x._rank], seed) * (room + 1.0)
    begins = cast(minimum(draws, convert_to_tensor(room)), "int32")
    for axis, count in enumerate(sizes):
        if count != x.shape[axis]:
            x = gather(x, begins[axis] + np.arange(count, dtype=np.int32), axis=axis)
    return x


__all__ = [
    "stateless_random_brightness", "stateless_random_contrast", "stateless_random_crop",
    "stateless_random_flip_left_right", "stateless_random_flip_up_down", "stateless_random_hue",
    "stateless_random_saturation",
]  # fmt: skip
