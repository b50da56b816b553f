"""Mistakes that show in a traced program before it runs, by the keys that the engine gives them.

The words are the catalogue's; a mistake that no update shows by itself is written here.
"""

from __future__ import annotations

from samegrad.testing._auxiliary import counted_regularization
from samegrad.testing._catalogue import CATALOGUE, Mistake
from samegrad.testing._probes import part_with

_ROWS = {row.name: row for row in CATALOGUE}
_MEAN_THEN_SUM = _ROWS["mean per replica, then sum"]
_SHARE_THEN_MEAN = _ROWS["share of the global batch, then mean"]

PROGRAM_MISTAKES: dict[str, Mistake] = {
    "mean_then_sum": _MEAN_THEN_SUM,
    "share_then_mean": _SHARE_THEN_MEAN,
    "regularization": counted_regularization("once on every replica"),
    "times_replicas": _ROWS["multiplied by the replicas"],
    "penalty": part_with(None, _MEAN_THEN_SUM),
    "nonlinear_share": Mistake(
        "a replica's share is used as if it were the whole",
        "a function that is not linear (a root, a square, a limit) is taken of one replica's share "
        "of a sum, and the sum of the results is not the function of the sum",
        "Σ_r f(s_r)  instead of  f(Σ_r s_r)",
        "all-reduce the share first; limit gradients after they are summed: samegrad's optimizers "
        "take clipnorm and global_clipnorm",
    ),
}
