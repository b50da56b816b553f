"""The same elements in another shape or order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import axes_in, axis_in, flat, known, sliced
from samegrad._tensor.dim import Dim
from samegrad._tensor.sizes import size_of, sizes_of
from samegrad._tensor.tensor import Tensor


def ndim(x: Any) -> int:
    """The number of axes."""
    return convert_to_tensor(x)._rank


def size(x: Any) -> Tensor:
    """The number of elements, int32."""
    return tf.size(convert_to_tensor(x))


def reshape(x: Any, newshape: Any) -> Tensor:
    """The elements in another shape; one size may be -1."""
    return tf.reshape(convert_to_tensor(x), newshape)


def ravel(x: Any) -> Tensor:
    """The elements along one axis."""
    return flat(convert_to_tensor(x))


def transpose(x: Any, axes: Any = None) -> Tensor:
    """The axes in another order; default reversed.

    Raises:
        ValueError: `axes` has an axis twice, or lacks one.
    """
    x = convert_to_tensor(x)
    if axes is None:
        return tf.transpose(x)
    order = axes_in(list(axes), x._rank)
    if sorted(order) != list(range(x._rank)):
        raise ValueError(
            "`axes` must be a valid permutation of the input dimensions (no duplicates). "
            f"Received: axes={list(axes)} for input of rank {x._rank}."
        )
    return tf.transpose(x, order)


def expand_dims(x: Any, axis: Any) -> Tensor:
    """New axes of size 1, where the result has them."""
    tensor = convert_to_tensor(x)
    count = len(axis) if isinstance(axis, list | tuple) else 1
    for place in sorted(axes_in(axis, tensor._rank + count)):
        tensor = tf.expand_dims(tensor, place)
    return tensor


def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Without axes of size 1 (default all of them).

    Raises:
        ValueError: The axis has another size.
    """
    x = convert_to_tensor(x)
    if axis is None:
        return tf.squeeze(x)
    axes = axes_in(axis, x._rank)
    for a in axes:
        if not (isinstance(x.shape[a], int) and x.shape[a] == 1):
            raise ValueError(f"Cannot squeeze axis={a}, because the dimension is not 1.")
    return tf.squeeze(x, axes) if axes else x


def broadcast_to(x: Any, shape: Any) -> Tensor:
    """The elements repeated along axes of size 1 until they have the shape."""
    return tf.broadcast_to(convert_to_tensor(x), shape)


