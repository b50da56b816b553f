"""Arguments of operations with a window that slides over images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from samegrad._shown import shown

Sizes: TypeAlias = "int | Sequence[int]"
Padding: TypeAlias = "str | Sequence[Sequence[int]]"


def rows_and_columns(who: str, name: str, value: Sizes) -> tuple[int, int]:
    """The two positive numbers that an argument gives: one for both, two, or four (NHWC).

    Raises:
        ValueError: They are not positive, or not as many.

    Example:
        >>> rows_and_columns("conv2d", "strides", 2), rows_and_columns("conv2d", "strides", (1, 3))
        ((2, 2), (1, 3))
    """
    sizes = [value] * 2 if isinstance(value, int) else list(value)
    if len(sizes) == 4 and sizes[0] == sizes[3] == 1:
        sizes = sizes[1:3]
    if len(sizes) == 1:
        sizes *= 2
    if len(sizes) != 2 or any(not isinstance(size, int) or size < 1 for size in sizes):
        raise ValueError(
            f"[{who}] {name} must be one or two positive integers (rows, columns): got "
            f"{shown(value)}."
        )
    return sizes[0], sizes[1]


def check_channels_last(who: str, data_format: str | None) -> None:
    """Checks that channels come last, the only order there is.

    Raises:
        ValueError: Another order is asked for.

    Example:
        >>> check_channels_last("Conv2D", "channels_last")
    """
    if data_format not in (None, "channels_last", "NHWC"):
        raise ValueError(
            f"[{who}] images must have their channels last: got data_format={data_format!r}; "
            "transpose them with samegrad.transpose(images, [0, 2, 3, 1])."
        )


def window_padding(
    who: str,
    padding: Padding,
    sizes: tuple[int, int],
    window: tuple[int, int],
    strides: tuple[int, int],
) -> tuple[int, int, int, int]:
    """Rows and columns to add around an image: top, bottom, left, right.

    Args:
        who: Whose argument it is, for messages.
        padding: "valid" (none), "same" (as many windows as steps fit into the image; an odd
            number puts one more at the bottom and right, as in TensorFlow), or
            [[0, 0], [top, bottom], [left, right], [0, 0]].
        sizes: Rows and columns of the image.
        window: Rows and columns of the window.
        strides: Its steps.

    Returns:
        The four numbers.

    Raises:
        ValueError: There is no such padding, or the window is larger than the image.

    Example:
        >>> window_padding("conv2d", "same", (5, 5), (3, 3), (2, 2))
        (1, 1, 1, 1)
    """
    if not isinstance(padding, str):
        return _explicit_padding(who, padding)
    kind = padding.lower()
    if kind not in ("valid", "same"):
        raise ValueError(f"[{who}] padding must be 'valid' or 'same': got {shown(padding)}.")
    if kind == "valid":
        if any(w > s for w, s in zip(window, sizes, strict=True)):
            raise ValueError(
                f"[{who}] the window must not be larger than the image: got window {window} and "
                f"image {sizes}; use a smaller window or padding='same'."
            )
        return 0, 0, 0, 0
    pads = []
    for size, width, stride in zip(sizes, window, strides, strict=True):
        steps = -(-size // stride)
        total = max((steps - 1) * stride + width - size, 0)
        pads += [total // 2, total - total // 2]
    return pads[0], pads[1], pads[2], pads[3]


def _explicit_padding(who: str, padding: Sequence[Sequence[int]]) -> tuple[int, int, int, int]:
    pads = [tuple(pair) for pair in padding]
    if (
        len(pads) != 4
        or any(len(pair) != 2 for pair in pads)
        or any(pads[::3][i] != (0, 0) for i in (0, 1))
    ):
        raise ValueError(
            f"[{who}] explicit padding must be [[0, 0], [top, bottom], [left, right], [0, 0]]: "
            f"got {shown(padding)}."
        )
    return (*pads[1], *pads[2])  # type: ignore[return-value]
