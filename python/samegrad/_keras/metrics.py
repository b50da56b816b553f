"""Means and sums of scalars: what the replicas' scalars are of all examples."""

from __future__ import annotations

from typing import Any

from keras.src import backend
from keras.src.metrics import reduction_metrics

import samegrad as tf
from samegrad._context import state as _context
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.losses import (
    holds_no_examples,
    in_replica_of_several,
    is_sum,
    reduce_values,
    share_of_scalar,
    value_of_all,
)
from samegrad._keras.variable import global_values, values_are_global
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.tensor import Tensor


def adds_scalar(metric: Any, values: Any, sample_weight: Any = None) -> bool:
    """Add to a Mean or a Sum what a scalar of each replica is of all examples together.

    Args:
        metric: The Mean or the Sum.
        values: Given to its `update_state`: a loss, or anything else that counts no examples.
        sample_weight: None, or a scalar; one that differs counts each replica's part.

    Returns:
        Whether it did: not where there is one replica, or a value and a weight for each example.

    Raises:
        ValueError: The step does not show what the scalar is of all examples.
    """
    exporting = _context.exporting()
    if not (exporting or in_replica_of_several()) or values_are_global():
        return False
    mean = isinstance(metric, reduction_metrics.Mean)
    masked = backend.get_keras_mask(values) is not None
    value = convert_to_tensor(values, metric.dtype)
    if isinstance(value, RaggedTensor):  # its rows are the examples
        return False
    weight = None if sample_weight is None else convert_to_tensor(sample_weight, metric.dtype)
    if weight is not None and (weight._rank or masked):
        return False
    scalar = holds_no_examples(value)
    if not scalar and (weight is None or not mean):
        return False
    if exporting:
        _context.note_one_replica(f"{metric.name}.update_state of a scalar")
        return False
    if not mean and not value._varying:
        return False
    # One weight for all values is that of their mean.
    whole = _of_all(metric, value) if scalar else value_of_all(reduce_values(value))
    if weight is not None and weight._varying:
        weight = value_of_all(weight)
    base = reduction_metrics.Mean if mean else reduction_metrics.Sum
    with global_values():
        base.update_state(metric, whole, weight)
    return True


def _of_all(metric: Any, value: Tensor) -> Tensor:
    if not value._varying:
        return value
    if value._rank:
        return tf.stack([_of_all(metric, part) for part in tf.unstack(value)])
    if is_sum(value):
        return value_of_all(value)
    return value_of_all(share_of_scalar(value, metric.name))
