"""keras.backend.image: blurring, and edges."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf
from samegrad import nn
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.image.layout import images_of
from samegrad._tensor.tensor import Tensor


def gaussian_blur(
    images: Any,
    kernel_size: Any = (3, 3),
    sigma: Any = (1.0, 1.0),
    data_format: str | None = None,
) -> Tensor:
    """Each pixel the mean of those around it, weighed by a normal distribution.

    Args:
        images: One or a batch.
        kernel_size: Columns and rows of the window, which have values.
        sigma: Its deviations.
        data_format: Position of the channel axis.

    Raises:
        ValueError: The values are not images.
    """
    x, layout = images_of(images, data_format)
    columns, rows = (int(size) for size in kernel_size)
    deviations = convert_to_tensor(sigma, x._dtype)
    across, down = _bell(columns, deviations[0]), _bell(rows, deviations[1])
    kernel = tf.expand_dims(down, -1) * across
    channels = int(x.shape[-1])
    kernel = tf.tile(kernel[:, :, None, None], (1, 1, channels, 1))
    return layout.put_back(nn.depthwise_conv2d(x, kernel, 1, "SAME"))


def _bell(size: int, sigma: Tensor) -> Tensor:
    places = tf.cast(tf.range(size), sigma._dtype) - (size - 1) / 2
    weights = tf.exp(tf.square(places / sigma) * -0.5)
    return weights / tf.reduce_sum(weights)


def smoothed(images: Tensor, sigma: Tensor, size: int) -> Tensor:
    """Images [n, rows, columns, channels], blurred as far as three deviations.

    Args:
        images: Floats.
        sigma: The deviation; may be traced.
        size: An odd number, of what the window is at most.

    Example:
        >>> float(tf.reduce_sum(smoothed(tf.ones((1, 3, 3, 1)), tf.constant(0.1), 3)))
        9.0
    """
    places = tf.cast(tf.range(size), sigma._dtype) - (size - 1) / 2
    deviation = tf.maximum(sigma, convert_to_tensor(1e-3, sigma._dtype))
    inside = tf.abs(places) <= tf.floor(tf.floor(deviation * 6.0) * 0.5)
    weights = tf.exp(tf.square(places / deviation) * -0.5)
    weights = tf.where(inside, weights, tf.zeros_like(weights))
    weights = weights / tf.reduce_sum(weights)
    channels = int(images.shape[-1])
    for shape in ((size, 1, 1, 1), (1, size, 1, 1)):
        kernel = tf.tile(tf.reshape(weights, shape), (1, 1, channels, 1))
        images = nn.depthwise_conv2d(images, kernel, 1, "SAME")
    return images


# How much brighter it becomes downwards, and to the right.
_SOBEL = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]], "float64")


def sobel_edges(images: Any, data_format: str | None = None) -> Tensor:
    """Compute the vertical and horizontal gradients of images (Sobel's filter).

    Args:
        images: A batch.
        data_format: Position of the channel axis.

    Returns:
        The images' shape and an axis of 2.
    """
    x, layout = images_of(images, data_format)
    channels = int(x.shape[-1])
    for axis in (1, 2):
        places = np.pad(np.arange(int(x.shape[axis])), 1, mode="reflect")
        x = tf.gather(x, places, axis=axis)
    kernel = convert_to_tensor(np.stack([_SOBEL, _SOBEL.T], -1)[:, :, None, :], x._dtype)
    edges = nn.depthwise_conv2d(x, tf.tile(kernel, (1, 1, channels, 1)), 1, "VALID")
    edges = tf.reshape(edges, (*edges.shape[:-1], channels, 2))
    return tf.stack([layout.put_back(one) for one in tf.unstack(edges, axis=-1)], axis=-1)
