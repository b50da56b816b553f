"""Windows of images at places that may follow from values."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import math, random
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import cast, expand_dims, reshape, stack, where
from samegrad._ops.creation import range_, zeros_like
from samegrad._ops.gather import gather_nd
from samegrad._tensor.sizes import sizes_of, whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image._shape import image_of


def extract_glimpse(
    input: Any, size: Any, offsets: Any, centered: bool = True, normalized: bool = True,
    noise: str = "uniform", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Extract a window from each image.

    Args:
        input: Floats of shape [n, height, width, channels].
        size: The height and width of the windows.
        offsets: Floats [n, 2]: the row and the column of each window.
        centered: Offsets are those of the center from the center of the image; else those of the
            first pixel from the first pixel.
        normalized: 1 is the size of the image; if `centered`, its half.
        noise: Content outside of the image: "uniform" (between the least and the largest value of
            the image), "gaussian" (with its mean and standard deviation) or "zero".
        name: Ignored.

    Returns:
        A float32 tensor [n, height of windows, width of windows, channels].

    Raises:
        ValueError: The noise is unknown.
        InvalidArgumentError: A shape does not fit.

    Example:
        >>> import numpy as np
        >>> x = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
        >>> extract_glimpse(x, [2, 2], [[1.0, 1.0]], False, False).numpy()[0, :, :, 0]
        array([[4., 5.],
               [7., 8.]], dtype=float32)
    """
    who = "extract_glimpse"
    x = cast(image_of(input, who, (4,)), "float32")
    at = cast(convert_to_tensor(offsets), "float32")
    sizes = [whole(n) for n in sizes_of(size)]
    if at._rank != 2 or at.shape[1] != 2 or len(sizes) != 2 or min(sizes) < 1:
        raise InvalidArgumentError(
            f"[{who}] offsets must be [n, 2] and size [height, width], each at least 1: got shape "
            f"{tuple(at._shape)} and {sizes}."
        )
    if noise not in ("uniform", "gaussian", "zero"):
        raise ValueError(f"[{who}] noise must be 'uniform', 'gaussian' or 'zero': got {noise!r}.")
    rows, columns = (
        _window(at[:, axis], int(x.shape[axis + 1]), sizes[axis], centered, normalized)
        for axis in (0, 1)
    )
    zero = expand_dims(rows, 2) * 0 + expand_dims(columns, 1) * 0
    owner = reshape(cast(range_(x.shape[0]), "int32"), [-1, 1, 1])
    i, j = (_inside(p, int(x.shape[axis + 1])) for axis, p in enumerate((rows, columns)))
    found = gather_nd(
        x, stack([owner + zero, expand_dims(i, 2) + zero, expand_dims(j, 1) + zero], -1)
    )
    within = (expand_dims(i == rows, 2) & expand_dims(j == columns, 1))[..., None]
    return where(within, found, _noise(x, found, noise))


def _window(offset: Tensor, old: int, new: int, centered: bool, normalized: bool) -> Tensor:
    """Return the indices of the pixels of each window along an axis, int32 [n, size]."""
    begin = offset * float(old) if normalized else offset
    if centered:
        begin = begin / 2.0 if normalized else begin
        begin = begin + old / 2.0 - (new / 2.0 if normalized else 0.0)
    # A cast to integers leaves the fraction out.
    return expand_dims(cast(begin, "int32"), 1) + np.arange(new, dtype=np.int32)


def _inside(places: Tensor, size: int) -> Tensor:
    return math.minimum(math.maximum(places, 0), size - 1)


def _noise(x: Tensor, found: Tensor, noise: str) -> Tensor:
    if noise == "zero":
        return zeros_like(found)
    if noise == "uniform":
        low, high = (f(x, [1, 2, 3], keepdims=True) for f in (math.reduce_min, math.reduce_max))
        return low + (high - low) * random.uniform(found.shape)
    mean, deviation = (f(x, [1, 2, 3], keepdims=True) for f in (math.reduce_mean, math.reduce_std))
    return mean + deviation * random.normal(found.shape)
