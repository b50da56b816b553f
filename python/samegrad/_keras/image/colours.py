"""keras.backend.image: grey, and hue, saturation and value."""

from __future__ import annotations

from typing import Any

from keras.src.backend.common.dtypes import result_type
from keras.src.backend.common.variables import is_float_dtype

import samegrad as tf
from samegrad import image
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.image.layout import Layout, images_of
from samegrad._tensor.tensor import Tensor


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> Tensor:
    """0.2989 red + 0.587 green + 0.114 blue; one channel stays as it is.

    Raises:
        ValueError: The values are not images of 1 or 3 channels.
    """
    x, layout = images_of(images, data_format)
    if x.shape[-1] not in (1, 3):
        raise ValueError(
            "Invalid channel size: expected 3 (RGB) or 1 (Grayscale). "
            f"Received input with shape: images.shape={convert_to_tensor(images).shape}"
        )
    if x.shape[-1] == 1:
        return tf.identity(convert_to_tensor(images))
    kind = x._dtype
    value = tf.cast(x, result_type(kind, float))
    weights = convert_to_tensor([0.2989, 0.5870, 0.1140], value._dtype)
    grey = tf.reduce_sum(value * weights, axis=-1, keepdims=True)
    return layout.put_back(tf.cast(grey, kind))


def _floats(images: Any, data_format: str | None) -> tuple[Tensor, Layout]:
    x, layout = images_of(images, data_format)
    if not is_float_dtype(x._dtype):
        raise ValueError(
            f"Invalid images dtype: expected float dtype. Received: images.dtype={x._dtype}"
        )
    return x, layout


def rgb_to_hsv(images: Any, data_format: str | None = None) -> Tensor:
    """Hue, saturation and value, each in [0, 1], of red, green and blue in [0, 1].

    Raises:
        ValueError: The values are not images of floats.
    """
    x, layout = _floats(images, data_format)
    return layout.put_back(image.rgb_to_hsv(x))


def hsv_to_rgb(images: Any, data_format: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value; see `rgb_to_hsv`.

    Raises:
        ValueError: The values are not images of floats.
    """
    x, layout = _floats(images, data_format)
    return layout.put_back(image.hsv_to_rgb(x))
