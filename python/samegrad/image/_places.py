"""Images turned, cut and framed."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import random
from samegrad._base.shown import shown
from samegrad._core import tracing
from samegrad._ops.arrays import cast, reshape, reverse, where
from samegrad._ops.arrays import transpose as permuted
from samegrad._ops.gather import gather
from samegrad._ops.padding import pad
from samegrad._tensor.sizes import has_no_value, sizes_of, whole
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.image._resize import resize
from samegrad.image._shape import image_of, size_of
from samegrad.math import minimum


def flip_left_right(image: Any) -> Tensor:
    """Flip images left to right.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> flip_left_right([[[1], [2]]]).numpy().ravel()
        array([2, 1], dtype=int32)
    """
    return reverse(image_of(image, "flip_left_right"), axis=[-2])


def flip_up_down(image: Any) -> Tensor:
    """Flip images upside down.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> flip_up_down([[[1]], [[2]]]).numpy().ravel()
        array([2, 1], dtype=int32)
    """
    return reverse(image_of(image, "flip_up_down"), axis=[-3])


def transpose(image: Any, name: str | None = None) -> Tensor:
    """Exchange rows and columns of images.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        name: Ignored.

    Returns:
        A tensor of shape [width, height, channels] or [n, width, height, channels].

    Example:
        >>> transpose([[[1], [2]]]).shape
        (2, 1, 1)
    """
    x = image_of(image, "transpose")
    return permuted(x, [1, 0, 2] if x._rank == 3 else [0, 2, 1, 3])


def rot90(image: Any, k: int = 1, name: str | None = None) -> Tensor:
    """Rotate images counter-clockwise by k quarter turns.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        k: The number of quarter turns, an integer.
        name: Ignored.

    Returns:
        A tensor in the dtype of `image`; odd turns exchange height and width.

    Example:
        >>> rot90([[[1], [2]]]).numpy()[..., 0]
        array([[2],
               [1]], dtype=int32)
    """
    x, quarters = image_of(image, "rot90"), whole(k, "k is an integer") % 4
    if quarters == 1:
        return flip_up_down(transpose(x))
    if quarters == 2:
        return reverse(x, axis=[-3, -2])
    return transpose(flip_up_down(x)) if quarters == 3 else x


def _by_chance(image: Any, who: str, axis: int, seed: int | None) -> Tensor:
    x = image_of(image, who)
    count = [] if x._rank == 3 else [x.shape[0]]
    drawn = random.uniform(count, seed=seed)
    if not count and not tracing():
        return reverse(x, axis=[axis]) if float(drawn) < 0.5 else x
    draws = drawn < 0.5
    if count:
        draws = reshape(draws, [-1, 1, 1, 1])
    return where(draws, reverse(x, axis=[axis]), x)


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Flip each image left to right with probability 1/2.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        seed: The seed of the op, as in `tf.random.uniform`.

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> random_flip_left_right([[[1], [1]]]).numpy().ravel()
        array([1, 1], dtype=int32)
    """
    return _by_chance(image, "random_flip_left_right", -2, seed)


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Flip each image upside down with probability 1/2.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        seed: The seed of the op, as in `tf.random.uniform`.

    Returns:
        A tensor of the shape and dtype of `image`.

    Example:
        >>> random_flip_up_down([[[1], [2]]]).numpy().ravel()
        array([1, 2], dtype=int32)
    """
    return _by_chance(image, "random_flip_up_down", -3, seed)


def crop_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Crop images to a box.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        offset_height: The first row of the box.
        offset_width: The first column of the box.
        target_height: The height of the box, at least 1.
        target_width: The width of the box, at least 1.

    Returns:
        A tensor [..., target_height, target_width, channels], in the dtype of `image`.

    Raises:
        ValueError: The box is not inside of the image.

    Example:
        >>> crop_to_bounding_box([[[1], [2], [3]]], 0, 1, 1, 2).numpy().ravel()
        array([2, 3], dtype=int32)
    """
    who = "crop_to_bounding_box"
    x = image_of(image, who)
    top, left = (
        offset if has_no_value(offset) else size_of(offset, who, name)
        for offset, name in ((offset_height, "offset_height"), (offset_width, "offset_width"))
    )
    rows = size_of(target_height, who, "target_height", 1)
    columns = size_of(target_width, who, "target_width", 1)
    within = ((top, rows, x.shape[-3]), (left, columns, x.shape[-2]))
    if any(not has_no_value(first) and first + count > most for first, count, most in within):
        raise ValueError(
            f"[{who}] the part must lie in the image: got rows {top} to {top + rows} and columns "
            f"{left} to {left + columns} of {x.shape[-3]} x {x.shape[-2]}."
        )
    return x[..., top : top + rows, left : left + columns, :]


