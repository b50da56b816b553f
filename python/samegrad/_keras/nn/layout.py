"""Position of the channel axis: the engine has it last."""

from __future__ import annotations

from typing import Any

from keras.src.backend.config import standardize_data_format

import samegrad as tf
from samegrad._tensor.tensor import Tensor


def channels_last(x: Tensor, data_format: str | None) -> tuple[Tensor, bool]:
    """The tensor with its channels last, and whether they came first.

    Raises:
        ValueError: There is no such format.

    Example:
        >>> channels_last(tf.ones((2, 3, 4)), "channels_first")[0].shape
        (2, 4, 3)
    """
    if standardize_data_format(data_format) == "channels_last" or x._rank < 3:
        return x, False
    return tf.transpose(x, [0, *range(2, x._rank), 1]), True


def put_back(x: Tensor, moved: bool) -> Tensor:
    """The tensor with its channels first again, if they were moved.

    Example:
        >>> put_back(tf.ones((2, 4, 3)), True).shape
        (2, 3, 4)
    """
    return tf.transpose(x, [0, x._rank - 1, *range(1, x._rank - 1)]) if moved else x


def each(value: Any, count: int) -> tuple[int, ...]:
    """One number for each of `count` dimensions.

    Example:
        >>> each(2, 3), each([1, 2], 2)
        ((2, 2, 2), (1, 2))
    """
    if isinstance(value, int):
        return (value,) * count
    numbers = tuple(int(number) for number in value)
    return numbers * count if len(numbers) == 1 else numbers
