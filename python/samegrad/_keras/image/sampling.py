"""keras.backend.image: values between pixels, and outside of images."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from keras.src.backend.common.variables import is_int_dtype

import samegrad as tf
from samegrad import math
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor

_FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
_Nodes = list[tuple[Tensor, Tensor]]


def _mirrored(index: Tensor, size: int) -> Tensor:
    """Indices where the image continues as d c b | a b c d | c b a."""
    last = size - 1
    return tf.abs(math.floormod(index + last, max(2 * last, 1)) - last)


def _reflected(index: Tensor, size: int) -> Tensor:
    """Indices where the image continues as c b a | a b c d | d c b."""
    return math.floordiv(_mirrored(index * 2 + 1, 2 * size + 1) - 1, 2)


def _inside(index: Tensor, size: int) -> Tensor:
    return tf.clip_by_value(index, 0, size - 1)


_PLACES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "constant": _inside, "nearest": _inside, "mirror": _mirrored, "reflect": _reflected,
    "wrap": lambda index, size: math.floormod(index, size),
}  # fmt: skip


def nodes_of(coordinate: Tensor, order: int) -> _Nodes:
    """The indices around places along an axis, with their weights.

    Example:
        >>> [(int(i), float(w)) for i, w in nodes_of(tf.constant(2.25), 1)]
        [(2, 0.75), (3, 0.25)]
    """
    if order == 0:
        near = tf.round(coordinate)
        return [(tf.cast(near, "int32"), tf.ones_like(coordinate))]
    low = tf.floor(coordinate)
    share = coordinate - low
    index = tf.cast(low, "int32")
    return [(index, 1.0 - share), (index + 1, share)]


def interpolated(
    read: Callable[[list[Tensor]], Tensor],
    nodes: Sequence[_Nodes],
    sizes: Sequence[int],
    fill_mode: str,
    fill_value: Tensor,
) -> Tensor:
    """The weighted sum over the nodes of all axes.

    Args:
        read: Takes an index tensor for each axis, inside; returns the elements there, floats.
        nodes: Those of each axis.
        sizes: Of the axes.
        fill_mode: How indices outside are read.
        fill_value: What "constant" reads there.
    """
    parts = []
    for chosen in itertools.product(*nodes):
        places = [_PLACES[fill_mode](i, n) for (i, _), n in zip(chosen, sizes, strict=True)]
        found = read(places)
        weight = reduce(lambda a, b: a * b, [w for _, w in chosen])
        if fill_mode == "constant":
            pairs = zip(chosen, sizes, strict=True)
            tests = [test for (i, _), n in pairs for test in (i >= 0, i < n)]
            found = tf.where(_wide(reduce(tf.logical_and, tests), found), found, fill_value)
        parts.append(found * _wide(weight, found))
    return reduce(lambda a, b: a + b, parts)


def _wide(x: Tensor, like: Tensor) -> Tensor:
    """With an axis of size 1 for channels, if there are any."""
    return x if x._rank == like._rank else tf.expand_dims(x, -1)


def map_coordinates(
    inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant", fill_value: Any = 0.0
) -> Tensor:
    """Interpolate the elements at fractional coordinates.

    Args:
        inputs: Elements.
        coordinates: [axes of the inputs, ...].
        order: 0: the nearest; 1: between the elements around.
        fill_mode: Values outside: "constant", "nearest", "wrap", "mirror" or "reflect".
        fill_value: Of "constant".

    Returns:
        [...], in the dtype of the inputs.

    Raises:
        ValueError: The shapes do not fit, or there is no such mode.
        NotImplementedError: Another order.
    """
    x, places = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if places.shape[0] != x._rank:
        raise ValueError(
            "First dim of `coordinates` must be the same as the rank of `inputs`. "
            f"Received inputs with shape: {x.shape} and coordinate leading dim of {places.shape[0]}"
        )
    if places._rank < 2:
        raise ValueError(
            "Invalid coordinates rank: expected at least rank 2. "
            f"Received input with shape: {places.shape}"
        )
    if fill_mode not in _FILL_MODES:
        raise ValueError(
            "Invalid value for argument `fill_mode`. Expected one of "
            f"{set(_FILL_MODES)}. Received: fill_mode={fill_mode}"
        )
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates currently requires order<=1")
    if is_int_dtype(places._dtype):
        places = tf.cast(places, "float32")
    sizes = [int(size) for size in x.shape]
    flat = tf.cast(tf.reshape(x, (-1,)), places._dtype)

    def read(index: list[Tensor]) -> Tensor:
        place = index[0]
        for i, size in zip(index[1:], sizes[1:], strict=True):
            place = place * size + i
        return tf.gather(flat, place)

    nodes = [nodes_of(one, order) for one in tf.unstack(places, axis=0)]
    found = interpolated(read, nodes, sizes, fill_mode, convert_to_tensor(fill_value, flat._dtype))
    return tf.cast(tf.round(found) if is_int_dtype(x._dtype) else found, x._dtype)


def sampled(
    images: Tensor, rows: Tensor, columns: Tensor, order: int, fill_mode: str, fill_value: Any
) -> Tensor:
    """Images [n, rows, columns, channels] at places [n or 1, new rows, new columns].

    Example:
        >>> image = tf.constant([[[[1.0], [2.0]]]])
        >>> sampled(image, tf.zeros((1, 1, 1)), tf.fill((1, 1, 1), 0.5), 1, "constant", 0).numpy()
        array([[[[1.5]]]], dtype=float32)
    """
    height, width, channels = (int(size) for size in images.shape[1:])
    flat = tf.reshape(images, (images.shape[0], height * width, channels))
    flat = tf.cast(flat, rows._dtype)
    shared = isinstance(rows.shape[0], int) and rows.shape[0] == 1

    def read(index: list[Tensor]) -> Tensor:
        place = index[0] * width + index[1]
        if shared:
            return tf.gather(flat, place[0], axis=1)
        return tf.gather(flat, place, axis=1, batch_dims=1)

    nodes = [nodes_of(rows, order), nodes_of(columns, order)]
    fill = convert_to_tensor(fill_value, flat._dtype)
    return interpolated(read, nodes, [height, width], fill_mode, fill)
