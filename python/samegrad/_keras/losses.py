"""Means of losses are the replica's share of the mean over the examples of all replicas.

The shares add up to the mean that one device computes, whatever the replicas' numbers of examples,
masks and weights. Each value is multiplied by 1 / (global denominator) before the values are added
down the tree of the examples, so that the sum has the same bits for any number of replicas.
"""

from __future__ import annotations

from math import prod
from typing import Any

from keras.src.losses import loss as _loss

import samegrad as tf
from samegrad import _core
from samegrad._context import state as _context
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.label_shapes import shape_text
from samegrad._keras.micro_batches import note_loss
from samegrad._tensor.example_axis import as_examples, examples_axis, static_shape
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sizes import sizes_but_counts
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import all_reduce_sum, elements_of, inverse_count, inverse_of

_ops = _core.ops
_COUNTS = ("sum_over_batch_size", "mean")
_MEANS = (*_COUNTS, "mean_with_sample_weight")
# The attribute of what a mean of Keras made: of rows, too, that the engine does not count.
_SHARE = "_keras_share"
_OPEN = "examples"
# What can be given in place of a scalar that shows no mean.
_ROWS = (
    "give one value per example (ops.mean(..., axis=-1)), or a share by "
    "samegrad.nn.compute_average_loss; penalties of weights go to add_loss or to regularizers"
)


def in_replica_of_several() -> bool:
    """Tell if one of several replicas computes now.

    Example:
        >>> in_replica_of_several()
        False
    """
    context = _context.current().replica_context
    return context is not None and context.num_replicas_in_sync > 1


def reduce_weighted_values(
    values: Any,
    sample_weight: Any = None,
    mask: Any = None,
    reduction: str | None = "sum_over_batch_size",
    dtype: Any = None,
) -> Tensor:
    """The losses of a replica's examples, weighted and reduced.

    Args:
        values: Any shape.
        sample_weight: None, or weights that broadcast against the values.
        mask: None, or one bool (or 0 and 1) per value.
        reduction: "sum", None, or a mean: over the values of all replicas.
        dtype: Of the result.

    Raises:
        ValueError: A scalar on one of several replicas that shows no mean over its examples.
    """
    reduction = _loss.standardize_reduction(reduction)
    losses = convert_to_tensor(values, dtype)
    valid = None
    if mask is not None and reduction in _COUNTS:
        valid = _valid(mask, losses._dtype)
    weights = apply_mask(sample_weight, mask, losses._dtype, reduction)
    if weights is not None:
        weights = convert_to_tensor(weights, losses._dtype)
        if losses._rank:  # a scalar loss of one example has its weight, too
            losses, weights = _loss.squeeze_or_expand_to_same_rank(losses, weights)
            if mask is None:
                check_weights(weights, losses, "loss")
        elif _context.exporting() or (in_replica_of_several() and losses._varying):
            losses = value_of_all(share_of_scalar(losses))
        losses = losses * weights
    return reduce_values(losses, weights, reduction, valid)


def reduce_values(
    values: Any,
    sample_weight: Any = None,
    reduction: str | None = "sum_over_batch_size",
    valid: Tensor | None = None,
) -> Tensor:
    """The weighted losses of a replica's examples, reduced.

    Args:
        values: Any shape; times their weights already.
        sample_weight: The weights, for "mean_with_sample_weight".
        reduction: "sum", None, or a mean: over the values of all replicas.
        valid: How many values of all replicas a mask leaves; the weights are scaled by it already.

    Raises:
        ValueError: A scalar on one of several replicas that shows no mean over its examples.
    """
    if reduction is None or reduction == "none":
        return convert_to_tensor(values)
    losses = _flat(values)
    if _context.exporting() and holds_no_examples(losses):
        losses = _context.note_one_replica("a loss without an axis of examples", losses)
    if in_replica_of_several() and holds_no_examples(losses):
        total = _sum_all(losses)
        if reduction == "sum":
            return total if is_sum(total) else share_of_scalar(total)
        return share_of_scalar(total / prod(losses.shape) if losses._rank else total)
    if not losses._rank:
        return losses
    losses = as_examples(losses)
    if losses._shape == (0,):
        return losses
    if reduction in _MEANS:
        inverse, denominator = _denominator(losses, sample_weight, reduction)
        note_loss(losses, denominator if valid is None else valid)
        losses = losses * inverse
    total = _sum_all(losses)
    if reduction in _MEANS:
        setattr(total, _SHARE, True)
    return total


