"""Checks of the shapes of images."""

from __future__ import annotations

from typing import Any

from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor


def image_of(value: Any, who: str, ranks: tuple[int, ...] = (3, 4)) -> Tensor:
    """Return the images as a tensor.

    Raises:
        ValueError: They have other axes.

    Example:
        >>> image_of([[[0.0]]], "flip_left_right").shape
        (1, 1, 1)
    """
    x = convert_to_tensor(value)
    if x._rank not in ranks:
        raise ValueError(
            f"[{who}] images must be [rows, columns, channels]"
            f"{' or [n, rows, columns, channels]' if 4 in ranks else ''}: got shape {x._shape}."
        )
    return x


def size_of(value: Any, who: str, what: str, least: int = 0) -> int:
    """Return a number of pixels, an integer.

    Raises:
        ValueError: The number is below `least`.
    """
    number = whole(value, f"{what} is an integer")
    if number < least:
        raise ValueError(f"[{who}] {what} must be at least {least}: got {number}.")
    return number


def coloured(value: Any, who: str) -> Tensor:
    """Return images with red, green and blue along the last axis.

    Raises:
        ValueError: They have not.
    """
    x = convert_to_tensor(value)
    if not x._rank or x.shape[-1] != 3:
        raise ValueError(
            f"[{who}] images must have 3 channels (red, green, blue): got shape {x._shape}."
        )
    return x
