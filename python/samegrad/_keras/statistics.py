"""Moments over the examples of all replicas, which BatchNormalization takes.

Every sum is summed over the replicas before anything else is made of it, so that mean, variance and
their gradients are bitwise identical to single-device training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import samegrad as tf
from samegrad._context import state as _context
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import all_reduce_sum, elements_of


def batch_moments(inputs: Any, mask: Any, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The mean and the variance of what is not masked, over the examples of all replicas.

    Args:
        inputs: Floats; those of 16 bits are averaged in float32.
        mask: None, or one bool for each vector along the last axis: False does not count.
        axes: All but that of the channels.

    Returns:
        Mean and variance in the inputs' dtype, without these axes; 0 where nothing counts.
    """
    x = convert_to_tensor(inputs)
    kind, over = x._dtype, [axis % x._rank for axis in axes]
    x = tf.cast(x, "float32") if kind in ("float16", "bfloat16") else x
    of_all = _context.get_replica_context() is not None
    if mask is None:
        count = tf.cast(elements_of(x, tuple(over), of_all), x._dtype)
        kept: Tensor | None = None
    else:
        flags = tf.expand_dims(convert_to_tensor(mask, x._dtype), -1)
        kept = flags * tf.ones_like(x)
        count = _total(kept, over, of_all)
    mean = tf.math.divide_no_nan(_total(_weighed(x, kept), over, of_all), count)
    # As in `mean_and_variance`: its derivative then takes no second sum over all of x.
    center = tf.stop_gradient(mean)
    squares = _weighed(tf.square(x - _with_axes(center, over, x._rank)), kept)
    variance = tf.math.divide_no_nan(_total(squares, over, of_all), count)
    variance = variance - tf.square(mean - center)
    return tf.cast(mean, kind), tf.cast(variance, kind)


def _weighed(x: Tensor, kept: Tensor | None) -> Tensor:
    return x if kept is None else tf.where(kept > 0, x, tf.zeros_like(x))


def _total(x: Tensor, axes: Sequence[int], of_all: bool) -> Tensor:
    own = tf.reduce_sum(x, axes)
    total: Tensor = all_reduce_sum(own) if of_all else own
    return total


def _with_axes(x: Tensor, axes: Sequence[int], rank: int) -> Tensor:
    for axis in sorted(axis % rank for axis in axes):
        x = tf.expand_dims(x, axis)
    return x
