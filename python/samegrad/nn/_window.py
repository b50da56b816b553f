"""Arguments of operations with a window that slides over images.

Channels come last. A signal has one dimension of space (columns), an image two (rows, columns), a
volume three (depth, rows, columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from samegrad._base.shown import shown
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

Sizes: TypeAlias = "int | Sequence[int]"
Padding: TypeAlias = "str | Sequence[Sequence[int]]"

_NAMES = {1: ("columns",), 2: ("rows", "columns"), 3: ("depth", "rows", "columns")}
_IMAGES = {1: "signals", 2: "images", 3: "volumes"}
_FORMATS = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
_WORDS = {1: "one", 2: "two", 3: "three"}


def sizes_of(who: str, name: str, value: Sizes, dimensions: int) -> tuple[int, ...]:
    """Return the positive numbers that an argument gives, one per dimension.

    They are given as one for all, one for each, or those with a 1 before and behind (for the images
    and the channels).

    Raises:
        ValueError: They are not positive, or not as many.

    Example:
        >>> sizes_of("conv3d", "strides", 2, 3), sizes_of("conv3d", "strides", [1, 1, 2, 3, 1], 3)
        ((2, 2, 2), (1, 2, 3))
    """
    sizes = [value] * dimensions if isinstance(value, int) else list(value)
    if len(sizes) == dimensions + 2 and sizes[0] == sizes[-1] == 1:
        sizes = sizes[1:-1]
    if len(sizes) == 1:
        sizes *= dimensions
    if len(sizes) != dimensions or any(not isinstance(size, int) or size < 1 for size in sizes):
        count = "a positive integer" if dimensions == 1 else (
            f"one or {_WORDS[dimensions]} positive integers ({', '.join(_NAMES[dimensions])})"
        )  # fmt: skip
        raise ValueError(f"[{who}] {name} must be {count}: got {shown(value)}.")
    return tuple(sizes)


def rows_and_columns(who: str, name: str, value: Sizes) -> tuple[int, int]:
    """Return the two positive numbers that an argument gives: one for both, two, or four (NHWC).

    Raises:
        ValueError: They are not positive, or not as many.

    Example:
        >>> rows_and_columns("conv2d", "strides", 2), rows_and_columns("conv2d", "strides", (1, 3))
        ((2, 2), (1, 3))
    """
    rows, columns = sizes_of(who, name, value, 2)
    return rows, columns


def check_channels_last(who: str, data_format: str | None, dimensions: int = 2) -> None:
    """Check that channels are last, the only supported order.

    Raises:
        ValueError: Another order is asked for.

    Example:
        >>> check_channels_last("Conv2D", "channels_last")
    """
    if data_format not in (None, "channels_last", _FORMATS[dimensions]):
        order = [0, *range(2, dimensions + 2), 1]
        raise ValueError(
            f"[{who}] {_IMAGES[dimensions]} must have their channels last: got data_format="
            f"{data_format!r}; transpose them with samegrad.transpose({_IMAGES[dimensions]}, "
            f"{order})."
        )


def images_of(who: str, value: TensorLike, dimensions: int = 2) -> Tensor:
    """Return the value as a tensor, checked to have the axes of images (or signals, or volumes).

    Example:
        >>> images_of("conv2d", [[[[1.0]]]])._shape
        (1, 1, 1, 1)
    """
    x = convert_to_tensor(value)
    if x._rank != dimensions + 2:
        kind = _IMAGES[dimensions]
        raise ValueError(
            f"[{who}] {kind} must be [n, {', '.join(_NAMES[dimensions])}, channels]: got shape "
            f"{x._shape}; add the missing axes, e.g. {kind}[..., None] for one channel."
        )
    return x


def check_filters(who: str, filters: Tensor, dimensions: int, channels: str) -> None:
    """Check the rank of filters; `channels` names their last two axes.

    Example:
        >>> check_filters("conv2d", convert_to_tensor([[[[1.0]]]]), 2, "channels, results")
    """
    if filters._rank != dimensions + 2:
        raise ValueError(
            f"[{who}] filters must be [{', '.join(_NAMES[dimensions])}, {channels}]: got shape "
            f"{filters._shape}."
        )


def space_of(x: Tensor) -> tuple[int, ...]:
    """Return the sizes of images without their number and their channels.

    Example:
        >>> space_of(convert_to_tensor([[[[1.0], [2.0]]]]))
        (1, 2)
    """
    return tuple(int(size) for size in x.shape[1:-1])


def window_padding(
    who: str,
    padding: Padding,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return the padding of images, before and after each dimension: top, bottom, left, right.

    Args:
        who: Whose argument it is, for messages.
        padding: "valid" (none), "same" (as many windows as steps fit into the image; an odd
            number puts one more at the bottom and right, as in TensorFlow), or pairs such as
            [[0, 0], [top, bottom], [left, right], [0, 0]].
        sizes: Of the image: rows and columns, or as many dimensions as there are.
        window: Of the window.
        strides: Its steps.
        dilations: From tap to tap of the window; default 1.

    Returns:
        Two numbers per dimension.

    Raises:
        ValueError: There is no such padding, or the window is larger than the image.

    Example:
        >>> window_padding("conv2d", "same", (5, 5), (3, 3), (2, 2))
        (1, 1, 1, 1)
    """
    steps = dilations or (1,) * len(window)
    extent = tuple((w - 1) * step + 1 for w, step in zip(window, steps, strict=True))
    if not isinstance(padding, str):
        return _explicit_padding(who, padding, len(window))
    kind = padding.lower()
    if kind not in ("valid", "same"):
        raise ValueError(f"[{who}] padding must be 'valid' or 'same': got {shown(padding)}.")
    if kind == "valid":
        if any(w > s for w, s in zip(extent, sizes, strict=True)):
            raise ValueError(
                f"[{who}] the window must not be larger than the image: got window {extent} and "
                f"image {tuple(sizes)}; use a smaller window or padding='same'."
            )
        return (0, 0) * len(window)
    pads: list[int] = []
    for size, width, stride in zip(sizes, extent, strides, strict=True):
        total = max((-(-size // stride) - 1) * stride + width - size, 0)
        pads += [total // 2, total - total // 2]
    return tuple(pads)


def window_attrs(
    who: str,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sizes,
    padding: Padding,
    dilations: Sizes | None,
) -> dict[str, Any]:
    """Return the attributes of a row with a window, from arguments as users give them.

    Example:
        >>> window_attrs("conv2d", (5, 5), (3, 3), 2, "VALID", None)
        {'strides': (2, 2), 'padding': (0, 0, 0, 0), 'dilations': (1, 1)}
    """
    steps = sizes_of(who, "strides", strides, len(window))
    apart = sizes_of(who, "dilations", 1 if dilations is None else dilations, len(window))
    pads = window_padding(who, padding, sizes, window, steps, apart)
    return {"strides": steps, "padding": pads, "dilations": apart}


def _explicit_padding(
    who: str, padding: Sequence[Sequence[int]], dimensions: int
) -> tuple[int, ...]:
    pads = [tuple(pair) for pair in padding]
    if (
        len(pads) != dimensions + 2
        or any(len(pair) != 2 for pair in pads)
        or pads[0] != (0, 0)
        or pads[-1] != (0, 0)
    ):
        pairs = {
            1: "[left, right]",
            2: "[top, bottom], [left, right]",
            3: "[front, back], [top, bottom], [left, right]",
        }
        raise ValueError(
            f"[{who}] explicit padding must be [[0, 0], {pairs[dimensions]}, [0, 0]]: got "
            f"{shown(padding)}."
        )
    return tuple(size for pair in pads[1:-1] for size in pair)
