"""One denominator for the losses of all replicas.

Inside `Strategy.run` a loss is the replica's share: the sum of the shares is the global value, and
the gradients that the optimizer sums are right. Each element is multiplied by 1 / (global
denominator) before the elements are added down the tree of the examples, so that the reported
loss has the same bits for any number of replicas.
"""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._autodiff.loss_normalization_check import report
from samegrad._base.dtypes import as_dtype
from samegrad._base.location import warn
from samegrad._base.shown import shown
from samegrad._base.tree import map_structure
from samegrad._context import state as _context
from samegrad._context.counted_numbers import counted, counts_of
from samegrad._tensor.example_axis import as_examples, examples_axis
from samegrad._tensor.sizes import sizes_but_counts
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, is_tensor

_ops = _core.ops
_REMEDY = "leave it out, and the examples of all replicas are counted"


def compute_average_loss(
    per_example_loss: TensorLike,
    sample_weight: TensorLike | None = None,
    global_batch_size: int | Tensor | None = None,
) -> Tensor:
    """Average per-example losses over the global batch, on each replica.

    The result is sum(loss * weight) / (examples of all replicas), so the sum over the replicas is
    the mean loss. The weights do not count in the denominator: see `compute_weighted_mean_loss` for
    that. A metric `Mean` that is fed these per-replica losses shows the mean loss divided by the
    number of replicas. Feed it the per-example losses instead.

    Args:
        per_example_loss: Floats of shape [n, ...], one or more values per example.
        sample_weight: Factors: a scalar, [n] or [n, ...].
        global_batch_size: The number of examples of all replicas. None counts them, also when the
            per-replica batches are unequal or empty. 0 gives 0.

    Returns:
        A scalar in the dtype of the losses.

    Raises:
        RuntimeError: Called in cross-replica context without `global_batch_size`.
        ValueError: The loss is a scalar, the weights do not fit, or the batch size is negative or
            not a scalar.
        TypeError: The batch size is not an integer.

    Example:
        >>> float(compute_average_loss([1.0, 2.0, 3.0, 6.0]))
        3.0
    """
    who = "compute_average_loss"
    if global_batch_size is None:
        _check_not_cross_replica(who, "or give global_batch_size")
    losses = _loss_tensor(who, per_example_loss)
    if losses._rank > 1:
        warn(
            f"[{who}] the loss has {losses._rank} axes and is divided by the number of examples "
            f"only: {_of_axes(losses)}."
        )
    if sample_weight is not None:
        losses = losses * expand_weights(who, sample_weight, losses)
    if global_batch_size is None:
        factor: Tensor | float = inverse_of(elements_of(losses, (0,), True), losses)
    else:
        factor = _inverse_batch_size(who, global_batch_size, losses)
    return _sum_all(losses * factor)


def _of_axes(losses: Tensor) -> str:
    """Say why a loss per example has several axes, and what to do."""
    if losses._rank == 2 and losses._dim(0) == losses._dim(1) != 1:
        return (
            f"got shape {losses.shape}, as of labels of shape (n,) that broadcast against "
            "predictions of shape (n, 1); give both one shape, e.g. by tf.squeeze(predictions, "
            "axis=-1)"
        )
    return "average the inner axes first, or use compute_weighted_mean_loss"