def _flat(values: Any) -> Tensor:
    """Return a tensor: of a ragged one, all its values."""
    x = convert_to_tensor(values)
    return x.flat_values if isinstance(x, RaggedTensor) else x


def holds_no_examples(losses: Tensor) -> bool:
    """Tell if the examples were summed already: no axis counts them, and all sizes are known."""
    return examples_axis(losses) is None and None not in sizes_but_counts(losses)


def is_sum(value: Tensor) -> bool:
    """Tell if a replica's scalar is the sum over its examples, a part of that over all."""
    trace, batches = _core.current_trace(), _context.current().batches
    if trace is None or not batches:
        return False
    share = value / tf.cast(elements_of(batches[0], (0,), True), value._dtype)
    return bool(trace.loss_normalization(share) == "share")


def _denominator(
    losses: Tensor, sample_weight: Any, reduction: str | None
) -> tuple[Tensor, Tensor]:
    """Return the factor of the sum of the losses, and its reciprocal."""
    of_all = _context.get_replica_context() is not None
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        total = _total(as_examples(_flat(sample_weight)))
        return _inverse(total, losses), total
    number = elements_of(losses, tuple(range(losses._rank)), of_all)
    count = inverse_of(number, losses)
    zero = convert_to_tensor(0.0, losses._dtype)
    return _ops.select(tf.math.is_finite(count), count, zero), number  # of no examples at all: 0


def _total(values: Tensor) -> Tensor:
    """The sum over all replicas."""
    own = _sum_all(values)
    total: Tensor = own if _context.get_replica_context() is None else all_reduce_sum(own)
    return total


def _valid(mask: Any, dtype: Any) -> Tensor:
    return _total(as_examples(convert_to_tensor(mask, dtype)))


def _inverse(total: Tensor, losses: Tensor) -> Tensor:
    zero = convert_to_tensor(0.0, total._dtype)
    return tf.cast(_ops.select(total == zero, zero, _ops.reciprocal(total)), losses._dtype)


def apply_mask(sample_weight: Any, mask: Any, dtype: Any, reduction: str | None) -> Any:
    """The weights with a mask, which counts what is valid on all replicas.

    Args:
        sample_weight: None, or weights that broadcast against the mask.
        mask: None, or one bool (or 0 and 1) per value.
        dtype: Of the result.
        reduction: For "mean" and "sum_over_batch_size" what is valid weighs total / valid.

    Raises:
        ValueError: The weights do not broadcast against the mask.
    """
    if mask is None:
        return sample_weight
    kept = as_examples(convert_to_tensor(mask, dtype))
    if reduction in _COUNTS:
        of_all = _context.get_replica_context() is not None
        ones = _ops.full_like(kept, value=1.0)
        total = _ops.reciprocal(inverse_count(ones, of_all))
        weight = total * _inverse(_total(kept), kept)
        kept = _ops.select(tf.cast(kept, "bool"), weight, convert_to_tensor(0.0, dtype))
    if sample_weight is None:
        return kept
    weights = convert_to_tensor(sample_weight, dtype)
    kept, weights = _loss.squeeze_or_expand_to_same_rank(kept, weights)
    check_weights(weights, kept, "mask of the predictions, from mask_zero or Masking")
    return weights * kept


def check_weights(weights: Any, values: Any, what: str) -> None:
    """Raise ValueError for weights that do not broadcast against what they are multiplied by.

    Example:
        >>> check_weights(tf.ones((4, 1)), tf.ones((4, 3)), "loss")
    """
    pairs = zip(*map(_sizes_from_last, (weights, values)), strict=False)
    if all(a == b or 1 in (a, b) or (None in (a, b) and _OPEN not in (a, b)) for a, b in pairs):
        return
    remedy = "give one weight for each position"
    if weights._rank == 1:
        axes = ", ".join([":", *["None"] * (values._rank - 1)])
        remedy = f"pass sample_weight[{axes}] for one weight per example"
    raise ValueError(
        f"[sample_weight] weights must broadcast against the {what}: got "
        f"{shape_text(static_shape(weights))} against {shape_text(static_shape(values))}; {remedy}."
    )


