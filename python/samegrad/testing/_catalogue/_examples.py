"""Mistakes about examples: weights and tokens, padding, and samples that come twice or never."""

from __future__ import annotations

import numpy as np

from samegrad.testing._catalogue._situation import Mistake, Situation
from samegrad.testing._updates import Vector


def _seen_in_filled(s: Situation) -> Vector:
    """How often an example is seen where each share is as long as the largest one."""
    seen = np.zeros_like(s.weights)
    for share in s.layout.parts:
        own = [i for part in share for i in part]
        if own:
            places = np.resize(np.arange(len(own)), s.largest)
            seen[own] = np.bincount(places, minlength=len(own))
    return seen


def _seen_by_sampler(s: Situation) -> Vector:
    """How often an example is seen where the first ones are repeated until shares are even."""
    count = len(s.weights)
    seen = np.ones(count)
    for place in range(-count % s.replicas):
        seen[s.layout.examples[place % count]] += 1
    return seen


def _without_rest(s: Situation) -> Vector:
    """1, but 0 for the examples that are over where shares are even."""
    count = len(s.weights)
    kept = np.ones(count)
    if count >= s.replicas:
        kept[list(s.layout.examples[count - count % s.replicas :])] = 0
    return kept


def _normed(s: Situation, seen: Vector) -> Vector:
    return np.asarray(seen * s.weights / (seen @ s.weights), dtype=np.float64)


_COUNT_TOKENS = "divide by the sum of the weights: nn.compute_weighted_mean_loss(losses, weights)"
_COUNT_ALL = "divide by the sum of the weights of all replicas: nn.compute_weighted_mean_loss"
_MASK = "count what is not padding, over all replicas: nn.compute_weighted_mean_loss(losses, mask)"
_NO_REPEAT = (
    "leave shares uneven and divide by the true count, or give repeated examples the weight 0"
)

EXAMPLES: tuple[Mistake, ...] = (
    Mistake(
        "divided by examples instead of weights",
        "weighted losses are divided by the number of examples of the global batch, not by the "
        "sum of their weights (or each example is averaged by itself, and all count alike)",
        "w_i / N  instead of  w_i / W",
        _COUNT_TOKENS,
        lambda s: s.weights / len(s.weights),
        weighted=True,
    ),
    Mistake(
        "divided by the local number of examples instead of weights",
        "each replica divides weighted losses by its number of examples, and the replicas are "
        "averaged",
        "w_i / (R n_r)  instead of  w_i / W",
        _COUNT_ALL,
        lambda s: s.weights / s.sizes / s.replicas,
        weighted=True,
    ),
    Mistake(
        "padding counts as examples",
        "every share is padded to the largest one, and the padded length divides",
        "w_i / (R max n_r)  instead of  w_i / W",
        _MASK,
        lambda s: s.weights / (s.replicas * s.largest),
    ),
    Mistake(
        "padding counts as tokens",
        "each replica divides by its examples times the longest of them, padding included, and "
        "the replicas are averaged",
        "w_i / (R n_r max w)  instead of  w_i / W",
        _MASK,
        lambda s: s.weights / (s.replicas * s.sizes * s.longest),
        weighted=True,
    ),
    Mistake(
        "padding counts as tokens of the global batch",
        "losses are divided by all examples times the longest of them, padding included",
        "w_i / (N max w)  instead of  w_i / W",
        _MASK,
        lambda s: s.weights / (len(s.weights) * s.weights.max()),
        weighted=True,
    ),
    Mistake(
        "padding counts as tokens of every micro-batch",
        "each micro-batch divides by its examples times the longest of them, padding included, "
        "and micro-batches and replicas are averaged",
        "w_i / (R K n_rk max w)  instead of  w_i / W",
        _MASK,
        lambda s: s.weights / (s.replicas * s.micro_batches * s.part_sizes * s.longest_of_part),
        weighted=True,
        micro=True,
    ),
    Mistake(
        "padding counts as examples of the largest share",
        "every replica divides by the weights of the one that has most",
        "w_i / (R max W_r)  instead of  w_i / W",
        _MASK,
        lambda s: s.weights / (s.replicas * s.of_replica.max()),
        weighted=True,
    ),
    Mistake(
        "shares are filled up by repeating examples",
        "every share is made as long as the largest one by examples that it has already, as a "
        "sampler does that wants equal shares; repeated examples count twice",
        "m_i / (R max n_r), m_i being how often the example is seen",
        _NO_REPEAT,
        lambda s: _seen_in_filled(s) * s.weights / (s.replicas * s.largest),
        report="repeated examples count twice",
    ),
    Mistake(
        "examples are repeated until the shares are even",
        "the first examples are taken again until the number of examples can be divided by the "
        "replicas, as a distributed sampler does; repeated examples count twice",
        "m_i / Σ m, m_i being how often the example is seen",
        _NO_REPEAT,
        lambda s: _normed(s, _seen_by_sampler(s)),
        report="repeated examples count twice",
    ),
    Mistake(
        "repeated examples are added, though divided by the true count",
        "examples are repeated to make shares even; losses are divided by the true count or a "
        "fixed one, so that repeated examples count twice",
        "m_i w_i / W  instead of  w_i / W, m_i being how often the example is seen",
        _NO_REPEAT,
        lambda s: _seen_by_sampler(s) * s.right,
        fixed=True,
    ),
    Mistake(
        "filled-up shares are added, though divided by the true count",
        "shares are made as long as the largest one by repeating examples; losses are divided by "
        "the true count or a fixed one, so that repeated examples count twice",
        "m_i w_i / W  instead of  w_i / W, m_i being how often the example is seen",
        _NO_REPEAT,
        lambda s: _seen_in_filled(s) * s.right,
        fixed=True,
    ),
    Mistake(
        "the rest of the batch is dropped",
        "examples that are over where the batch is dealt out evenly do not count",
        "w_i / W of the kept examples, 0 for the last ones",
        "leave shares uneven and divide by the true count",
        lambda s: _normed(s, _without_rest(s)),
        report="the last examples are left out",
    ),
    Mistake(
        "summed and not divided",
        "losses are added up and divided by nothing",
        "w_i  instead of  w_i / W",
        "divide by the count of the global batch: nn.compute_average_loss(losses)",
        lambda s: s.weights.copy(),
        report="losses are added up and divided by nothing",
    ),
)
