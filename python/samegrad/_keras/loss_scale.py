"""Scales of losses, the same on all replicas."""

from __future__ import annotations

from typing import Any

from keras.src import initializers
from keras.src.utils import tracking

import samegrad as tf
from samegrad._context import state as _context
from samegrad._keras.losses import in_replica_of_several
from samegrad._tensor.tensor import convert_to_tensor
from samegrad.nn._loss_normalization import all_reduce_sum


@tracking.no_automatic_dependency_tracking  # type: ignore[untyped-decorator]
def make_scale(optimizer: Any) -> None:
    """Create the variables of a LossScaleOptimizer, unless they exist.

    A loss is scaled before the optimizer is built: the scale is a variable already, so that a step
    that is traced then reads what it is later.
    """
    if hasattr(optimizer, "dynamic_scale"):
        return
    optimizer.step_counter = optimizer.add_variable((), dtype="int", name="step_counter")
    optimizer.dynamic_scale = optimizer.add_variable(
        (), initializers.Constant(optimizer.initial_scale), "float32", name="dynamic_scale"
    )


def on_all_replicas(finite: Any) -> Any:
    """Tell if gradients are finite on all replicas, so that all skip a step or none."""
    value = convert_to_tensor(finite)
    if not _context.exporting() and (not in_replica_of_several() or not value._varying):
        return value
    bad = all_reduce_sum(tf.cast(tf.logical_not(value), "float32"))
    return bad == 0.0


def larger_scale(scale: Any) -> Any:
    """A scale of losses doubled, unless that were infinite."""
    now = convert_to_tensor(scale)
    double = now * 2.0
    return tf.where(tf.math.is_finite(double), double, now)


def smaller_scale(scale: Any) -> Any:
    """A scale of losses halved, but not from above 1 to below."""
    now = convert_to_tensor(scale)
    return tf.maximum(now * 0.5, tf.minimum(now, 1.0))
