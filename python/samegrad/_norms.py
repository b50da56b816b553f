"""Norms of tensors, and limits on them and on elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._shown import shown
from samegrad._tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.math._reductions import axes_of

_ops = _core.ops


def norm(tensor: TensorLike, ord: Any = "euclidean", axis: Any = None,
         keepdims: bool = False, name: str | None = None) -> Tensor:  # fmt: skip
    """The norm over axes (default all): "euclidean" (also 2), 1 or infinity.

    Example:
        >>> float(norm([3.0, 4.0]))
        5.0
    """
    x = convert_to_tensor(tensor)
    axes = axes_of(x, axis)
    if not isinstance(ord, str | int | float):
        raise TypeError(f"[norm] ord is 'euclidean', 1, 2 or infinity: got {shown(ord)}; pass one.")
    if ord in ("euclidean", 2):
        return _ops.sqrt(_ops.reduce_sum(_ops.square(x), axes=axes, keepdims=keepdims))
    if ord == 1:
        return _ops.reduce_sum(_ops.abs(x), axes=axes, keepdims=keepdims)
    if ord == np.inf:
        return _ops.reduce_max(_ops.abs(x), axes=axes, keepdims=keepdims)
    raise ValueError(f"[norm] ord is 'euclidean', 1, 2 or infinity: got {shown(ord)}.")


def clip_by_value(t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike,
                  name: str | None = None) -> Tensor:  # fmt: skip
    """Each element, not below the first bound and not above the second.

    Example:
        >>> clip_by_value([-2.0, 0.5], -1.0, 1.0).numpy()
        array([-1. ,  0.5], dtype=float32)
    """
    return _ops.minimum(*pair(_ops.maximum(*pair(t, clip_value_min)), clip_value_max))


def clip_by_norm(t: TensorLike, clip_norm: float, axes: Any = None,
                 name: str | None = None) -> Tensor:  # fmt: skip
    """The tensor, scaled down where its euclidean norm is above `clip_norm`.

    Example:
        >>> clip_by_norm([3.0, 4.0], 1.0).numpy().round(1)
        array([0.6, 0.8], dtype=float32)
    """
    x = convert_to_tensor(t)
    length = norm(x, axis=axes, keepdims=axes is not None)
    limit = convert_to_tensor(clip_norm, x._dtype)
    return x * limit / _ops.maximum(length, limit)
