"""Texts of the loss normalization failure modes that the check of a traced program finds.

The package samegrad-doctor names the same failure modes in the same words (a test compares them).
"""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """Texts of a failure mode.

    Args:
        name: A short name.
        sentence: A description.
        formula: The weight of an example.
        fix: The remedy.
    """

    name: str
    sentence: str
    formula: str
    fix: str


# By the keys of the engine.
PROGRAM_FAILURE_MODES: dict[str, Words] = {
    "mean_then_sum": Words(
        "mean per replica, then sum",
        "each replica divides by its own examples, and the replicas are summed: the update is"
        " too large by a factor of R, the number of replicas",
        "w_i / W_r  instead of  w_i / W",
        "divide by the global batch size: nn.compute_average_loss(losses), or by the tokens "
        "of all replicas: nn.compute_weighted_mean_loss(losses, mask)",
    ),
    "share_then_mean": Words(
        "divided by the global batch, then averaged",
        "losses are already divided by the global batch size, and the replicas' gradients are"
        " averaged instead of summed: the update is too small by a factor of R, the number of"
        " replicas",
        "w_i / (W R)  instead of  w_i / W",
        "sum the per-replica losses (reduce SUM), and divide each loss by the global batch "
        "size, once",
    ),
    "regularization": Words(
        "regularisation counts once on every replica",
        "a term that belongs to no example (regularisation, an auxiliary loss) counts once on"
        " every replica, where one device has it once; each replica adds it, or a blanket "
        "factor of the world size hits it that is meant for the data",
        "β ∇Ω with β other than 1",
        "divide it by the number of replicas on each of them: nn.scale_regularization_loss(losses)",
    ),
    "times_replicas": Words(
        "multiplied by the replicas",
        "the update of the whole batch is multiplied by the number of replicas: a factor that"
        " nothing divides again, a learning rate that grows with the replicas, or the "
        "gradient of a loss that is all-reduced already (the adjoint of an all-reduce is an "
        "all-reduce)",
        "w_i R / W  instead of  w_i / W",
        "remove the factor, or differentiate only the per-replica loss, and sum the gradients",
    ),
    "penalty": Words(
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another "
        "count: mean per replica, then sum",
        "a term of the examples has a count of its own (which of the two is which cannot be "
        "told from their sum): each replica divides by its own examples, and the replicas are"
        " summed: the update is too large by a factor of R, the number of replicas; the rest "
        "is correct",
        "w_i / W_r  instead of  w_i / W",
        "for that part: divide by the global batch size: nn.compute_average_loss(losses), or "
        "by the tokens of all replicas: nn.compute_weighted_mean_loss(losses, mask)",
    ),
    "mean_of_means": Words(
        "mean of the replicas' means",
        "each replica averages its own examples (or local examples times replicas divide), "
        "and every replica gets the same weight regardless of its number of examples",
        "w_i / (R W_r)  instead of  w_i / W",
        "divide by the examples of all replicas, and leave out the division by the replicas: "
        "nn.compute_average_loss(per_example, global_batch_size=...)",
    ),
    "nonlinear_share": Words(  # shows in no update by itself
        "a per-replica sum is used as the global sum",
        "a nonlinear function (a root, a square, clipping) is applied to a per-replica sum; "
        "the sum of the results is not the function of the global sum",
        "Σ_r f(s_r)  instead of  f(Σ_r s_r)",
        "all-reduce first; clip gradients after they are summed: samegrad's optimizers take "
        "clipnorm and global_clipnorm",
    ),
}
