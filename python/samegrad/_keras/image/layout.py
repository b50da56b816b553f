"""Images as functions want them: a batch with channels last."""

from __future__ import annotations

from typing import Any

from keras.src.backend.config import standardize_data_format

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


class Layout:
    """Layout of the given images, in which results are returned.

    Args:
        data_format: "channels_last", "channels_first", or None: the global one.
        rank: 3: one image; 4: a batch.

    Example:
        >>> layout = Layout("channels_first", 3)
        >>> layout.put_back(layout.batch(tf.ones((3, 4, 5)))).shape
        (3, 4, 5)
    """

    def __init__(self, data_format: str | None, rank: int) -> None:
        self.first = standardize_data_format(data_format) == "channels_first"
        self.single = rank == 3

    def batch(self, x: Tensor) -> Tensor:
        """The images as [n, rows, columns, channels]."""
        x = tf.expand_dims(x, 0) if self.single else x
        return tf.transpose(x, [0, 2, 3, 1]) if self.first else x

    def put_back(self, x: Tensor) -> Tensor:
        """Such images as they were given."""
        x = tf.transpose(x, [0, 3, 1, 2]) if self.first else x
        return tf.squeeze(x, 0) if self.single else x


def images_of(images: Any, data_format: str | None) -> tuple[Tensor, Layout]:
    """Images as [n, rows, columns, channels], and how they were given.

    Raises:
        ValueError: They are neither one image nor a batch.

    Example:
        >>> images_of(tf.ones((3, 4, 5)), "channels_first")[0].shape
        (1, 4, 5, 3)
    """
    x = convert_to_tensor(images)
    if x._rank not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received input with shape: images.shape={x.shape}"
        )
    layout = Layout(data_format, x._rank)
    return layout.batch(x), layout
