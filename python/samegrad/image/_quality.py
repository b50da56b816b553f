"""Similarity, gradients and edges of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad import math
from samegrad._ops.arrays import cast, concat, stack
from samegrad._ops.creation import zeros_like
from samegrad._ops.elementary import exp
from samegrad._ops.padding import pad
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image._convert import convert_image_dtype
from samegrad.image._shape import image_of

_MSSSIM_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def _two(img1: Any, img2: Any, who: str, max_val: Any) -> tuple[Tensor, Tensor, float]:
    """Return both as floats, and the largest value as one of theirs."""
    a, b = convert_to_tensor(img1), convert_to_tensor(img2)
    same = a._rank == b._rank >= 3 and all(
        x == y or 1 in (x, y) for x, y in zip(a.shape[:-3], b.shape[:-3], strict=True)
    )
    if not same or a.shape[-3:] != b.shape[-3:]:
        raise ValueError(
            f"[{who}] the images must have one shape [..., rows, columns, channels]: got "
            f"{tuple(a._shape)} and {tuple(b._shape)}."
        )
    if a._dtype != b._dtype:
        raise TypeError(f"[{who}] the images must have one dtype: got {a._dtype} and {b._dtype}.")
    top = float(max_val)
    if "int" in a._dtype:
        top /= float(np.iinfo(a._dtype).max)
    return convert_image_dtype(a, "float32"), convert_image_dtype(b, "float32"), top


def _weights(size: int, sigma: float) -> list[float]:
    """Return a Gaussian window along one axis; that of two axes is the product of two."""
    places = np.arange(size) - (size - 1) / 2.0
    weights = exp(-0.5 * (places / sigma) ** 2)
    found: list[float] = (weights / np.cumsum(weights)[-1]).tolist()
    return found


def _filtered(x: Tensor, axis: int, weights: Sequence[float]) -> Tensor:
    """Return the weighted sums of neighbours along the rows (-3) or columns (-2) of images."""
    count = int(x.shape[axis]) - len(weights) + 1
    behind = (slice(None),) * (-1 - axis)
    keys: list[tuple[Any, ...]] = [(..., slice(i, i + count), *behind) for i in range(len(weights))]
    parts = [x[key] * w for key, w in zip(keys, weights, strict=True) if w]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _ssim_parts(
    x: Tensor, y: Tensor, top: float, options: tuple[int, float, float, float]
) -> tuple[Tensor, Tensor]:
    """Return SSIM and its part of contrast and structure, for each image and channel."""
    size, sigma, k1, k2 = options
    c1, c2 = k1 * top * (k1 * top), k2 * top * (k2 * top)
    weights = _weights(size, sigma)

    def averaged(z: Tensor) -> Tensor:
        return _filtered(_filtered(z, -3, weights), -2, weights)

    mean_x, mean_y = averaged(x), averaged(y)
    product = mean_x * mean_y * 2.0
    squares = math.square(mean_x) + math.square(mean_y)
    luminance = (product + c1) / (squares + c1)
    both = averaged(x * y) * 2.0
    own = averaged(math.square(x) + math.square(y))
    structure = (both - product + c2) / (own - squares + c2)
    whole, part = (math.reduce_mean(p, axis=[-3, -2]) for p in (luminance * structure, structure))
    return whole, part


def _check_window(who: str, x: Tensor, size: int) -> None:
    if int(x.shape[-3]) < size or int(x.shape[-2]) < size:
        raise ValueError(
            f"[{who}] images must be as large as the filter: got {x.shape[-3]} x {x.shape[-2]} "
            f"for filter_size={size}; pass a smaller one."
        )


def ssim(
    img1: Any, img2: Any, max_val: Any, filter_size: int = 11, filter_sigma: float = 1.5,
    k1: float = 0.01, k2: float = 0.03, return_index_map: bool = False,
) -> Tensor:  # fmt: skip
    """Compute the structural similarity of images, which is 1 for equal ones.

    Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to
    structural similarity" (2004).

    Args:
        img1: A tensor of shape [..., height, width, channels].
        img2: A tensor of the same shape.
        max_val: The difference between the largest and the smallest possible value: 1.0 or 255.
        filter_size: The size of the Gaussian window; images must be at least as large.
        filter_sigma: The deviation of the Gaussian window.
        k1: The factor of the constant that stabilizes the means.
        k2: The factor of the constant that stabilizes the variances.
        return_index_map: Must be False.

    Returns:
        A tensor [...], one value for each image.

    Raises:
        ValueError: The images differ in shape or are smaller than the window.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> x = tf.constant(np.full((16, 16, 1), 0.5, np.float32))
        >>> float(ssim(x, x, 1.0))
        1.0
    """
    if return_index_map:
        raise NotImplementedError(
            "[ssim] return_index_map must be False: got True; leave it out for the mean."
        )
    x, y, top = _two(img1, img2, "ssim", max_val)
    _check_window("ssim", x, filter_size)
    whole, _ = _ssim_parts(x, y, top, (filter_size, filter_sigma, k1, k2))
    return math.reduce_mean(whole, axis=[-1])


def _halved(z: Tensor) -> Tensor:
    """Return the means of 2 x 2 pixels; an odd row or column is repeated first."""
    odd = [int(n) % 2 for n in z.shape[-3:-1]]
    if any(odd):
        frame = [[0, 0]] * (z._rank - 3) + [[0, odd[0]], [0, odd[1]], [0, 0]]
        z = pad(z, frame, mode="SYMMETRIC")
    rows = z[..., 0::2, :, :] + z[..., 1::2, :, :]
    return (rows[..., 0::2, :] + rows[..., 1::2, :]) * 0.25


def ssim_multiscale(
    img1: Any, img2: Any, max_val: Any, power_factors: Sequence[float] = _MSSSIM_WEIGHTS,
    filter_size: int = 11, filter_sigma: float = 1.5, k1: float = 0.01, k2: float = 0.03,
) -> Tensor:  # fmt: skip
    """Compute the multiscale structural similarity: a weighted product of `ssim` over scales.

    Wang, Simoncelli and Bovik, "Multiscale structural similarity for image quality assessment"
    (2003).

    Args:
        img1: A tensor of shape [..., height, width, channels].
        img2: A tensor of the same shape.
        max_val: As in `ssim`.
        power_factors: The weight of each scale, the finest first; each scale halves the images.
        filter_size: As in `ssim`; the smallest scale must be at least as large.
        filter_sigma: As in `ssim`.
        k1: As in `ssim`.
        k2: As in `ssim`.

    Returns:
        A tensor [...], one value for each image.

    Raises:
        ValueError: The images differ in shape, or the smallest scale is smaller than the window.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> x = tf.constant(np.full((64, 64, 1), 0.5, np.float32))
        >>> round(float(ssim_multiscale(x, x, 1.0, [0.5, 0.5])), 4)
        1.0
    """
    x, y, top = _two(img1, img2, "ssim_multiscale", max_val)
    parts = []
    for scale in range(len(power_factors)):
        if scale:
            x, y = _halved(x), _halved(y)
        _check_window("ssim_multiscale", x, filter_size)
        whole, structure = _ssim_parts(x, y, top, (filter_size, filter_sigma, k1, k2))
        last = scale == len(power_factors) - 1
        parts.append(math.maximum(whole if last else structure, 0.0))
    powered = [math.pow(part, float(w)) for part, w in zip(parts, power_factors, strict=True)]
    return math.reduce_mean(math.reduce_prod(stack(powered, -1), axis=[-1]), axis=[-1])


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """Compute the differences of each pixel to the one below and to the one on the right.

    Args:
        image: A tensor of shape [n, height, width, channels].

    Returns:
        A pair (dy, dx) of tensors of the shape and dtype of `image`, 0 in the last row or column.

    Example:
        >>> down, right = image_gradients([[[[1.0], [3.0]], [[4.0], [5.0]]]])
        >>> down.numpy().ravel(), right.numpy().ravel()
        (array([3., 2., 0., 0.], dtype=float32), array([2., 0., 1., 0.], dtype=float32))
    """
    x = image_of(image, "image_gradients", (4,))
    down = concat([x[:, 1:] - x[:, :-1], zeros_like(x[:, :1])], 1)
    right = concat([x[:, :, 1:] - x[:, :, :-1], zeros_like(x[:, :, :1])], 2)
    return down, right


def sobel_edges(image: Any) -> Tensor:
    """Apply Sobel's filters along rows and columns; pixels beyond the edge are reflected.

    Args:
        image: A tensor of shape [n, height, width, channels].

    Returns:
        A tensor [n, height, width, channels, 2]: the vertical and the horizontal derivative.

    Example:
        >>> import numpy as np
        >>> sobel_edges(np.zeros((1, 4, 4, 3), np.float32)).shape
        (1, 4, 4, 3, 2)
    """
    x = image_of(image, "sobel_edges", (4,))
    x = x if "float" in x._dtype else cast(x, "float32")
    framed = pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    smooth, slope = (1.0, 2.0, 1.0), (-1.0, 0.0, 1.0)
    down = _filtered(_filtered(framed, -3, slope), -2, smooth)
    across = _filtered(_filtered(framed, -3, smooth), -2, slope)
    return stack([down, across], -1)


__all__ = ["image_gradients", "sobel_edges", "ssim", "ssim_multiscale"]
