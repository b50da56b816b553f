"""Mistakes that show in a traced program before it runs, by the keys that the engine gives them.

The words are the catalogue's; a row that belongs to no weights of examples is written here.
"""

from __future__ import annotations

from samegrad.testing._auxiliary import counted_regularization
from samegrad.testing._catalogue import CATALOGUE, Mistake

_ROWS = {row.name: row for row in CATALOGUE}

PROGRAM_MISTAKES: dict[str, Mistake] = {
    "mean_then_sum": _ROWS["mean per replica, then sum"],
    "share_then_mean": _ROWS["share of the global batch, then mean"],
    "regularization": counted_regularization("once on every replica"),
    "times_replicas": Mistake(
        "the loss is all-reduced before its gradient is taken",
        "every replica differentiates the loss of all of them, and the gradients are summed again: "
        "the update is as many times too large as there are replicas",
        "R w_i / W  instead of  w_i / W",
        "differentiate the replica's own share, and all-reduce the loss for the report only",
        lambda s: s.right * s.layout.replicas,
    ),
    "penalty": Mistake(
        "gradient penalty is averaged per replica",
        "the penalty of the gradients is divided by the replica's own examples, and the replicas "
        "are added: the penalty is as many times too strong as there are replicas",
        "Σ_r (1/n_r) Σ_i p_i  instead of  (1/N) Σ_i p_i",
        "divide the penalties by the examples of all replicas: nn.compute_average_loss(penalties)",
        lambda s: s.right,
    ),
    "nonlinear_share": Mistake(
        "a replica's share is used as if it were the whole",
        "a function that is not linear (a root, a square, a limit) is taken of one replica's share "
        "of a sum, and the sum of the results is not the function of the sum",
        "Σ_r f(s_r)  instead of  f(Σ_r s_r)",
        "all-reduce the share first; limit gradients after they are summed: samegrad's optimizers "
        "take clipnorm and global_clipnorm",
        lambda s: s.right,
    ),
    "share_in_mean_metric": Mistake(
        "a Mean metric is fed shares of the loss",
        "each replica's share is counted as a mean of its own, so that the metric reads the loss "
        "divided by the number of replicas",
        "(1/R) Σ_r s_r  instead of  Σ_r s_r",
        "feed the losses of the examples: metric.update_state(losses), or use a Sum",
        lambda s: s.right,
    ),
}