def _sizes_from_last(x: Any) -> list[int | str | None]:
    """Return the sizes, `_OPEN` for an open number of examples: no other axis has that size."""
    counted = examples_axis(x)
    sizes = [_OPEN if i == counted and size is None else size for i, size in enumerate(x._shape)]
    return sizes[::-1]


def _sum_all(x: Tensor) -> Tensor:
    return _ops.reduce_sum(x, axes=tuple(range(x._rank)))


def share_of_scalar(loss: Any, who: str = "loss", remedy: str = _ROWS) -> Tensor:
    """A replica's share of a loss that is a scalar already.

    The traced step shows how its examples were averaged: a mean over the replica's examples weighs
    as many as they are of all; what is equal on all replicas is divided by their number; a share
    of the mean over all examples stays what it is. Of another function of sums and means over
    the replica's examples, as the weighted mean sum(w * l) / sum(w) is, the share is that of the
    same function of the sums over all examples.

    Args:
        loss: A scalar, or a structure's sum of such.
        who: What is given it, for messages.
        remedy: What is to be given instead, for messages.

    Raises:
        ValueError: The step shows nothing of the kind.
    """
    value = convert_to_tensor(loss)
    trace = _core.current_trace()
    if _context.exporting() and not getattr(value, _SHARE, False):
        value = _context.note_one_replica(f"{who}, a scalar", value)
    if not in_replica_of_several() or trace is None:
        return value
    scale = trace.loss_normalization(value)
    if scale == "share" or getattr(value, _SHARE, False):
        return value
    common = scale == "unknown" and not value._varying
    if common or scale in ("common", "times_replicas"):
        return tf.nn.scale_regularization_loss(value)
    if scale == "mean" and _context.current().batches:
        return _by_examples(value)
    whole = None if is_sum(value) else trace.over_all_replicas(value)
    if whole is None:
        raise ValueError(
            f"[{who}] on several replicas a scalar must be a mean over the examples, a function of "
            f"such means and sums, or equal on all replicas: the step shows none of it of the one "
            f"given; {remedy}."
        )
    return tf.nn.scale_regularization_loss(whole)


def _by_examples(value: Tensor) -> Tensor:
    """The part of a value that the replica's examples are of all; 0 for none, whose mean is NaN."""
    batch = _context.current().batches[0]
    own = elements_of(batch, (0,), False)
    part = tf.cast(own, "float64") / tf.cast(elements_of(batch, (0,), True), "float64")
    zero = convert_to_tensor(0.0, value._dtype)
    return _ops.select(own > 0, value * tf.cast(part, value._dtype), zero)


def sum_of_all(values: Any, axis: Any = None) -> Tensor:
    """Sum along axes; along that of the examples over those of all replicas.

    Args:
        values: A value or more for each example of the replica.
        axis: One, several or None for all.
    """
    x = as_examples(convert_to_tensor(values))
    total = tf.reduce_sum(x, axis)
    given = range(x._rank) if axis is None else [axis] if isinstance(axis, int) else axis
    over_examples = examples_axis(x) in [a % x._rank for a in given]
    if _context.exporting() and holds_no_examples(x):
        total = _context.note_one_replica("a sum without an axis of examples", total)
    return all_reduce_sum(total) if over_examples else total


def all_of_all(x: Any) -> Any:
    """Return whether all elements are true, on all replicas.

    Args:
        x: Bools of the replica's examples.
    """
    if _context.reducing_context() is None:
        return tf.reduce_all(x)
    return sum_of_all(tf.cast(tf.logical_not(x), "float32")) == 0


def value_of_all(share: Any) -> Tensor:
    """The sum of the replicas' shares, on each of them."""
    total: Tensor = all_reduce_sum(convert_to_tensor(share))
    return total
