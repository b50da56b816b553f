"""The colours of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import math, random
from samegrad._ops.arrays import cast, concat, stack, unstack, where
from samegrad._ops.creation import ones_like, zeros_like
from samegrad._ops.elementary import LOG_10, log
from samegrad._ops.norms import clip_by_value
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image._convert import as_floats, convert_image_dtype
from samegrad.image._shape import coloured, image_of

_GREY = (0.2989, 0.587, 0.114)


def _back(x: Tensor, kind: Any) -> Tensor:
    return convert_image_dtype(x, kind, saturate=True)


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Convert RGB images to grayscale: 0.2989 red + 0.587 green + 0.114 blue.

    Args:
        images: A tensor of shape [..., 3].
        name: Ignored.

    Returns:
        A tensor [..., 1], in the dtype of `images`.

    Raises:
        ValueError: The images do not have 3 channels.

    Example:
        >>> rgb_to_grayscale([[[1.0, 0.0, 1.0]]]).numpy()
        array([[[0.4129]]], dtype=float32)
    """
    x, kind = as_floats(coloured(images, "rgb_to_grayscale"))
    weights = convert_to_tensor(np.asarray(_GREY))
    grey = math.reduce_sum(x * cast(weights, x._dtype), axis=-1, keepdims=True)
    return convert_image_dtype(grey, kind)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Convert grayscale images to RGB by repeating the channel.

    Args:
        images: A tensor of shape [..., 1].
        name: Ignored.

    Returns:
        A tensor [..., 3], in the dtype of `images`.

    Raises:
        ValueError: The images do not have 1 channel.

    Example:
        >>> grayscale_to_rgb([[[7]]]).numpy()
        array([[[7, 7, 7]]], dtype=int32)
    """
    x = convert_to_tensor(images)
    if not x._rank or x.shape[-1] != 1:
        raise ValueError(f"[grayscale_to_rgb] images must have 1 channel: got shape {x._shape}.")
    return concat([x, x, x], axis=-1)


def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Convert RGB images to hue, saturation and value, each in [0, 1].

    Args:
        images: Floats in [0, 1] of shape [..., 3].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `images`.

    Raises:
        ValueError: The images do not have 3 channels.

    Example:
        >>> rgb_to_hsv([[[0.0, 0.5, 0.0]]]).numpy().round(4)
        array([[[0.3333, 1.    , 0.5   ]]], dtype=float32)
    """
    x = coloured(images, "rgb_to_hsv")
    red, green, blue = unstack(x, axis=-1)
    value = math.reduce_max(x, axis=-1)
    span = value - math.reduce_min(x, axis=-1)
    zero = zeros_like(value)
    saturation = where(value > 0.0, math.divide_no_nan(span, value), zero)
    sixth = math.divide_no_nan(ones_like(span), span * 6.0)
    hue = where(
        math.equal(red, value),
        (green - blue) * sixth,
        where(
            math.equal(green, value),
            (blue - red) * sixth + 2.0 / 6.0,
            (red - green) * sixth + 4.0 / 6.0,
        ),
    )
    hue = where(span > 0.0, hue, zero)
    return stack([where(hue < 0.0, hue + 1.0, hue), saturation, value], axis=-1)


