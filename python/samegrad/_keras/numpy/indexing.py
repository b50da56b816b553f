"""Elements at indices, and differences of neighbours."""

from __future__ import annotations

from typing import Any

import samegrad as tf
from samegrad import _core
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import axis_in, flat, sliced
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor


def _from_start(indices: Tensor, size: Any) -> Tensor:
    """The indices, negative ones counted from the end."""
    if indices._dtype.startswith("uint"):
        return indices
    behind = indices + tf.cast(convert_to_tensor(size), indices._dtype)
    return tf.where(tf.less(indices, tf.zeros_like(indices)), behind, indices)


def take(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """The elements or slices along an axis at indices; without one, of all elements in a row."""
    x, places = convert_to_tensor(x), convert_to_tensor(indices)
    x, place = (flat(x), 0) if axis is None else (x, axis_in(axis, x._rank))
    return tf.gather(x, _from_start(places, x.shape[place]), axis=place)


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> Tensor:
    """For each line along an axis the elements at indices of its own.

    Args:
        x: Elements.
        indices: Whole numbers; their other axes broadcast with those of x.
        axis: Along which; None: of all elements in a row, with a vector of indices.

    Raises:
        ValueError: No axis, and the indices are not a vector; or the shapes do not fit.
    """
    x, places = convert_to_tensor(x), convert_to_tensor(indices, "int64")
    if axis is None:
        if places._rank != 1:
            raise ValueError(
                f"`indices` must be 1D if axis=None. Received: indices.shape={tuple(places.shape)}"
            )
        x, axis = flat(x), 0
    if not -x._rank <= axis < x._rank or places._rank != x._rank:
        raise ValueError(
            f"Invalid axis: {axis} for input rank: {x._rank} and indices of rank: {places._rank}"
        )
    place = axis_in(axis, x._rank)
    own, wanted = list(x.shape), list(places.shape)
    sizes = [b if _is_one(a) else a for a, b in zip(own, wanted, strict=True)]
    sizes_x, sizes_places = list(sizes), list(sizes)
    sizes_x[place], sizes_places[place] = own[place], wanted[place]
    places = _from_start(places, own[place])
    return _core.ops.take_along_axis(_spread(x, sizes_x), _spread(places, sizes_places), axis=place)


def _spread(x: Tensor, sizes: list[Any]) -> Tensor:
    ones = [a for a, b in zip(x.shape, sizes, strict=True) if _is_one(a) and not _is_one(b)]
    fits = all(
        isinstance(a, Dim) or isinstance(b, Dim) or a in (1, b)
        for a, b in zip(x.shape, sizes, strict=True)
    )
    return x if not ones and fits else tf.broadcast_to(x, sizes)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Return the n-th differences of neighbours along an axis.

    Raises:
        ValueError: A negative n, or a number without axes.
    """
    x = convert_to_tensor(a)
    if n < 0:
        raise ValueError(f"Order `n` must be non-negative. Received n={n}")
    if n and x._rank == 0:
        raise ValueError(f"`diff` requires input that is at least one dimensional. Received: a={a}")
    for _ in range(n):
        place = axis_in(axis, x._rank)
        later, sooner = sliced(x, place, 1, None), sliced(x, place, None, -1)
        x = tf.not_equal(later, sooner) if x._dtype == "bool" else tf.subtract(later, sooner)
    return x
