"""Losses that layers hold: penalties of outputs, and what `add_loss` is given.

On several replicas a layer holds as many times the replica's share as there are replicas: what
divides by their number, as `fit` does and `nn.scale_regularization_loss` in a custom loop, makes
of it the share, as it does of the penalty of a weight, which is equal on all replicas.
"""

from __future__ import annotations

from typing import Any

from keras.src import regularizers

import samegrad as tf
from samegrad._context import state as _context
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.losses import in_replica_of_several, is_sum, share_of_scalar
from samegrad._tensor.example_axis import as_examples
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import elements_of

_SUMS = (regularizers.L1, regularizers.L2, regularizers.L1L2)
_HELD = "_times_replicas"
_REMEDY = "give the sum or the mean over all examples of one value for each"


def penalty_of_output(regularizer: Any, loss: Any, output: Any) -> Tensor:
    """Return the penalty of a layer's outputs, divided by the examples of all replicas.

    Args:
        regularizer: What made the loss of the outputs.
        loss: A scalar.
        output: Has its examples on axis 0.

    Raises:
        ValueError: The loss is neither a sum nor a mean over the examples.
    """
    value = convert_to_tensor(loss)
    examples = as_examples(convert_to_tensor(output))
    several = in_replica_of_several()
    # A tensor that all replicas have alike has its examples on each of them, and so has its loss.
    of_all = several and examples._varying
    count = tf.cast(elements_of(examples, (0,), of_all), value._dtype)
    if several and value._varying:
        # The type says it where the graph is beyond what can be followed.
        summed = isinstance(regularizer, _SUMS) or is_sum(value)
        share = value if summed else share_of_scalar(value, "activity_regularizer", _REMEDY)
        return _held(_times_replicas(tf.math.divide_no_nan(share, count)))
    mean: Tensor = tf.math.divide_no_nan(value, count)
    return _context.note_one_replica("activity_regularizer", mean)


def added_losses(losses: list[Any]) -> list[Any]:
    """Return the stored values of scalars that `add_loss` is given.

    Raises:
        ValueError: One of them is not a sum or mean over the examples, nor equal on all replicas.
    """
    if _context.exporting():
        return [_context.note_one_replica("add_loss", convert_to_tensor(x)) for x in losses]
    return [_added(loss) for loss in losses] if in_replica_of_several() else losses


def share_of_held(held: Any, total: Any) -> Tensor:
    """A replica's share of a loss that a layer holds.

    Args:
        held: The loss as the layer holds it.
        total: The sum of its elements.
    """
    if in_replica_of_several() and getattr(held, _HELD, False):
        share: Tensor = tf.nn.scale_regularization_loss(total)
        return share
    return share_of_scalar(total)


def _added(loss: Any) -> Any:
    value = convert_to_tensor(loss)
    if getattr(loss, _HELD, False) or not value._varying:
        return loss
    total = tf.reduce_sum(value)
    share = total if is_sum(total) else share_of_scalar(total, "add_loss", _REMEDY)
    return _held(_times_replicas(share))


def _held(value: Tensor) -> Tensor:
    setattr(value, _HELD, True)
    return value


def _times_replicas(share: Any) -> Tensor:
    """The product that the program cancels against a share of it."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    product: Tensor = share * tf.cast(replicas, share._dtype)
    return product
