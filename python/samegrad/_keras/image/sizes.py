"""keras.backend.image: images of other sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.variables import is_int_dtype

import samegrad as tf
from samegrad import image, nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.image.layout import images_of
from samegrad._tensor.tensor import Tensor

_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic", "area")


def resize(
    images: Any,
    size: Any,
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """Images of another size.

    Args:
        images: One or a batch.
        size: New rows and columns.
        interpolation: "bilinear", "nearest", "lanczos3", "lanczos5", "bicubic" or "area".
        antialias: Whether all pixels count where images become smaller.
        crop_to_aspect_ratio: Whether images are cut to the new ratio of rows to columns first.
        pad_to_aspect_ratio: Whether they are filled up to it.
        fill_mode: "constant".
        fill_value: What they are filled up with.
        data_format: Position of the channel axis.

    Raises:
        ValueError: The arguments do not fit.
    """
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(
            "Invalid value for argument `interpolation`. Expected of one "
            f"{_INTERPOLATIONS}. Received: interpolation={interpolation}"
        )
    if fill_mode != "constant":
        raise ValueError(
            "Invalid value for argument `fill_mode`. Only `'constant'` is supported. "
            f"Received: fill_mode={fill_mode}"
        )
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError(
            "Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`."
        )
    if len(size) != 2:
        raise ValueError(
            "Argument `size` must be a tuple of two elements (height, width). "
            f"Received: size={size}"
        )
    x, layout = images_of(images, data_format)
    new = int(size[0]), int(size[1])
    if crop_to_aspect_ratio:
        x = _cut(x, new)
    elif pad_to_aspect_ratio:
        x = _filled_up(x, new, fill_value)
    return layout.put_back(image.resize(x, new, interpolation, antialias=antialias))


def _in_ratio(x: Tensor, new: tuple[int, int]) -> list[tuple[int, int]]:
    """Rows and columns: how many there are, and how many the ratio wants for the other."""
    rows, columns = int(x.shape[1]), int(x.shape[2])
    return [(rows, int(columns * new[0] / new[1])), (columns, int(rows * new[1] / new[0]))]


def _cut(x: Tensor, new: tuple[int, int]) -> Tensor:
    places = []
    for old, wanted in _in_ratio(x, new):
        kept = max(min(old, wanted), 1)
        first = (old - kept) // 2
        places.append(slice(first, first + kept))
    return x[:, places[0], places[1], :]


def _filled_up(x: Tensor, new: tuple[int, int], value: float) -> Tensor:
    sides = [[max(old, wanted) - old] for old, wanted in _in_ratio(x, new)]
    pads = [[more // 2, more // 2] for (more,) in sides]
    return tf.pad(x, [[0, 0], *pads, [0, 0]], constant_values=value)


def _triangle(x: Tensor) -> Tensor:
    return nn.relu(1.0 - x)


def _keys(x: Tensor) -> Tensor:
    """Keys, "Cubic Convolution Interpolation", 1981, with a = -0.5."""
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return tf.where(x >= 2.0, tf.zeros_like(x), tf.where(x >= 1.0, far, near))


def _lanczos(radius: float) -> Callable[[Tensor], Tensor]:
    def kernel(x: Tensor) -> Tensor:
        waves = radius * tf.sin(math.pi * x) * tf.sin(math.pi * x / radius)
        apart = x > 1e-3
        inside = waves / (math.pi * math.pi * tf.square(tf.where(apart, x, tf.ones_like(x))))
        inside = tf.where(apart, inside, tf.ones_like(x))
        return tf.where(x > radius, tf.zeros_like(x), inside)

    return kernel


_KERNELS = {
    "linear": _triangle, "bilinear": _triangle, "trilinear": _triangle, "cubic": _keys,
    "bicubic": _keys, "tricubic": _keys, "lanczos3": _lanczos(3.0), "lanczos5": _lanczos(5.0),
}  # fmt: skip


def scale_and_translate(
    images: Any,
    output_shape: Sequence[int],
    scale: Any,
    translation: Any,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Tensor:
    """Images scaled and moved, 0 where there was nothing.

    Args:
        images: Any axes.
        output_shape: New sizes, of all axes.
        scale: A factor for each of `spatial_dims`.
        translation: By how many new pixels, for each of them.
        spatial_dims: Which axes.
        method: "linear", "cubic" (or those with bi and tri), "lanczos3" or "lanczos5".
        antialias: Whether all pixels count where images become smaller.

    Raises:
        ValueError: There is no such method.
    """
    if method not in _KERNELS:
        raise ValueError(
            "Invalid value for argument `method`. Expected of one "
            f"{set(_KERNELS)}. Received: method={method}"
        )
    x = convert_to_tensor(images)
    factors, moves = convert_to_tensor(scale), convert_to_tensor(translation)
    kind = result_type(factors._dtype, moves._dtype, float)
    factors, moves = tf.cast(factors, kind), tf.cast(moves, kind)
    whole = is_int_dtype(x._dtype)
    y = tf.cast(x, "float32") if whole else x
    for i, axis in enumerate(a % x._rank for a in spatial_dims):
        sizes = int(x.shape[axis]), int(output_shape[axis])
        weights = _weights(sizes, factors[i], moves[i], _KERNELS[method], antialias)
        moved = [a for a in range(y._rank) if a != axis]
        y = tf.matmul(tf.transpose(y, [*moved, axis]), tf.cast(weights, y._dtype))
        y = tf.transpose(y, [*range(axis), y._rank - 1, *range(axis, y._rank - 1)])
    if whole:
        y = tf.clip_by_value(
            tf.round(y), tf.cast(tf.reduce_min(x), y._dtype), tf.cast(tf.reduce_max(x), y._dtype)
        )
    return tf.cast(y, x._dtype)


def _weights(
    sizes: tuple[int, int], scale: Tensor, move: Tensor, kernel: Any, antialias: bool
) -> Tensor:
    """Return the weight of each old pixel for each new one: [old, new]."""
    old, new = sizes
    inverse = 1.0 / scale
    one = tf.ones_like(inverse)
    width = tf.maximum(inverse, one) if antialias else one
    places = (tf.cast(tf.range(new), scale._dtype) + 0.5 - move) * inverse - 0.5
    far = tf.abs(places[None, :] - tf.cast(tf.range(old), scale._dtype)[:, None]) / width
    weights = kernel(far)
    total = tf.reduce_sum(weights, axis=0, keepdims=True)
    counts = tf.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    weights = tf.where(counts, weights / tf.where(counts, total, 1.0), tf.zeros_like(weights))
    inside = tf.logical_and(places >= -0.5, places <= old - 0.5)
    return tf.where(inside[None, :], weights, tf.zeros_like(weights))
