"""From which old pixels, with which weights, each new pixel along one axis is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from samegrad._ops.elementary import exp, sin

Array = np.ndarray


class Taps(NamedTuple):
    """Old places and their weights, [new, taps] each; unused taps have weight 0."""

    places: Array
    weights: Array


def _triangle(x: Array) -> Array:
    return np.where(x < 1, 1 - x, 0)


def _keys_cubic(x: Array) -> Array:
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _mitchell_cubic(x: Array) -> Array:
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _gaussian(x: Array) -> Array:
    return np.where(x < 1.5, exp(-2 * x * x), 0)  # a deviation of half a pixel


def _lanczos(radius: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x <= radius, _sinc(x) * _sinc(x / radius), 0)


def _sinc(x: Array) -> Array:
    turned = np.pi * np.where(x == 0, 1e-20, x)
    return sin(turned) / turned


# By TensorFlow's name of the method: the weight of a distance in pixels, and where it ends.
_KERNELS: dict[str, tuple[Callable[[Array], Array], float]] = {
    "bilinear": (_triangle, 1.0),
    "bicubic": (_keys_cubic, 2.0),
    "gaussian": (_gaussian, 1.5),
    "lanczos3": (_lanczos(3.0), 3.0),
    "lanczos5": (_lanczos(5.0), 5.0),
    "mitchellcubic": (_mitchell_cubic, 2.0),
}


def taps_of(method: str, old: int, new: int, antialias: bool) -> Taps:
    """Return the taps of a method along an axis.

    Args:
        method: One of `ResizeMethod`, but for "nearest".
        old: Pixels before.
        new: Pixels afterwards.
        antialias: Whether the kernel is as much wider as the image becomes smaller.

    Example:
        >>> taps_of("area", 4, 2, False).weights.tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    if method == "area":
        return _area(old, new)
    kernel, radius = _KERNELS[method]
    # Positions in float32, as in TensorFlow: they decide whether a pixel at a kernel's end counts.
    step = np.float32(1) / (np.float32(new) / np.float32(old))
    wide = max(step, np.float32(1)) if antialias else np.float32(1)
    centres = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * step
    if method == "bicubic" and not antialias:  # TensorFlow has a table of 1,024 distances
        low = np.floor(centres - 0.5)
        centres = low + np.rint((centres - 0.5 - low) * 1024) / 1024 + 0.5
    first = np.clip(np.ceil(centres - radius * wide - 0.5), 0, old - 1)
    last = np.clip(np.floor(centres + radius * wide - 0.5), 0, old - 1)
    places, inside = _places(first, last)
    distance = np.abs((places + 0.5).astype(np.float32) - centres[:, None]) / wide
    weights = np.where(inside, kernel(distance.astype(np.float64)), 0)
    return Taps(places, _of_sum_one(weights))


def _of_sum_one(weights: Array) -> Array:
    found: Array = weights / np.cumsum(weights, 1)[:, -1:]  # one weight after the other
    return found


def _area(old: int, new: int) -> Taps:
    """Return the fraction of each old pixel inside of the new one."""
    begin, end = np.arange(new) * (old / new), np.arange(1, new + 1) * (old / new)
    first = np.clip(np.floor(begin), 0, old - 1)
    places, inside = _places(first, np.clip(np.ceil(end) - 1, first, old - 1))
    shares = np.minimum(places + 1, end[:, None]) - np.maximum(places, begin[:, None])
    weights = np.where(inside, np.maximum(shares, 0), 0)
    return Taps(places, _of_sum_one(weights))


def _places(first: Array, last: Array) -> tuple[Array, Array]:
    """Return the positions from first to last of each row, and a mask of the real ones."""
    count = int((last - first).max()) + 1
    places = first[:, None] + np.arange(count)
    inside = places <= last[:, None]
    return np.minimum(places, last[:, None]).astype(np.int64), inside
