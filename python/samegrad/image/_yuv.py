"""Brightness apart from colour: the linear maps of television, YIQ and YUV."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.dtypes import as_dtype
from samegrad._ops.arrays import cast
from samegrad._ops.contractions import tensordot
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image._shape import coloured

# TensorFlow's numbers (tensorflow/python/ops/image_ops_impl.py): a row per channel that goes in.
_TO_YIQ = (
    (0.299, 0.59590059, 0.2115), (0.587, -0.27455667, -0.52273617),
    (0.114, -0.32134392, 0.31119955),
)  # fmt: skip
_FROM_YIQ = (
    (1.0, 1.0, 1.0), (0.95598634, -0.27201283, -1.10674021), (0.6208248, -0.64720424, 1.70423049),
)  # fmt: skip
_TO_YUV = (
    (0.299, -0.14714119, 0.61497538), (0.587, -0.28886916, -0.51496512),
    (0.114, 0.43601035, -0.10001026),
)  # fmt: skip
_FROM_YUV = ((1.0, 1.0, 1.0), (0.0, -0.394642334, 2.03206185), (1.13988303, -0.58062185, 0.0))


def _mapped(images: Any, rows: tuple[tuple[float, ...], ...], who: str) -> Tensor:
    x = coloured(images, who)
    if not as_dtype(x._dtype).is_floating:
        raise TypeError(
            f"[{who}] images must be floats: got dtype {x._dtype}; use "
            "tf.image.convert_image_dtype(images, tf.float32) first."
        )
    return tensordot(x, cast(convert_to_tensor(np.asarray(rows)), x._dtype), 1)


def rgb_to_yiq(images: Any) -> Tensor:
    """Convert RGB images to luma (Y) and two chroma components (I, Q).

    Args:
        images: Floats of shape [..., 3], in [0, 1].

    Returns:
        A tensor of the shape and dtype of `images`.

    Raises:
        TypeError: The images are not floats.
        ValueError: The images do not have 3 channels.

    Example:
        >>> rgb_to_yiq([[[1.0, 1.0, 1.0]]]).numpy().round(3) + 0.0
        array([[[1., 0., 0.]]], dtype=float32)
    """
    return _mapped(images, _TO_YIQ, "rgb_to_yiq")


def yiq_to_rgb(images: Any) -> Tensor:
    """Convert luma and chroma (Y, I, Q) to RGB.

    Args:
        images: Floats of shape [..., 3], Y in [0, 1].

    Returns:
        A tensor of the shape and dtype of `images`.

    Raises:
        TypeError: The images are not floats.
        ValueError: The images do not have 3 channels.

    Example:
        >>> yiq_to_rgb([[[0.5, 0.0, 0.0]]]).numpy()
        array([[[0.5, 0.5, 0.5]]], dtype=float32)
    """
    return _mapped(images, _FROM_YIQ, "yiq_to_rgb")


def rgb_to_yuv(images: Any) -> Tensor:
    """Convert RGB images to luma (Y) and the differences of blue and red from it (U, V).

    Args:
        images: Floats of shape [..., 3], in [0, 1].

    Returns:
        A tensor of the shape and dtype of `images`.

    Raises:
        TypeError: The images are not floats.
        ValueError: The images do not have 3 channels.

    Example:
        >>> rgb_to_yuv([[[0.0, 0.0, 1.0]]]).numpy().round(3)
        array([[[ 0.114,  0.436, -0.1  ]]], dtype=float32)
    """
    return _mapped(images, _TO_YUV, "rgb_to_yuv")


def yuv_to_rgb(images: Any) -> Tensor:
    """Convert luma and the differences of blue and red from it (Y, U, V) to RGB.

    Args:
        images: Floats of shape [..., 3], Y in [0, 1].

    Returns:
        A tensor of the shape and dtype of `images`.

    Raises:
        TypeError: The images are not floats.
        ValueError: The images do not have 3 channels.

    Example:
        >>> yuv_to_rgb([[[0.5, 0.0, 0.0]]]).numpy()
        array([[[0.5, 0.5, 0.5]]], dtype=float32)
    """
    return _mapped(images, _FROM_YUV, "yuv_to_rgb")
