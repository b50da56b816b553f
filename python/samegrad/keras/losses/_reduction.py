"""What a loss object makes of the values of the examples."""

from __future__ import annotations

from samegrad import _core
from samegrad._choice import TextChoice
from samegrad._context import has_strategy, in_cross_replica_context
from samegrad._shown import shown
from samegrad._tensor import Tensor, TensorLike
from samegrad.nn._loss_scaling import expand_weights, inverse_count

_ops = _core.ops


class Reduction(TextChoice):
    """What a loss object makes of the values of the examples.

    Attributes:
        AUTO: SUM_OVER_BATCH_SIZE.
        NONE: Nothing: the values themselves.
        SUM: Their sum.
        SUM_OVER_BATCH_SIZE: Their mean. Not under a strategy, where it would be the mean of one
            replica's examples.
        GLOBAL_MEAN: This replica's share of the mean over the examples of all replicas: the sum
            of the shares is the mean.

    Example:
        >>> Reduction("none") is Reduction.NONE
        True
    """

    AUTO = "auto"
    NONE = "none"
    SUM = "sum"
    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    GLOBAL_MEAN = "global_mean"


def as_reduction(who: str, value: Reduction | str) -> Reduction:
    """The reduction of that name.

    Raises:
        ValueError: There is none.

    Example:
        >>> as_reduction("Loss", "SUM")
        <Reduction.SUM: 'sum'>
    """
    try:
        return Reduction(value.lower() if isinstance(value, str) else value)
    except ValueError:
        names = ", ".join(repr(reduction.value) for reduction in Reduction)
        raise ValueError(f"[{who}] reduction must be one of {names}: got {shown(value)}.") from None


def reduce_losses(
    who: str, losses: Tensor, sample_weight: TensorLike | None, reduction: Reduction
) -> Tensor:
    """The losses times the weights, reduced.

    Each value is multiplied by 1 / (number of values) before they are added down the tree of the
    examples, so that a mean has the same bits for any number of replicas.

    Raises:
        ValueError: The reduction would be that of one replica only, or the weights do not fit.

    Example:
        >>> import samegrad as tf
        >>> float(reduce_losses("doc", tf.constant([1.0, 3.0]), None, Reduction.AUTO))
        2.0
    """
    local_mean = reduction in (Reduction.AUTO, Reduction.SUM_OVER_BATCH_SIZE)
    if local_mean and has_strategy():
        raise ValueError(
            f"[{who}] under a strategy the mean over one replica's examples is not the mean over "
            f"the batch: got reduction={reduction.value!r}; use Reduction.NONE with "
            "samegrad.nn.compute_average_loss, Reduction.SUM, or Reduction.GLOBAL_MEAN."
        )
    if sample_weight is not None:
        losses = losses * expand_weights(who, sample_weight, losses)
    if reduction is Reduction.NONE:
        return losses
    if reduction is not Reduction.SUM:
        of_all = reduction is Reduction.GLOBAL_MEAN and not in_cross_replica_context()
        losses = losses * inverse_count(losses, of_all)
    return _ops.reduce_sum(losses, axes=tuple(range(losses._rank)))
