"""Mistakes over replicas: how often a share is divided, and who reaches the sum."""

from __future__ import annotations

import numpy as np

from samegrad._base.mistakes import MEAN_THEN_SUM, SHARE_THEN_MEAN, SUM_SHARES, TIMES_REPLICAS
from samegrad.testing._catalogue._situation import Mistake, Situation
from samegrad.testing._updates import Vector


def _first(s: Situation) -> Vector:
    return np.asarray(s.replica == 0, dtype=np.float64)


def _without_last(s: Situation) -> Vector:
    return np.where((s.replica == s.replicas - 1) & (s.replicas > 1), 0.0, s.right)


def _of_first(s: Situation) -> float:
    """W_0, or that of the first replica that has examples."""
    return float(s.weights[s.replica == s.replica.min()].sum())


REPLICAS: tuple[Mistake, ...] = (
    Mistake(
        *MEAN_THEN_SUM,
        lambda s: s.weights / s.of_replica,
    ),
    Mistake(
        *SHARE_THEN_MEAN,
        lambda s: s.right / s.replicas,
        fixed=True,
        report="it is divided by the replicas, as a Mean metric does that is fed with shares",
    ),
    Mistake(
        "mean of the replicas' means",
        "each replica averages its own examples (or local examples times replicas divide), and "
        "every replica gets the same weight regardless of its number of examples",
        "w_i / (R W_r)  instead of  w_i / W",
        "divide by the true count of all replicas (all-reduce the counts), then sum",
        lambda s: s.weights / s.of_replica / s.active,
        report="every replica (or batch) gets the same weight regardless of its number of examples",
    ),
    Mistake(
        "mean per replica, then divided by the replicas twice",
        "the replicas' means are averaged, and the loss had been divided by the number of "
        "replicas before",
        "w_i / (R² W_r)  instead of  w_i / W",
        SUM_SHARES,
        lambda s: s.weights / s.of_replica / s.replicas**2,
    ),
    Mistake(
        *TIMES_REPLICAS,
        lambda s: s.right * s.replicas,
        fixed=True,
        report="it is multiplied by the replicas",
    ),
    Mistake(
        "the replicas are not reduced",
        "the update is that of the first replica alone",
        "w_i / W_0 on replica 0, 0 elsewhere",
        "sum the gradients over the replicas before the update",
        lambda s: _first(s) * s.weights / s.of_replica,
        report="it is that of the first replica alone",
    ),
    Mistake(
        "the replicas are not reduced, though divided by all",
        "losses are divided by the global batch, but the first replica's gradient alone is applied",
        "w_i / W on replica 0, 0 elsewhere",
        "sum the gradients over the replicas before the update",
        lambda s: _first(s) * s.right,
        fixed=True,
        report="it is the share of the first replica alone",
    ),
    Mistake(
        "only the last replica is kept",
        "replicas overwrite each other instead of being added, so that the last one alone counts",
        "w_i / W_R on the last replica, 0 elsewhere",
        "sum the gradients over the replicas before the update",
        lambda s: (s.replica == s.replica.max()) * s.weights / s.of_replica,
        report="it is that of the last replica alone",
    ),
    Mistake(
        "shares are weighted by their counts twice",
        "each replica gives a sum, and is weighted by its count as if it gave a mean",
        "w_i W_r / Σ W_r²  instead of  w_i / W",
        "weight means by counts, or add sums: not both",
        lambda s: s.weights * s.of_replica / (s.weights @ s.of_replica),
    ),
    Mistake(
        "the last replica is left out",
        "losses are divided by the global batch, but the gradient of the last replica does not "
        "reach the sum",
        "w_i / W, 0 on the last replica",
        "reduce over all replicas, also over those that began late or stopped early",
        _without_last,
        fixed=True,
    ),
    Mistake(
        "divided by the count of the first replica",
        "every replica divides by the examples that the first one has, and the replicas are "
        "averaged",
        "w_i / (R W_0)  instead of  w_i / W",
        "all-reduce the counts, and divide by their sum",
        lambda s: s.weights / (s.replicas * _of_first(s)),
    ),
    Mistake(
        "join with the initial world size",
        "replicas that have no examples left still count in the divisor, so that the others are "
        "scaled down",
        "w_i A / (W R), A of R replicas having examples",
        "divide by the count of the examples that are there: all-reduce it in each step",
        lambda s: s.right * s.active / s.replicas,
        fixed=True,
        empty=True,
    ),
    Mistake(
        "join with the initial world size, of the replicas' means",
        "each replica averages its own examples, and the sum of the means is divided by all "
        "replicas, also by those that have no examples left",
        "w_i / (R W_r)  instead of  w_i / W, also where a replica is empty",
        "divide by the true count of all replicas (all-reduce the counts), then sum",
        lambda s: s.weights / s.of_replica / s.replicas,
        empty=True,
    ),
)
