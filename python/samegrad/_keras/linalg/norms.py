"""keras.backend.linalg: norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import samegrad as tf
from samegrad import math
from samegrad._keras.linalg.decompositions import svd
from samegrad._keras.linalg.values import floats
from samegrad._tensor.tensor import Tensor

_INFINITY = float("inf")


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors along one axis, or of matrices along two.

    Args:
        x: Numbers.
        ord: Of vectors None (2), a number, inf or -inf; of matrices None, "fro", "nuc", 1, -1, 2,
            -2, inf or -inf.
        axis: One axis or two; default all.
        keepdims: Whether the axes stay, with size 1.

    Raises:
        ValueError: There is no such axis or norm.
    """
    value = floats(x)
    given = list(range(value._rank)) if axis is None else axis
    axes = [given] if isinstance(given, int) else list(given)
    if any(not -value._rank <= a < value._rank for a in axes):
        raise ValueError(
            "All `axis` values must be in the range [-ndim, ndim). "
            f"Received inputs with ndim={value._rank}, while axis={axis}"
        )
    axes = [a % value._rank for a in axes]
    if ord is None or (len(axes) == 1 and ord == 2) or (len(axes) == 2 and ord == "fro"):
        return math.reduce_euclidean_norm(value, axis=axes, keepdims=keepdims)
    if len(axes) == 1:
        return _of_vectors(value, ord, axes[0], keepdims)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axis values. Received: axis={axis}")
    found = _of_matrices(value, ord, axes[0], axes[1])
    return found if keepdims else tf.squeeze(found, sorted(axes))


def _of_vectors(x: Tensor, ord: Any, axis: int, keepdims: bool) -> Tensor:
    if isinstance(ord, str):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    sizes = tf.abs(x)
    if ord == _INFINITY:
        return tf.reduce_max(sizes, axis, keepdims)
    if ord == -_INFINITY:
        return tf.reduce_min(sizes, axis, keepdims)
    if ord == 0:
        return tf.reduce_sum(tf.cast(sizes > 0.0, x._dtype), axis, keepdims)
    if ord == 1:
        return tf.reduce_sum(sizes, axis, keepdims)
    return tf.pow(tf.reduce_sum(tf.pow(sizes, float(ord)), axis, keepdims), 1.0 / float(ord))


def _of_matrices(x: Tensor, ord: Any, rows: int, columns: int) -> Tensor:
    """With the axes kept."""
    if ord in (1, -1, _INFINITY, -_INFINITY):
        added, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
        sums = tf.reduce_sum(tf.abs(x), added, keepdims=True)
        over = tf.reduce_max if ord > 0 else tf.reduce_min
        return over(sums, compared, keepdims=True)
    if ord not in ("nuc", 2, -2):
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")
    rest = [a for a in range(x._rank) if a not in (rows, columns)]
    s = svd(tf.transpose(x, [*rest, rows, columns]), compute_uv=False)
    reduce = {"nuc": tf.reduce_sum, 2: tf.reduce_max, -2: tf.reduce_min}[ord]
    found = reduce(s, -1)
    for a in sorted((rows, columns)):
        found = tf.expand_dims(found, a)
    return found
