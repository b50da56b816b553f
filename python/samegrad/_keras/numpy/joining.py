"""Tensors one after the other, and their parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import axis_in, flat, known, matched, matched_tensors, sliced
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor


def _joined(xs: Any) -> list[Tensor]:
    return matched_tensors(*xs) if len(xs) > 1 else [convert_to_tensor(x) for x in xs]


def concatenate(xs: Any, axis: int | None = 0) -> Tensor:
    """The tensors one after the other along an axis; without one, of all their elements."""
    tensors = _joined(xs)
    if axis is None:
        return tf.concat([flat(x) for x in tensors], 0)
    return tf.concat(tensors, axis_in(axis, tensors[0]._rank))


def append(x1: Any, x2: Any, axis: int | None = None) -> Tensor:
    """Two tensors one after the other along an axis; without one, all their elements."""
    return concatenate([x1, x2], axis)


def stack(x: Any, axis: int = 0) -> Tensor:
    """The tensors along a new axis."""
    tensors = matched(*x) if len(x) > 1 else [convert_to_tensor(part) for part in x]
    return tf.stack(tensors, axis_in(axis, tensors[0]._rank + 1))


def hstack(xs: Any) -> Tensor:
    """The tensors one after the other along their second axis; vectors along their only one."""
    tensors = [tf.reshape(x, [1]) if x._rank == 0 else x for x in _joined(xs)]
    return tf.concat(tensors, min(1, tensors[0]._rank - 1))


def vstack(xs: Any) -> Tensor:
    """The tensors one after the other along their first axis; vectors are rows."""
    tensors = [tf.reshape(x, [1, -1]) if x._rank < 2 else x for x in _joined(xs)]
    return tf.concat(tensors, 0)


def dstack(xs: Any) -> Tensor:
    """The tensors one after the other along their third axis, which is added if it is missing."""
    tensors = [tf.reshape(x, [1, -1]) if x._rank < 2 else x for x in _joined(xs)]
    return tf.concat([tf.expand_dims(x, 2) if x._rank == 2 else x for x in tensors], 2)


def _parts(x: Tensor, bounds: Sequence[Any], axis: int) -> list[Tensor]:
    edges = [0, *bounds, None]
    return [sliced(x, axis, a, b) for a, b in itertools.pairwise(edges)]


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Consecutive parts along an axis: so many equal ones, or cut at indices.

    Raises:
        ValueError: The axis has not a multiple of so many elements.
    """
    x = convert_to_tensor(x)
    place = axis_in(axis, x._rank)
    if isinstance(indices_or_sections, int):
        return list(tf.split(x, indices_or_sections, place))
    bounds = indices_or_sections
    if not isinstance(bounds, list | tuple):
        bounds = known("split", bounds).reshape(-1).tolist()
    return _parts(x, list(bounds), place)


def hsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the second axis; of a vector along its only one."""
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, min(1, x._rank - 1))


def vsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the first axis."""
    return split(x, indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the third axis."""
    return split(x, indices_or_sections, 2)


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Split into nearly equal parts along an axis, the first ones larger by one.

    Raises:
        ValueError: The axis has a size that follows from the number of examples.
    """
    x = convert_to_tensor(x)
    place = axis_in(axis, x._rank)
    if not isinstance(indices_or_sections, int):
        return split(x, indices_or_sections, place)
    total, count = x.shape[place], indices_or_sections
    if isinstance(total, Dim):
        raise ValueError(
            f"[keras.ops.array_split] the size of axis {axis} follows from the number of examples: "
            "split another axis, or by indices."
        )
    each, rest = divmod(total, count)
    return _parts(x, [i * each + min(i, rest) for i in range(1, count)], place)