def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Convert hue, saturation and value to RGB, the inverse of `rgb_to_hsv`.

    Args:
        images: Floats in [0, 1] of shape [..., 3].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `images`.

    Raises:
        ValueError: The images do not have 3 channels.

    Example:
        >>> hsv_to_rgb([[[0.5, 1.0, 1.0]]]).numpy()
        array([[[0., 1., 1.]]], dtype=float32)
    """
    hue, saturation, value = unstack(coloured(images, "hsv_to_rgb"), axis=-1)
    turn = hue * 6.0
    shares = (
        math.abs(turn - 3.0) - 1.0,
        2.0 - math.abs(turn - 2.0),
        2.0 - math.abs(turn - 4.0),
    )
    less = 1.0 - saturation
    parts = [(less + saturation * clip_by_value(s, 0.0, 1.0)) * value for s in shares]
    return stack(parts, axis=-1)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Add `delta` to an image; integers are scaled to [0, 1] first, and back.

    Args:
        image: A tensor of any shape.
        delta: A number in (-1, 1).

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> adjust_brightness([[[0.25]]], 0.5).numpy()
        array([[[0.75]]], dtype=float32)
    """
    x, kind = as_floats(image)
    return _back(x + cast(delta, x._dtype), kind)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Scale the contrast: (x - mean) * factor + mean, with the mean of each channel of each image.

    Args:
        images: A tensor of shape [..., height, width, channels].
        contrast_factor: A number.

    Returns:
        A tensor of the shape and dtype of `images`.

    Raises:
        ValueError: The images have fewer than three axes.

    Example:
        >>> adjust_contrast([[[0.0], [1.0]]], 2.0).numpy().ravel()
        array([-0.5,  1.5], dtype=float32)
    """
    x, kind = as_floats(images)
    if x._rank < 3:
        raise ValueError(
            f"[adjust_contrast] images must be [..., rows, columns, channels]: got {x._shape}."
        )
    mean = math.reduce_mean(x, axis=[-3, -2], keepdims=True)
    return _back((x - mean) * contrast_factor + mean, kind)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiply the saturation of an image by a factor, up to 1.

    Args:
        image: A tensor of shape [..., 3].
        saturation_factor: A number, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> adjust_saturation([[[1.0, 0.5, 0.5]]], 0.0).numpy()
        array([[[1., 1., 1.]]], dtype=float32)
    """
    x, kind = as_floats(coloured(image, "adjust_saturation"))
    hue, saturation, value = unstack(rgb_to_hsv(x), axis=-1)
    changed = clip_by_value(saturation * saturation_factor, 0.0, 1.0)
    return _back(hsv_to_rgb(stack([hue, changed, value], axis=-1)), kind)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Add `delta` to the hue of an image, which is a circle of length 1.

    Args:
        image: A tensor of shape [..., 3].
        delta: A number in [-1, 1].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> adjust_hue([[[1.0, 0.0, 0.0]]], 0.5).numpy()
        array([[[0., 1., 1.]]], dtype=float32)
    """
    x, kind = as_floats(coloured(image, "adjust_hue"))
    hue, saturation, value = unstack(rgb_to_hsv(x), axis=-1)
    turned = hue + delta
    return _back(hsv_to_rgb(stack([turned - math.floor(turned), saturation, value], -1)), kind)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Compute gain * x^gamma; integers are scaled to [0, 1] first, and back.

    Args:
        image: A tensor of any shape.
        gamma: A number, 0 or more.
        gain: A number.

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: gamma is negative.

    Example:
        >>> adjust_gamma([[[0.5]]], 2.0).numpy()
        array([[[0.25]]], dtype=float32)
    """
    if isinstance(gamma, int | float) and gamma < 0:
        raise ValueError(f"[adjust_gamma] gamma must not be negative: got {gamma}.")
    x, kind = as_floats(image)
    return _back(math.pow(x, cast(convert_to_tensor(gamma), x._dtype)) * gain, kind)


def check_factors(lower: float, upper: float, who: str) -> None:
    """Raise a ValueError unless the factors are a range."""
    if not 0 <= lower < upper:
        raise ValueError(
            f"[{who}] the factors must be 0 <= lower < upper: got lower={lower} and upper={upper}."
        )


def check_change(largest: float, who: str, most: float = float("inf")) -> None:
    """Raise a ValueError unless the largest change is small enough and not negative."""
    if not 0 <= largest <= most:
        limit = f" and at most {most}" if most < float("inf") else ""
        raise ValueError(f"[{who}] max_delta must not be negative{limit}: got {largest}.")


def _factor(lower: float, upper: float, who: str, seed: int | None) -> Tensor:
    check_factors(lower, upper, who)
    return random.uniform([], lower, upper, seed=seed)