def compute_weighted_mean_loss(losses: TensorLike, weights: TensorLike) -> Tensor:
    """Compute this replica's part of sum(weight * loss) / sum(weight) over all replicas.

    The weights define what counts: examples, tokens, unmasked pixels. The per-replica batches may
    be unequal or empty. The sum over the replicas is the weighted mean.

    Args:
        losses: Floats of shape [n, ...], one or more values per example.
        weights: Factors, [n] or [n, ...].

    Returns:
        A scalar in the dtype of the losses; 0 if all weights are 0.

    Raises:
        RuntimeError: Called in cross-replica context.
        ValueError: The loss is a scalar, or the weights do not fit.

    Example:
        >>> float(compute_weighted_mean_loss([1.0, 5.0, 9.0], [1.0, 1.0, 0.0]))
        3.0
    """
    who = "compute_weighted_mean_loss"
    _check_not_cross_replica(who)
    values = _loss_tensor(who, losses)
    factors = _ops.broadcast_like(expand_weights(who, weights, values), values)
    total = all_reduce_sum(_sum_all(factors))
    zero = convert_to_tensor(0.0, values._dtype)
    inverse = _ops.select(total == zero, zero, _ops.reciprocal(total))
    return _sum_all(values * factors * inverse)


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """Divide the sum of regularization losses by the number of replicas.

    Every replica computes the same regularization loss of the weights. Summed over the replicas,
    the results are that loss, and their gradients its gradient, added once to that of the data.
    Both are bitwise identical to single-device training.

    Args:
        regularization_loss: A scalar, or a tensor or list of several losses. Losses of a replica's
            own examples are divided by the number of replicas. A per-replica loss, such as Keras's
            losses between weights, is not divided again.

    Returns:
        A scalar; 0 for an empty list.

    Raises:
        RuntimeError: Called in cross-replica context.

    Example:
        >>> float(scale_regularization_loss([1.0, 2.0]))
        3.0
    """
    _check_not_cross_replica("scale_regularization_loss")
    replicas = _context.replica_count()
    if replicas == 1 and not _context.exporting():
        return _sum_all(convert_to_tensor(regularization_loss))
    total = _sum_all(convert_to_tensor(regularization_loss))
    if total._varying and isinstance(regularization_loss, list | tuple):
        # Those that are equal on all replicas keep their bits beside those that are not.
        shares = map_structure(lambda loss: _share(loss, replicas), regularization_loss)
        return _sum_all(convert_to_tensor(shares))
    share: Tensor = _share(total, replicas)
    return share


def expand_weights(who: str, weights: TensorLike, losses: Tensor) -> Tensor:
    """Return the weights in the losses' dtype, with axes so that they broadcast against them.

    Raises:
        ValueError: They do not fit.

    Example:
        >>> expand_weights("loss", [1, 2], convert_to_tensor([[1.0], [2.0]]))._shape
        (2, 1)
    """
    w = as_examples(weights)
    if w._dtype != losses._dtype:
        w = _ops.cast(w, dtype=losses._dtype)
    if w._rank == losses._rank + 1 and w.shape[-1] == 1:
        w = _ops.squeeze(w, axes=(-1,))
    if 0 < w._rank < losses._rank:
        w = _ops.expand_dims(w, axes=tuple(range(w._rank, losses._rank)))
    fits = w._rank <= losses._rank and all(
        a is None or b is None or a in (b, 1) for a, b in zip(w._shape, losses._shape, strict=False)
    )
    if not fits:
        raise ValueError(
            f"[{who}] weights must have the shape of the losses, or that of their leading axes: "
            f"got shapes {tuple(w._shape)} and {tuple(losses._shape)}."
        )
    return w


def inverse_count(losses: Tensor, of_all_replicas: bool) -> Tensor:
    """Return 1 / (number of elements) in the losses' dtype; infinite for no elements.

    Example:
        >>> float(inverse_count(convert_to_tensor([1.0, 2.0]), of_all_replicas=False))
        0.5
    """
    return inverse_of(elements_of(losses, tuple(range(losses._rank)), of_all_replicas), losses)


def elements_of(x: Tensor, axes: tuple[int, ...], of_all_replicas: bool) -> Tensor:
    """Return the number of elements along axes, int64.

    Example:
        >>> int(elements_of(convert_to_tensor([1.0, 2.0]), (0,), of_all_replicas=True))
        2
    """
    place = examples_axis(x)
    sizes = sizes_but_counts(x)
    if of_all_replicas and any(sizes[a] is None and a != place for a in axes):
        total: Tensor = all_reduce_sum(_ops.size_of(x, axes=axes))
        return total
    count = _ops.global_size_of if of_all_replicas else _ops.size_of
    return count(x, axes=axes)