def moveaxis(x: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places; the others keep their order.

    Raises:
        ValueError: There are not as many places as axes.
    """
    x = convert_to_tensor(x)
    old, new = axes_in(source, x._rank), axes_in(destination, x._rank)
    if len(old) != len(new):
        raise ValueError(
            "Inconsistent number of `source` and `destination`. "
            f"Received: source={source}, destination={destination}"
        )
    order = [a for a in range(x._rank) if a not in old]
    for place, a in sorted(zip(new, old, strict=True)):
        order.insert(place, a)
    return x if old == new else tf.transpose(x, order)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes in each other's place."""
    x = convert_to_tensor(x)
    a, b = axis_in(axis1, x._rank), axis_in(axis2, x._rank)
    order = list(range(x._rank))
    order[a], order[b] = b, a
    return x if a == b else tf.transpose(x, order)


def flip(x: Any, axis: Any = None) -> Tensor:
    """The elements in reverse order along axes (default all)."""
    x = convert_to_tensor(x)
    return tf.reverse(x, axes_in(axis, x._rank))


def fliplr(x: Any) -> Tensor:
    """The elements in reverse order along the second axis."""
    return flip(x, 1)


def flipud(x: Any) -> Tensor:
    """The elements in reverse order along the first axis."""
    return flip(x, 0)


def rot90(array: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """The plane of two axes turned k times by a right angle.

    Raises:
        ValueError: There are less than two axes, or the plane's are one.
    """
    x = convert_to_tensor(array)
    if x._rank < 2:
        raise ValueError(
            f"Input array must have at least 2 dimensions. Received: array.ndim={x._rank}"
        )
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    first, second = axes_in(list(axes), x._rank)
    turns = k % 4
    if turns == 2:
        return tf.reverse(x, [first, second])
    if turns == 1:
        return swapaxes(tf.reverse(x, [second]), first, second)
    return tf.reverse(swapaxes(x, first, second), [second]) if turns == 3 else x


def roll(x: Any, shift: Any, axis: Any = None) -> Tensor:
    """The elements moved along axes, those that leave at one end back at the other.

    Args:
        x: Elements.
        shift: How far, one number or one per axis.
        axis: One axis or several; None: along all elements in a row.
    """
    x = convert_to_tensor(x)
    if axis is None:
        return tf.reshape(tf.roll(flat(x), shift, 0), x.shape)
    axes = axes_in(axis, x._rank)
    shifts = list(shift) if isinstance(shift, list | tuple) else [shift] * len(axes)
    return tf.roll(x, shifts, axes)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element along an axis so often; without an axis, of all elements in a row.

    Args:
        x: Elements.
        repeats: How often; a list: how often each.
        axis: Along which.
    """
    x = convert_to_tensor(x)
    x, place = (flat(x), 0) if axis is None else (x, axis_in(axis, x._rank))
    if isinstance(repeats, Tensor) and not repeats._rank:
        repeats = size_of(repeats)  # that may follow from the number of examples
    if isinstance(repeats, int | Dim):
        return tf.repeat(x, repeats, place)
    counts = known("repeat", repeats).reshape(-1)
    if counts.size == 1:
        return tf.repeat(x, int(counts[0]), place)
    return tf.gather(x, np.repeat(np.arange(counts.size), counts), axis=place)


def tile(x: Any, repeats: Any) -> Tensor:
    """The tensor repeated as a whole, so often per axis; missing numbers are those of the first."""
    x = convert_to_tensor(x)
    counts = sizes_of(repeats)  # that may follow from the number of examples
    counts = [1] * (x._rank - len(counts)) + counts
    if len(counts) > x._rank:
        x = tf.reshape(x, [1] * (len(counts) - x._rank) + list(x.shape))
    return tf.tile(x, counts)


def _mirrored(x: Tensor, axis: int, before: int, after: int, skip: int) -> Tensor:
    """Mirror the ends; `skip` is 1 where the ends are not repeated."""
    length = x.shape[axis]
    if isinstance(length, int) and max(before, after) > length - skip:
        raise ValueError(
            f"[keras.ops.pad] axis {axis} of size {length} has not enough elements to mirror: got "
            f"{(before, after)}."
        )

    def part(begin: Any, end: Any) -> Tensor:
        return tf.reverse(sliced(x, axis, begin, end), [axis])

    parts = [part(skip, before + skip)] if before else []
    parts.append(x)
    if after:
        parts.append(part(-after - skip, -skip if skip else None))
    return tf.concat(parts, axis)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> Tensor:
    """Elements more at the ends of axes.

    Args:
        x: Elements.
        pad_width: How many before and after; per axis, a pair for all, or a number for all.
        mode: "constant", or "reflect" and "symmetric", which mirror what is there.
        constant_values: What is there with "constant" (default 0).

    Raises:
        ValueError: Another mode, or `constant_values` with one.
    """
    tensor = convert_to_tensor(x)
    if constant_values is not None and mode != "constant":
        raise ValueError(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    spans = _spans(pad_width, tensor._rank)
    if mode == "constant":
        value = 0 if constant_values is None else constant_values
        return tf.pad(tensor, spans, constant_values=value)
    if mode not in ("reflect", "symmetric"):
        raise ValueError(
            f"[keras.ops.pad] mode is 'constant', 'reflect' or 'symmetric': got {mode!r}."
        )
    for axis, (before, after) in enumerate(spans):
        if before or after:
            tensor = _mirrored(tensor, axis, before, after, int(mode == "reflect"))
    return tensor


def _spans(pad_width: Any, rank: int) -> list[list[Any]]:
    if isinstance(pad_width, int | Dim):
        return [[pad_width, pad_width] for _ in range(rank)]
    if not isinstance(pad_width, list | tuple):
        pad_width = known("pad", pad_width).tolist()
    if not isinstance(pad_width, list | tuple):
        return _spans(pad_width, rank)
    if pad_width and not hasattr(pad_width[0], "__len__"):
        before, after = pad_width if len(pad_width) == 2 else list(pad_width) * 2
        return [[before, after] for _ in range(rank)]
    spans = [[s[0], s[-1]] for s in pad_width]
    return spans * rank if len(spans) == 1 else spans


def diag(x: Any, k: int = 0) -> Tensor:
    """Return the matrix with a vector on the k-th diagonal, or that diagonal of a matrix.

    Raises:
        ValueError: It has more axes.
    """
    x = convert_to_tensor(x)
    if x._rank == 1:
        made: Tensor = tf.linalg.diag(x, k=k)
        return made
    if x._rank != 2:
        raise ValueError(f"`x` must be 1d or 2d. Received: x.shape={tuple(x.shape)}")
    return diagonal(x, k)


def diagflat(x: Any, k: int = 0) -> Tensor:
    """The matrix with all elements on its k-th diagonal."""
    return diag(ravel(x), k)


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonal of the matrices along two axes, as the last axis."""
    tensor = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = tensor.shape[-2:]
    outside = (isinstance(rows, int) and offset <= -rows) or (
        isinstance(columns, int) and offset >= columns
    )
    if outside:
        return tf.zeros([*tensor.shape[:-2], 0], tensor._dtype)
    if tensor._dtype == "bool":
        return tf.cast(tf.linalg.diag_part(tf.cast(tensor, "uint8"), k=offset), "bool")
    found: Tensor = tf.linalg.diag_part(tensor, k=offset)
    return found


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of the diagonal of the matrices along two axes."""
    from samegrad._keras.numpy.reductions import sum

    return sum(diagonal(x, offset, axis1, axis2), axis=-1)


def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """The places in a shape of indices into all its elements in a row.

    Raises:
        ValueError: A size is None.
    """
    if None in shape:
        raise ValueError(f"`shape` argument cannot contain `None`. Received: shape={shape}")
    rest = convert_to_tensor(indices)
    total = math.prod(shape)
    rest = tf.where(tf.less(rest, tf.zeros_like(rest)), rest + total, rest)
    places: list[Tensor] = []
    for length in reversed(shape):
        places.append(tf.math.floormod(rest, length))
        rest = tf.math.floordiv(rest, length)
    return tuple(reversed(places))