def _change(largest: float, who: str, seed: int | None) -> Tensor:
    check_change(largest, who)
    return random.uniform([], -largest, largest, seed=seed)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Add a random number from [-max_delta, max_delta) to an image; see `adjust_brightness`.

    Args:
        image: A tensor of any shape.
        max_delta: The largest change, a number that is not negative.
        seed: The seed of the op, as in `tf.random.uniform`.

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> random_brightness([[[0.25]]], 0.0).numpy()
        array([[[0.25]]], dtype=float32)
    """
    return adjust_brightness(image, _change(max_delta, "random_brightness", seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Scale the contrast by a random factor from [lower, upper); see `adjust_contrast`.

    Args:
        image: A tensor of shape [..., height, width, channels].
        lower: The lower limit of the factor, 0 or more.
        upper: The upper limit of the factor.
        seed: The seed of the op, as in `tf.random.uniform`.

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> random_contrast([[[0.5], [0.5]]], 0.5, 2.0).numpy().ravel()
        array([0.5, 0.5], dtype=float32)
    """
    return adjust_contrast(image, _factor(lower, upper, "random_contrast", seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Scale the saturation by a random factor from [lower, upper); see `adjust_saturation`.

    Args:
        image: A tensor of shape [..., 3].
        lower: The lower limit of the factor, 0 or more.
        upper: The upper limit of the factor.
        seed: The seed of the op, as in `tf.random.uniform`.

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> random_saturation([[[0.5, 0.5, 0.5]]], 0.5, 2.0).numpy()
        array([[[0.5, 0.5, 0.5]]], dtype=float32)
    """
    return adjust_saturation(image, _factor(lower, upper, "random_saturation", seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Add a random number from [-max_delta, max_delta) to the hue; see `adjust_hue`.

    Args:
        image: A tensor of shape [..., 3].
        max_delta: The largest change, a number in [0, 0.5].
        seed: The seed of the op, as in `tf.random.uniform`.

    Returns:
        A tensor of the shape and dtype of `image`.

    Raises:
        ValueError: A limit is out of its range.

    Example:
        >>> random_hue([[[0.5, 0.5, 0.5]]], 0.25).numpy()
        array([[[0.5, 0.5, 0.5]]], dtype=float32)
    """
    if max_delta > 0.5:
        raise ValueError(f"[random_hue] max_delta must be at most 0.5: got {max_delta}.")
    return adjust_hue(image, _change(max_delta, "random_hue", seed))


def per_image_standardization(image: Any) -> Tensor:
    """Subtract each image's mean, and divide by its deviation, but at least by 1 / sqrt(elements).

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].

    Returns:
        A tensor of the shape of `image`, in its dtype if that is of floats, else float32.

    Example:
        >>> per_image_standardization([[[1.0], [3.0]]]).numpy().ravel()
        array([-1.,  1.], dtype=float32)
    """
    x = image_of(image, "per_image_standardization")
    x = x if "float" in x._dtype else cast(x, "float32")
    axes = [-1, -2, -3]
    count = float(np.prod(x.shape[-3:]))
    spread = math.reduce_std(x, axis=axes, keepdims=True)
    least = cast(convert_to_tensor(1.0 / np.sqrt(max(count, 1.0))), x._dtype)
    return (x - math.reduce_mean(x, axis=axes, keepdims=True)) / math.maximum(spread, least)


def psnr(a: Any, b: Any, max_val: float, name: str | None = None) -> Tensor:
    """Compute the peak signal-to-noise ratio: 20 log10(max) - 10 log10(mean((a - b)²)).

    Args:
        a: A tensor of shape [..., height, width, channels].
        b: A tensor of the same shape.
        max_val: The difference between the largest and the smallest possible value.
        name: Ignored.

    Returns:
        A tensor [...] of decibels.

    Example:
        >>> psnr([[[1.0], [0.0]]], [[[0.5], [0.5]]], 1.0).numpy().round(4)
        np.float32(6.0206)
    """
    x, kind = as_floats(a)
    y, _ = as_floats(b)
    if str(kind).startswith(("int", "uint")):
        limit = float(np.iinfo(str(kind)).max)
        max_val = max_val / limit
    error = math.reduce_mean(math.squared_difference(x, y), axis=[-3, -2, -1])
    tenth = 10.0 / LOG_10
    return 2.0 * tenth * float(log(max_val)) - math.log(error) * tenth


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """Sum the absolute differences of neighbouring pixels of each image.

    Args:
        images: A tensor of shape [height, width, channels] or [n, height, width, channels].
        name: Ignored.

    Returns:
        A scalar, or a tensor [n], in the dtype of `images`.

    Example:
        >>> float(total_variation([[[1.0], [3.0]], [[1.0], [4.0]]]))
        6.0
    """
    x = image_of(images, "total_variation")
    down = math.abs(x[..., 1:, :, :] - x[..., :-1, :, :])
    across = math.abs(x[..., 1:, :] - x[..., :-1, :])
    axes = [-3, -2, -1]
    return math.reduce_sum(down, axis=axes) + math.reduce_sum(across, axis=axes)