def pad_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Tensor:
    """Pad images with zeros to a larger size.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        offset_height: The number of rows of zeros above.
        offset_width: The number of columns of zeros on the left.
        target_height: The height of the result.
        target_width: The width of the result.

    Returns:
        A tensor [..., target_height, target_width, channels], in the dtype of `image`.

    Raises:
        ValueError: The image does not fit into the result.

    Example:
        >>> pad_to_bounding_box([[[1], [2]]], 0, 1, 1, 4).numpy().ravel()
        array([0, 1, 2, 0], dtype=int32)
    """
    who = "pad_to_bounding_box"
    x = image_of(image, who)
    top, left = (
        size_of(offset_height, who, "offset_height"),
        size_of(offset_width, who, "offset_width"),
    )
    below = size_of(target_height, who, "target_height") - top - x.shape[-3]
    right = size_of(target_width, who, "target_width") - left - x.shape[-2]
    if below < 0 or right < 0:
        raise ValueError(
            f"[{who}] the image must fit in: got {x.shape[-3]} x {x.shape[-2]} at "
            f"({top}, {left}) in {target_height} x {target_width}."
        )
    return pad(x, [(0, 0)] * (x._rank - 3) + [(top, below), (left, right), (0, 0)])


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """Crop the central part of images.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        central_fraction: The fraction of the height and of the width, in (0, 1].

    Returns:
        A tensor [..., new height, new width, channels], in the dtype of `image`.

    Raises:
        ValueError: The fraction is not in (0, 1].

    Example:
        >>> central_crop([[[1], [2], [3], [4]]] * 4, 0.5).numpy()[0, :, 0]
        array([2, 3], dtype=int32)
    """
    who, share = "central_crop", float(central_fraction)
    x = image_of(image, who)
    if not 0 < share <= 1:
        raise ValueError(f"[{who}] central_fraction must lie in (0, 1]: got {central_fraction}.")
    rows, columns = int(x.shape[-3]), int(x.shape[-2])
    top, left = int((rows - rows * share) / 2), int((columns - columns * share) / 2)
    return x[..., top : rows - top, left : columns - left, :]


def resize_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Tensor:
    """Crop images centrally, or pad them with zeros, to a size.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        target_height: The height of the result, at least 1.
        target_width: The width of the result, at least 1.

    Returns:
        A tensor [..., target_height, target_width, channels], in the dtype of `image`.

    Example:
        >>> resize_with_crop_or_pad([[[1], [2], [3]]], 1, 5).numpy().ravel()
        array([0, 1, 2, 3, 0], dtype=int32)
    """
    who = "resize_with_crop_or_pad"
    x = image_of(image, who)
    rows = size_of(target_height, who, "target_height", 1)
    columns = size_of(target_width, who, "target_width", 1)
    old = int(x.shape[-3]), int(x.shape[-2])
    if 0 in old:
        raise ValueError(f"[{who}] images must have pixels: got {old[0]} x {old[1]}.")
    top, left = max((old[0] - rows) // 2, 0), max((old[1] - columns) // 2, 0)
    cut = crop_to_bounding_box(x, top, left, min(rows, old[0]), min(columns, old[1]))
    return pad_to_bounding_box(
        cut, max((rows - old[0]) // 2, 0), max((columns - old[1]) // 2, 0), rows, columns
    )


def resize_with_pad(
    image: Any, target_height: int, target_width: int, method: str = "bilinear",
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resize images with their aspect ratio kept, and pad them with zeros to a size.

    Args:
        image: A tensor of shape [height, width, channels] or [n, height, width, channels].
        target_height: The height of the result, at least 1.
        target_width: The width of the result, at least 1.
        method: The method of `resize`.
        antialias: As in `resize`.

    Returns:
        A tensor [..., target_height, target_width, channels].

    Example:
        >>> resize_with_pad([[[1.0], [1.0]]], 2, 2).numpy()[..., 0]
        array([[1., 1.],
               [0., 0.]], dtype=float32)
    """
    who = "resize_with_pad"
    x = image_of(image, who)
    target = np.array(
        [
            size_of(target_height, who, "target_height", 1),
            size_of(target_width, who, "target_width", 1),
        ],
        np.float32,
    )
    old = np.array([x.shape[-3], x.shape[-2]], np.float32)
    if not old.all():
        raise ValueError(f"[{who}] images must have pixels: got shape {x._shape}.")
    wanted = old / (old / target).max()  # in float32, as in TensorFlow
    new = np.floor(wanted).astype(int)
    top, left = np.maximum(np.floor((target - wanted) / 2), 0).astype(int)
    made = resize(x, (int(max(new[0], 1)), int(max(new[1], 1))), method, antialias=antialias)
    return pad_to_bounding_box(made, int(top), int(left), int(target[0]), int(target[1]))


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Crop a tensor at a random position.

    Args:
        value: A tensor of any dtype.
        size: The size of the crop along each axis.
        seed: The seed of the op, as in `tf.random.uniform`.
        name: Ignored.

    Returns:
        A tensor of the shape `size`, in the dtype of `value`.

    Raises:
        ValueError: The crop is larger than the tensor, or has other axes.

    Example:
        >>> random_crop([[1, 2, 3]], (1, 2)).shape
        (1, 2)
    """
    x = convert_to_tensor(value)
    sizes = [int(n) for n in sizes_of(size)]
    if len(sizes) != x._rank or any(n < 0 or n > m for n, m in zip(sizes, x._shape, strict=True)):
        raise ValueError(
            f"[random_crop] size must have an entry for each axis, no larger than it: got "
            f"{shown(sizes)} for shape {x._shape}."
        )
    room = np.array([m - n for n, m in zip(sizes, x._shape, strict=True)], np.float32)
    draws = random.uniform([x._rank], seed=seed) * (room + 1.0)
    begins = cast(minimum(draws, convert_to_tensor(room)), "int32")
    for axis, count in enumerate(sizes):
        if count != x.shape[axis]:
            x = gather(x, begins[axis] + np.arange(count, dtype=np.int32), axis=axis)
    return x
