"""Resizing by the centres of pixels, as in TensorFlow 2."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast
from samegrad._ops.gather import gather
from samegrad._tensor.host_values import on_host
from samegrad._tensor.sizes import sizes_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.image._kernels import Taps, taps_of

_ops = _core.ops
_MAX_SIZE = 2**31 - 1


class ResizeMethod:
    """Names of the methods of `resize`.

    Attributes:
        BILINEAR: "bilinear".
        NEAREST_NEIGHBOR: "nearest".
        BICUBIC: "bicubic".
        AREA: "area".
        LANCZOS3: "lanczos3".
        LANCZOS5: "lanczos5".
        GAUSSIAN: "gaussian".
        MITCHELLCUBIC: "mitchellcubic".

    Example:
        >>> ResizeMethod.BILINEAR
        'bilinear'
    """

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_METHODS = tuple(value for name, value in vars(ResizeMethod).items() if name.isupper())


def _native_resize(resize: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    given = inspect.signature(resize).bind(None, *args, **kwargs)
    given.apply_defaults()
    more = given.arguments
    if more["method"] != "bilinear" or more["antialias"] or more["preserve_aspect_ratio"]:
        return None
    return _core.HostFunction.resize_bilinear(*(int(size) for size in sizes_of(more["size"])))


@on_host(_native_resize)
def resize(
    images: TensorLike,
    size: Any,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize images.

    The centre of pixel i of n is at (i + 0.5) / n of the image, in the old and in the new one.

    Args:
        images: A tensor of shape [n, height, width, channels] or [height, width, channels].
        size: The new height and width.
        method: "bilinear" (between the four pixels around a centre), "nearest" (the pixel that
            contains it), "area" (the mean over the new pixel), or a kernel around the centre:
            "bicubic" (Keys, a = -0.5), "lanczos3", "lanczos5", "gaussian" (radius 1.5 pixels,
            deviation 0.5) or "mitchellcubic".
        preserve_aspect_ratio: Scale height and width alike, to the largest image that is not larger
            than `size`.
        antialias: Widen the kernels, the bilinear one included, as the image becomes smaller, so
            that all its pixels count. False samples the image. "nearest" and "area" ignore it.
        name: Ignored.

    Returns:
        A tensor with the new height and width: in the dtype of `images` for "nearest", float64 for
        float64, else float32.

    Raises:
        ValueError: The images have other axes or no pixels, the size is invalid, or the method is
            unknown.

    Example:
        >>> resize([[[0.0], [4.0]]], (1, 4)).numpy().ravel()
        array([0., 1., 3., 4.], dtype=float32)
        >>> resize([[[0.0], [4.0]]], (1, 4), "nearest").numpy().ravel()
        array([0., 0., 4., 4.], dtype=float32)
    """
    who = "resize"
    x = convert_to_tensor(images)
    if x._rank not in (3, 4):
        raise ValueError(
            f"[{who}] images must be [n, rows, columns, channels] or [rows, columns, channels]: "
            f"got shape {x._shape}."
        )
    kind = method.lower() if isinstance(method, str) else method
    if kind not in _METHODS:
        raise ValueError(f"[{who}] method must be one of {_METHODS}: got {shown(method)}.")
    if not isinstance(antialias, bool | int):
        raise ValueError(f"[{who}] antialias must be True or False: got {shown(antialias)}.")
    rows = x._rank - 3  # the axis of the rows
    old = int(x.shape[rows]), int(x.shape[rows + 1])
    new = _new_size(who, size, old, preserve_aspect_ratio)
    if kind == "nearest":
        for side in (0, 1):
            x = _nearest(x, rows + side, old[side], new[side])
        return x
    if kind == "bilinear" and not antialias and old != new:
        at_once: Tensor | None = _core.resize_images(x, *new)
        if at_once is not None:  # nothing records it: one pass, with the same bits
            return at_once
    if as_dtype(x._dtype).is_integer or x._dtype == "bool":
        x = cast(x, "float32")
    if old == new:
        return x
    for side in (1, 0):
        if kind == "bilinear" and not antialias:
            x = _between(x, rows + side, old[side], new[side])
        else:
            taps = taps_of(kind, old[side], new[side], bool(antialias))
            x = _weighted(x, rows + side, taps)
    return x


def _new_size(who: str, size: Any, old: tuple[int, int], keep_ratio: bool) -> tuple[int, int]:
    sizes = [int(entry) for entry in sizes_of(size)]
    if len(sizes) != 2 or not all(0 < entry <= _MAX_SIZE for entry in sizes):
        raise ValueError(
            f"[{who}] size must be two positive integers (rows, columns): got {shown(size)}."
        )
    if not all(old):
        raise ValueError(f"[{who}] images must have pixels: got {old[0]} x {old[1]}.")
    if not keep_ratio:
        return sizes[0], sizes[1]
    scale = min(sizes[0] / old[0], sizes[1] / old[1])
    return max(1, round(old[0] * scale)), max(1, round(old[1] * scale))


def _nearest(x: Tensor, axis: int, old: int, new: int) -> Tensor:
    if old == new:
        return x
    # Computed in float32, as in TensorFlow: half-way cases are decided as there.
    scale = np.float32(old) / np.float32(new)
    place = np.floor((np.arange(new, dtype=np.float32) + np.float32(0.5)) * scale)
    return gather(x, np.clip(place, 0, old - 1).astype(np.int64), axis=axis)


def _between(x: Tensor, axis: int, old: int, new: int) -> Tensor:
    if old == new:
        return x
    before, behind, share = _neighbours(old, new, x._dtype, x._rank - axis)
    low = _ops.gather(x, before, axis=axis)
    high = _ops.gather(x, behind, axis=axis)
    return low + (high - low) * share


@functools.lru_cache(maxsize=256)
def _neighbours(old: int, new: int, dtype: str, axes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the old pixels before and behind each new one, and the share of the latter.

    Images of one size after the other are the rule.
    """
    place = (np.arange(new) + 0.5) * (old / new) - 0.5
    before = np.floor(place)
    share = (place - before).astype(as_dtype(dtype).as_numpy_dtype)
    return (
        Tensor(np.maximum(before, 0).astype(np.int64)),
        Tensor(np.minimum(np.ceil(place), old - 1).astype(np.int64)),
        Tensor(share.reshape(new, *[1] * (axes - 1))),
    )


def _weighted(x: Tensor, axis: int, taps: Taps) -> Tensor:
    """Return the sum of old pixels, each times its weight, for each new one."""
    shape = [1] * (x._rank + 1)
    shape[axis], shape[axis + 1] = taps.weights.shape
    weights = convert_to_tensor(taps.weights.astype(x._dtype).reshape(shape))
    return _ops.reduce_sum(gather(x, taps.places, axis=axis) * weights, axes=[axis + 1])
