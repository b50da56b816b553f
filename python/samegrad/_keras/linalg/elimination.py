"""Linear equations and triangles of traced matrices: loops of the engine, a row at a time."""

from __future__ import annotations

from typing import Any

import samegrad as tf
from samegrad import math
from samegrad._tensor.tensor import Tensor


def eliminated(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """The x with a x = b, and the determinants of a (Gauss and Jordan, with row pivots).

    Example:
        >>> x, determinant = eliminated(tf.constant([[2.0]]), tf.constant([[6.0]]))
        >>> float(x[0, 0]), float(determinant)
        (3.0, 2.0)
    """
    size = int(a.shape[-1])
    rows = tf.range(size)

    def step(i: Tensor, both: Tensor, product: Tensor) -> Any:
        column = tf.gather(both, i, axis=-1)
        sizes = tf.where(rows >= i, tf.abs(column), tf.cast(-1.0, column._dtype))
        place = tf.expand_dims(tf.argmax(sizes, axis=-1, output_type="int32"), -1)
        here, there = tf.equal(rows, i), tf.equal(rows, place)
        own = tf.gather(both, i, axis=-2)
        chosen = _row(both, there)
        pivot = _row(tf.expand_dims(column, -1), there)
        both = tf.where(tf.expand_dims(there, -1), tf.expand_dims(own, -2), both)
        both = tf.where(tf.expand_dims(here, -1), tf.expand_dims(chosen, -2), both)
        scaled = tf.expand_dims(chosen / pivot, -2)
        factors = tf.expand_dims(tf.gather(both, i, axis=-1), -1)
        both = tf.where(tf.expand_dims(here, -1), scaled, both - factors * scaled)
        sign = tf.where(tf.equal(place, i), tf.ones_like(pivot), -tf.ones_like(pivot))
        return i + 1, both, product * tf.squeeze(pivot * sign, -1)

    one = tf.ones_like(tf.reduce_sum(a, axis=[-2, -1]))
    start = (tf.constant(0), tf.concat([a, b], -1), one)
    _, both, product = tf.while_loop(lambda i, *_: i < size, step, start)
    return both[..., size:], product


def _row(x: Tensor, chosen: Tensor) -> Tensor:
    """The one row of each matrix that is chosen."""
    return tf.reduce_sum(tf.where(tf.expand_dims(chosen, -1), x, tf.zeros_like(x)), axis=-2)


def cholesky_loop(a: Tensor) -> Tensor:
    """The lower triangles L with L Lᵀ = a, NaN where there is none.

    Example:
        >>> cholesky_loop(tf.constant([[4.0]])).numpy()
        array([[2.]], dtype=float32)
    """
    size = int(a.shape[-1])
    places = tf.range(size)

    def step(i: Tensor, lower: Tensor) -> Any:
        own = tf.gather(lower, i, axis=-2)
        column = tf.gather(a, i, axis=-1) - tf.squeeze(
            tf.matmul(lower, tf.expand_dims(own, -1)), -1
        )
        scaled = column * math.rsqrt(tf.expand_dims(tf.gather(column, i, axis=-1), -1))
        scaled = tf.where(places >= i, scaled, tf.zeros_like(scaled))
        return i + 1, tf.where(tf.equal(places, i), tf.expand_dims(scaled, -1), lower)

    start = (tf.constant(0), tf.zeros_like(a))
    lower: Tensor = tf.while_loop(lambda i, *_: i < size, step, start)[1]
    return lower