def all_reduce_sum(value: Any) -> Any:
    """Return the sums over replicas of (a list of) tensors; in cross-replica context the tensors.

    Example:
        >>> float(all_reduce_sum(convert_to_tensor(2.0)))
        2.0
    """
    if _context.in_cross_replica_context():
        return value
    context = _context.reducing_context()
    if context is None:
        return map_structure(convert_to_tensor, value)
    return context.all_reduce("sum", value)


def _share(loss: Any, replicas: int) -> Any:
    if isinstance(loss, int | float):
        return loss / replicas
    loss = convert_to_tensor(loss)
    if loss._varying or not as_dtype(loss._dtype).is_floating:
        return loss if _is_share(loss) else loss / counted(replicas, replicas=1)
    return _ops.replica_share(loss)


def _is_share(loss: Tensor) -> bool:
    trace = _core.current_trace()
    return trace is not None and not loss._rank and trace.loss_normalization(loss) == "share"


def _sum_all(x: Tensor) -> Tensor:
    return _ops.reduce_sum(x, axes=tuple(range(x._rank)))


def inverse_of(count: Tensor, losses: Tensor) -> Tensor:
    """Return 1 / count in the losses' dtype."""
    return _ops.cast(_ops.reciprocal(_ops.cast(count, dtype="float64")), dtype=losses._dtype)


def _loss_tensor(who: str, value: TensorLike) -> Tensor:
    losses = as_examples(value)
    if losses._rank == 0:
        raise ValueError(
            f"[{who}] a loss per example is needed: got a scalar; make the loss with "
            "reduction=samegrad.keras.losses.Reduction.NONE."
        )
    if as_dtype(losses._dtype).is_floating:
        return losses
    return _ops.cast(losses, dtype="float32")


def _inverse_batch_size(who: str, size: int | Tensor, losses: Tensor) -> Tensor | float:
    if is_tensor(size):
        return _inverse_tensor(who, convert_to_tensor(size), losses)
    if isinstance(size, list | tuple) or getattr(size, "ndim", 0) > 0:
        raise ValueError(
            f"[{who}] global_batch_size must be one number: got {shown(size)}; {_REMEDY}."
        )
    try:
        number = size.__index__()
    except AttributeError:
        raise TypeError(
            f"[{who}] global_batch_size must be an integer: got {shown(size)}; {_REMEDY}."
        ) from None
    counts_of(size)  # it has arrived
    if number < 0:
        raise ValueError(
            f"[{who}] global_batch_size must not be negative: got {number}; {_REMEDY}."
        )
    own, of_all = losses._traced_examples or (0, 0)
    if 0 < own == number < of_all:  # the batch of one replica
        given = f"got global_batch_size={number}, the examples of one of {of_all // own} replicas"
        report([("mean_then_sum", _core.user_line())], f"{given}, which have {of_all} together")
    return counted(1.0 / number, examples=-1) if number else 0.0


def _inverse_tensor(who: str, size: Tensor, losses: Tensor) -> Tensor | float:
    if size._rank:
        raise ValueError(
            f"[{who}] global_batch_size must be one number: got shape {tuple(size._shape)}; "
            f"{_REMEDY}."
        )
    if not as_dtype(size._dtype).is_integer:
        raise TypeError(
            f"[{who}] global_batch_size must be an integer: got {size._dtype}; {_REMEDY}."
        )
    if not size._symbolic:
        return _inverse_batch_size(who, int(size), losses)
    zero = convert_to_tensor(0.0, losses._dtype)
    return _ops.select(size > 0, inverse_of(size, losses), zero)


def _check_not_cross_replica(who: str, remedy: str = "") -> None:
    if _context.in_cross_replica_context():
        raise RuntimeError(
            f"[{who}] it needs a replica's values: got called in cross-replica context; call it "
            f"in the function given to strategy.run{remedy and ', ' + remedy}."
        )
