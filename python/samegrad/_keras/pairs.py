"""Losses over pairs of examples: a replica's examples with those of all replicas."""

from __future__ import annotations

from typing import Any

from keras.src.utils.numerical_utils import build_pos_neg_masks

import samegrad as tf
from samegrad import _core
from samegrad._context import state as _context
from samegrad._keras.losses import in_replica_of_several
from samegrad._tensor.example_axis import as_examples

_ops = _core.ops
_OF_ALL = "_of_all_replicas"


def rows_of_all(rows: Any, others: Any, labels: Any) -> tuple[Any, Any]:
    """Return the embeddings of all replicas, to compare a replica's with, and their labels.

    Args:
        rows: The replica's own.
        others: The same tensor, or others that the user gave, which stay.
        labels: Of the others, one for each.
    """
    if others is not rows:
        return others, labels
    if not in_replica_of_several():
        return _context.note_one_replica("embeddings of all examples", others), labels
    gathered = _gathered(labels)
    setattr(gathered, _OF_ALL, True)
    return _gathered(others), gathered


def masks_of_pairs(own: Any, labels: Any, remove_diagonal: bool) -> tuple[Any, Any]:
    """Return masks of pairs with equal labels, and with different ones.

    Args:
        own: Labels of the replica's rows, [n] or [n, 1].
        labels: Of all rows, [m] or [m, 1].
        remove_diagonal: If True, exclude pairs of an example with itself.
    """
    positive, negative = build_pos_neg_masks(own, labels, remove_diagonal=False)
    if not remove_diagonal:
        return positive, negative
    numbers = _ops.row_numbers(as_examples(own))
    if getattr(labels, _OF_ALL, False):
        others = _gathered(numbers)
    else:
        others = _ops.row_numbers(as_examples(labels))
    same = tf.expand_dims(numbers, 1) == tf.expand_dims(others, 0)
    return tf.math.logical_and(positive, tf.math.logical_not(same)), negative


def _gathered(rows: Any) -> Any:
    context = _context.get_replica_context()
    assert context is not None
    return context.all_gather(as_examples(rows), axis=0)
