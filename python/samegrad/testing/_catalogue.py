"""The mistakes of loss scaling: one row each, with the weights that they give to the examples.

A row predicts the effective weight of every example for a layout of the batch. The right weight is
w_i / W: the example's own weight (1 if none is given) by that of all examples of all replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector


@dataclass(frozen=True)
class Situation:
    """A layout, and the weights of the examples.

    Args:
        layout: Who has which examples.
        weights: One per example.
    """

    layout: Layout
    weights: Vector

    @property
    def right(self) -> Vector:
        """w_i / W."""
        return np.asarray(self.weights / self.weights.sum(), dtype=np.float64)

    def by_part(self, value: Callable[[float, float, Vector], Vector]) -> Vector:
        """value(weights of the replica, weights of the micro-batch, weights of its examples)."""
        found = np.zeros_like(self.weights)
        for share in self.layout.parts:
            of_replica = self.weights[[i for part in share for i in part]].sum()
            for part in share:
                own = self.weights[list(part)]
                if len(part):
                    found[list(part)] = value(of_replica, own.sum(), own)
        return found


Predict = Callable[[Situation], Vector]


@dataclass(frozen=True)
class Mistake:
    """A row of the catalogue.

    Args:
        name: A few words.
        sentence: What happens.
        formula: The weight that an example gets.
        fix: What to write instead.
        predict: The weights for a situation.
        fixed: Whether it also happens where a fixed number divides.
        micro: Whether it takes several micro-batches to happen.
        weighted: Whether it takes examples of different weight.
    """

    name: str
    sentence: str
    formula: str
    fix: str
    predict: Predict
    fixed: bool = False
    micro: bool = False
    weighted: bool = False


def _replicas(s: Situation) -> int:
    return s.layout.replicas


def _micro(s: Situation) -> int:
    return s.layout.micro_batches


def _largest(s: Situation) -> int:
    return max(s.layout.sizes)


def _only_last(s: Situation) -> Vector:
    found = np.zeros_like(s.weights)
    for share in s.layout.parts:
        last = list(share[-1])
        if last:
            found[last] = s.weights[last] / s.weights[last].sum() / _replicas(s)
    return found


def _only_last_global(s: Situation) -> Vector:
    last = [i for share in s.layout.parts for i in share[-1]]
    found = np.zeros_like(s.weights)
    found[last] = s.weights[last] / s.weights.sum()
    return found


def _first_replica(s: Situation) -> Vector:
    own = list(s.layout.examples[: s.layout.sizes[0]])
    found = np.zeros_like(s.weights)
    found[own] = s.weights[own] / s.weights[own].sum()
    return found


def _first_replica_of_all(s: Situation) -> Vector:
    own = list(s.layout.examples[: s.layout.sizes[0]])
    found = np.zeros_like(s.weights)
    found[own] = s.right[own]
    return found


def _filled_up(s: Situation) -> Vector:
    found = np.zeros_like(s.weights)
    for share in s.layout.parts:
        own = [i for part in share for i in part]
        if not own:
            continue
        seen = np.resize(np.arange(len(own)), _largest(s))
        found[own] = np.bincount(seen, minlength=len(own)) * s.weights[own]
    return np.asarray(found / (_replicas(s) * _largest(s)), dtype=np.float64)


def _without_last_replica(s: Situation) -> Vector:
    found: Vector = s.right.copy()
    if _replicas(s) > 1:
        found[[i for part in s.layout.parts[-1] for i in part]] = 0.0
    return found


_SUM = "sum the shares (reduce SUM), and divide each loss by the count of the global batch, once"

CATALOGUE: tuple[Mistake, ...] = (
    Mistake(
        "mean per replica, then sum",
        "each replica divides by its own examples, and the replicas are added: the update is as "
        "many times too large as there are replicas",
        "w_i / W_r  instead of  w_i / W",
        "divide by the examples of all replicas: nn.compute_average_loss(losses)",
        lambda s: s.by_part(lambda of_r, _, own: own / of_r),
    ),
    Mistake(
        "share of the global batch, then mean",
        "losses are divided by the global batch already, and the replicas' gradients are averaged "
        "instead of added: the update is too small by the number of replicas",
        "w_i / (W R)  instead of  w_i / W",
        _SUM,
        lambda s: s.right / _replicas(s),
        fixed=True,
    ),
    Mistake(
        "mean of the replicas' means",
        "each replica averages its own examples (or local examples times replicas divide), and "
        "the replicas count alike, however many examples they have",
        "w_i / (R W_r)  instead of  w_i / W",
        "divide by the true count of all replicas (all-reduce the counts), then sum",
        lambda s: s.by_part(lambda of_r, _, own: own / of_r) / _replicas(s),
    ),
    Mistake(
        "mean per replica, then divided by the replicas twice",
        "the replicas' means are averaged, and the loss had been divided by the number of "
        "replicas before",
        "w_i / (R² W_r)  instead of  w_i / W",
        _SUM,
        lambda s: s.by_part(lambda of_r, _, own: own / of_r) / _replicas(s) ** 2,
    ),
    Mistake(
        "divided by examples instead of weights",
        "weighted losses are divided by the number of examples of the global batch, not by the "
        "sum of their weights",
        "w_i / N  instead of  w_i / W",
        "divide by the sum of the weights: nn.compute_weighted_mean_loss(losses, weights)",
        lambda s: s.weights / len(s.weights),
        weighted=True,
    ),
    Mistake(
        "divided by the local number of examples instead of weights",
        "each replica divides weighted losses by its number of examples, and the replicas are "
        "averaged",
        "w_i / (R n_r)  instead of  w_i / W",
        "divide by the sum of the weights of all replicas: nn.compute_weighted_mean_loss",
        lambda s: (
            s.by_part(lambda _r, _k, own: own)
            / np.array([_share_size(s, i) for i in range(len(s.weights))])
            / _replicas(s)
        ),
        weighted=True,
    ),
    Mistake(
        "padding counts as examples",
        "every share is padded to the largest one, and the padded length divides",
        "w_i / (R max n_r)  instead of  w_i / W",
        "count what is not padding, over all replicas: nn.compute_weighted_mean_loss(losses, mask)",
        lambda s: s.weights / (_replicas(s) * _largest(s)),
    ),
    Mistake(
        "micro-batches are not divided",
        "the means of the micro-batches are added up without dividing by their number",
        "w_i / (R W_rk)  instead of  w_i / W",
        "add up sums and counts, and divide once: keras.optimizers.GradientAccumulator",
        lambda s: s.by_part(lambda _r, of_k, own: own / of_k) / _replicas(s),
        micro=True,
    ),
    Mistake(
        "micro-batches are divided twice",
        "losses are divided by the count of the whole window, and by the number of micro-batches "
        "again",
        "w_i / (W K)  instead of  w_i / W",
        "leave out the division by the number of micro-batches",
        lambda s: s.right / _micro(s),
        fixed=True,
        micro=True,
    ),
    Mistake(
        "mean of the micro-batches' means",
        "every micro-batch of every replica counts alike, however many examples it has",
        "w_i / (R K W_rk)  instead of  w_i / W",
        "add up sums and counts, and divide once: keras.optimizers.GradientAccumulator",
        lambda s: s.by_part(lambda _r, of_k, own: own / of_k) / (_replicas(s) * _micro(s)),
        micro=True,
    ),
    Mistake(
        "means of micro-batches are added over replicas",
        "micro-batches are averaged on each replica, and the replicas are added",
        "w_i / (K W_rk)  instead of  w_i / W",
        "divide by the count of all replicas and micro-batches, once",
        lambda s: s.by_part(lambda _r, of_k, own: own / of_k) / _micro(s),
        micro=True,
    ),
    Mistake(
        "means of micro-batches are added up everywhere",
        "each micro-batch divides by its own examples, and all of all replicas are added",
        "w_i / W_rk  instead of  w_i / W",
        "divide by the count of all replicas and micro-batches, once",
        lambda s: s.by_part(lambda _r, of_k, own: own / of_k),
        micro=True,
    ),
    Mistake(
        "only the last micro-batch is kept",
        "gradients are overwritten instead of added up, so that the last micro-batch alone counts",
        "0 but for the last micro-batch",
        "add the gradients up, and reset them after the update only",
        _only_last,
        micro=True,
    ),
    Mistake(
        "the other micro-batches are lost",
        "losses are divided by the whole window, but the gradients of the last micro-batch alone "
        "reach the update",
        "w_i / W for the last micro-batch, 0 for the others",
        "add the gradients up, and reset them after the update only",
        _only_last_global,
        fixed=True,
        micro=True,
    ),
    Mistake(
        "the replicas are not reduced",
        "the update is that of the first replica alone",
        "w_i / W_0 on replica 0, 0 elsewhere",
        "sum the gradients over the replicas before the update",
        _first_replica,
    ),
    Mistake(
        "the replicas are not reduced, though divided by all",
        "losses are divided by the global batch, but the first replica's gradient alone is applied",
        "w_i / W on replica 0, 0 elsewhere",
        "sum the gradients over the replicas before the update",
        _first_replica_of_all,
        fixed=True,
    ),
    Mistake(
        "shares are filled up by repeating examples",
        "every share is made as long as the largest one by examples that it has already, as a "
        "sampler does that wants equal shares; repeated examples count twice",
        "m_i / (R max n_r), m_i being how often the example is seen",
        "leave shares uneven and divide by the true count, or give repeated examples the weight 0",
        _filled_up,
    ),
    Mistake(
        "the last replica is left out",
        "losses are divided by the global batch, but the gradient of the last replica does not "
        "reach the sum",
        "w_i / W, 0 on the last replica",
        "reduce over all replicas, also over those that began late or stopped early",
        _without_last_replica,
        fixed=True,
    ),
    Mistake(
        "summed and not divided",
        "losses are added up and divided by nothing",
        "w_i  instead of  w_i / W",
        "divide by the count of the global batch: nn.compute_average_loss(losses)",
        lambda s: s.weights.copy(),
    ),
)


def _share_size(s: Situation, example: int) -> int:
    for share in s.layout.parts:
        if any(example in part for part in share):
            return sum(map(len, share))
    return 1
