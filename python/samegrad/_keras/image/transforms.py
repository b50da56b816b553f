"""keras.backend.image: images turned, seen from elsewhere, and bent."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.variables import is_int_dtype

import samegrad as tf
from samegrad._keras import random
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.image.filters import smoothed
from samegrad._keras.image.layout import images_of
from samegrad._keras.image.sampling import sampled
from samegrad._keras.linalg.solving import solve
from samegrad._tensor.tensor import Tensor

_INTERPOLATIONS = ("nearest", "bilinear")
_FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
_FAR = 1e6  # a place outside of any image


def _check(interpolation: str, fill_mode: str = "constant") -> None:
    if interpolation not in _INTERPOLATIONS:
        raise ValueError(
            "Invalid value for argument `interpolation`. Expected of one "
            f"{_INTERPOLATIONS}. Received: interpolation={interpolation}"
        )
    if fill_mode not in _FILL_MODES:
        raise ValueError(
            "Invalid value for argument `fill_mode`. Expected of one "
            f"{_FILL_MODES}. Received: fill_mode={fill_mode}"
        )


def affine_transform(
    images: Any,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: Any = 0,
    data_format: str | None = None,
) -> Tensor:
    """Images of pixels that were elsewhere.

    Pixel (x, y) is what lay at (a0 x + a1 y + a2, b0 x + b1 y + b2) / (c0 x + c1 y + 1).

    Args:
        images: One or a batch.
        transform: [a0, a1, a2, b0, b1, b2, c0, c1], or a batch of them.
        interpolation: "bilinear" or "nearest".
        fill_mode: Pixels outside: "constant", "nearest", "wrap", "mirror" or "reflect".
        fill_value: Of "constant".
        data_format: Position of the channel axis.

    Raises:
        ValueError: The arguments do not fit.
    """
    _check(interpolation, fill_mode)
    x, layout = images_of(images, data_format)
    numbers = convert_to_tensor(transform)
    if numbers._rank not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of "
            f"transforms). Received input with shape: transform.shape={numbers.shape}"
        )
    numbers = tf.expand_dims(numbers, 0) if numbers._rank == 1 else numbers
    return layout.put_back(_projected(x, numbers, interpolation, fill_mode, fill_value))


def _projected(
    x: Tensor, transform: Tensor, interpolation: str, fill_mode: str, fill_value: Any
) -> Tensor:
    kind = "float64" if x._dtype == "float64" else "float32"
    height, width = int(x.shape[1]), int(x.shape[2])
    columns = tf.cast(tf.range(width), kind)[None, None, :]
    rows = tf.cast(tf.range(height), kind)[None, :, None]
    numbers = [part[:, None, None] for part in tf.unstack(tf.cast(transform, kind), axis=-1)]
    a0, a1, a2, b0, b1, b2, c0, c1 = numbers
    scale = c0 * columns + c1 * rows + 1.0
    nowhere = tf.equal(scale, tf.zeros_like(scale))
    scale = tf.where(nowhere, tf.ones_like(scale), scale)
    places = []
    for first, second, move in ((b0, b1, b2), (a0, a1, a2)):
        place = (first * columns + second * rows + move) / scale
        place = tf.where(nowhere, -_FAR, tf.clip_by_value(place, -_FAR, _FAR))
        places.append(_away_from_zero(place) if interpolation == "nearest" else place)
    order = _INTERPOLATIONS.index(interpolation)
    y = sampled(x, places[0], places[1], order, fill_mode, fill_value)
    return tf.cast(y, x._dtype)


def _away_from_zero(x: Tensor) -> Tensor:
    """Round to the nearest integers, halves away from zero."""
    return tf.sign(x) * tf.floor(tf.abs(x) + 0.5)


def perspective_transform(
    images: Any,
    start_points: Any,
    end_points: Any,
    interpolation: str = "bilinear",
    fill_value: Any = 0,
    data_format: str | None = None,
) -> Tensor:
    """Transform images so that four points move to four others.

    Args:
        images: One or a batch.
        start_points: Points (x, y) [4, 2], or a batch of four.
        end_points: Their new positions.
        interpolation: "bilinear" or "nearest".
        fill_value: Value of pixels outside.
        data_format: Position of the channel axis.

    Raises:
        ValueError: The arguments do not fit.
    """
    _check(interpolation)
    x, layout = images_of(images, data_format)
    start, end = (convert_to_tensor(points, "float32") for points in (start_points, end_points))
    for name, points in (("start_points", start), ("end_points", end)):
        if points._rank not in (2, 3) or tuple(points.shape[-2:]) != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                f"Received shape: {points.shape}"
            )
    if start._rank != end._rank or tuple(start._shape) != tuple(end._shape):
        raise ValueError(
            "start_points and end_points must have the same shape. Received "
            f"start_points.shape={start.shape}, end_points.shape={end.shape}"
        )
    if start._rank == 2:
        start, end = tf.expand_dims(start, 0), tf.expand_dims(end, 0)
    transform = compute_homography_matrix(start, end)
    return layout.put_back(_projected(x, transform, interpolation, "constant", fill_value))


def compute_homography_matrix(start_points: Any, end_points: Any) -> Tensor:
    """The numbers of `affine_transform` that take the end points to the start points: [n, 8].

    Args:
        start_points: [n, 4, 2].
        end_points: [n, 4, 2].
    """
    start, end = convert_to_tensor(start_points), convert_to_tensor(end_points)
    u, v = tf.unstack(start, axis=-1)
    x, y = tf.unstack(end, axis=-1)
    one, zero = tf.ones_like(x), tf.zeros_like(x)
    of_u = tf.stack([x, y, one, zero, zero, zero, -u * x, -u * y], axis=-1)
    of_v = tf.stack([zero, zero, zero, x, y, one, -v * x, -v * y], axis=-1)
    count = start.shape[0]
    equations = tf.reshape(tf.stack([of_u, of_v], axis=2), (count, 8, 8))
    return tf.reshape(solve(equations, tf.reshape(start, (count, 8, 1))), (count, 8))


def elastic_transform(
    images: Any,
    alpha: Any = 20.0,
    sigma: Any = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: Any = 0.0,
    seed: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """Images bent by smooth noise (Simard et al., 2003).

    Args:
        images: One or a batch.
        alpha: A factor of the noise.
        sigma: How smooth it is, in pixels.
        interpolation: "bilinear" or "nearest".
        fill_mode: Pixels outside: "constant", "nearest", "wrap", "mirror" or "reflect".
        fill_value: Of "constant".
        seed: Of the draw.
        data_format: Position of the channel axis.

    Raises:
        ValueError: The arguments do not fit.
    """
    _check(interpolation, fill_mode)
    x, layout = images_of(images, data_format)
    kind = "float32" if is_int_dtype(x._dtype) else x._dtype
    n, height, columns = x.shape[0], int(x.shape[1]), int(x.shape[2])
    noise: Tensor = random.normal(  # type: ignore[attr-defined, unused-ignore]
        (n, height, columns, 2), dtype=kind, seed=seed
    )
    width = convert_to_tensor(sigma, kind)
    largest = max(height, columns) if width._symbolic else int(6 * float(width))
    smooth = smoothed(noise * width, width, largest | 1) * convert_to_tensor(alpha, kind)
    across = tf.cast(tf.range(columns), kind)[None, None, :] + smooth[..., 0]
    down = tf.cast(tf.range(height), kind)[None, :, None] + smooth[..., 1]
    order = _INTERPOLATIONS.index(interpolation)
    bent = sampled(x, down, across, order, fill_mode, fill_value)
    if is_int_dtype(x._dtype):
        bent = tf.round(bent)
    return layout.put_back(tf.cast(bent, x._dtype))
