"""Mistakes over micro-batches: gradient accumulation, and metrics over batches."""

from __future__ import annotations

import numpy as np

from samegrad.testing._catalogue._situation import SUM_AND_COUNT, Mistake, Situation
from samegrad.testing._updates import Vector

_ADD_UP = "add the gradients up, and reset them after the update only"


def _not_first(s: Situation) -> Vector:
    return np.where((s.micro_batch == 0) & (s.micro_batches > 1), 0.0, 1.0)


def _reduced_again(s: Situation) -> Vector:
    """R^(K-1-k): the gradients of micro-batch k are in K - k sums."""
    powers = s.micro_batches - 1.0 - s.micro_batch
    return np.asarray(float(s.replicas) ** powers, dtype=np.float64)


MICRO_BATCHES: tuple[Mistake, ...] = (
    Mistake(
        "micro-batches are not divided",
        "the means of the micro-batches are added up without dividing by their number (or by a "
        "number of micro-batches that is not theirs, as in a last, shorter window)",
        "w_i / (R W_rk)  instead of  w_i / W",
        SUM_AND_COUNT,
        lambda s: s.weights / s.of_part / s.active,
        micro=True,
        report="the losses of the micro-batches are added up",
    ),
    Mistake(
        "micro-batches are divided twice",
        "losses are divided by the count of the whole window, and by the number of micro-batches "
        "again",
        "w_i / (W K)  instead of  w_i / W",
        "leave out the division by the number of micro-batches",
        lambda s: s.right / s.micro_batches,
        fixed=True,
        micro=True,
        report="it is divided by the number of micro-batches once too often",
    ),
    Mistake(
        "mean of the micro-batches' means",
        "every micro-batch of every replica counts alike, however many examples it has",
        "w_i / (R K W_rk)  instead of  w_i / W",
        SUM_AND_COUNT,
        lambda s: s.weights / s.of_part / (s.active * s.micro_batches),
        micro=True,
        report="the last, shorter batch counts as much as the others",
    ),
    Mistake(
        "mean of the micro-batches' global means",
        "each micro-batch is divided by its count over all replicas, and the micro-batches count "
        "alike, however many examples they have",
        "w_i / (K W_k)  instead of  w_i / W",
        SUM_AND_COUNT,
        lambda s: s.weights / s.of_micro_batch / s.micro_batches,
        micro=True,
        report="the last, shorter batch counts as much as the others",
    ),
    Mistake(
        "multiplied by the micro-batches",
        "losses are divided by the count of the whole window, and multiplied by the number of "
        "micro-batches",
        "w_i K / W  instead of  w_i / W",
        "leave out the factor, which nothing divides again",
        lambda s: s.right * s.micro_batches,
        fixed=True,
        micro=True,
        report="it is multiplied by the number of micro-batches",
    ),
    Mistake(
        "means of micro-batches are added over replicas",
        "micro-batches are averaged on each replica, and the replicas are added",
        "w_i / (K W_rk)  instead of  w_i / W",
        "divide by the count of all replicas and micro-batches, once",
        lambda s: s.weights / s.of_part / s.micro_batches,
        micro=True,
    ),
    Mistake(
        "means of micro-batches are added up everywhere",
        "each micro-batch divides by its own examples, and all of all replicas are added",
        "w_i / W_rk  instead of  w_i / W",
        "divide by the count of all replicas and micro-batches, once",
        lambda s: s.weights / s.of_part,
        micro=True,
    ),
    Mistake(
        "global means of micro-batches are added up",
        "each micro-batch is divided by its count over all replicas, and they are added up "
        "without dividing by their number",
        "w_i / W_k  instead of  w_i / W",
        SUM_AND_COUNT,
        lambda s: s.weights / s.of_micro_batch,
        micro=True,
    ),
    Mistake(
        "divided by the count of the last micro-batch",
        "the sum of a window is divided by the count of its last micro-batch, and the replicas "
        "are averaged",
        "w_i / (R W_rK)  instead of  w_i / W",
        SUM_AND_COUNT,
        lambda s: s.weights / s.of_last / s.replicas,
        micro=True,
    ),
    Mistake(
        "only the last micro-batch is kept",
        "gradients are overwritten instead of added up, so that the last micro-batch alone counts",
        "0 but for the last micro-batch",
        _ADD_UP,
        lambda s: s.last * s.weights / s.of_part / s.replicas,
        micro=True,
        report="it is that of the last batch",
    ),
    Mistake(
        "only the last micro-batch is kept, and divided by their number",
        "means of micro-batches are divided by their number, but overwritten instead of added up",
        "w_i / (R K W_rK) for the last micro-batch, 0 for the others",
        _ADD_UP,
        lambda s: s.last * s.weights / s.of_part / (s.replicas * s.micro_batches),
        micro=True,
    ),
    Mistake(
        "the other micro-batches are lost",
        "losses are divided by the whole window, but the gradients of the last micro-batch alone "
        "reach the update",
        "w_i / W for the last micro-batch, 0 for the others",
        _ADD_UP,
        lambda s: s.last * s.right,
        fixed=True,
        micro=True,
    ),
    Mistake(
        "the first micro-batch is lost",
        "losses are divided by the whole window, but gradients are reset after the first "
        "micro-batch",
        "0 for the first micro-batch, w_i / W for the others",
        _ADD_UP,
        lambda s: _not_first(s) * s.right,
        fixed=True,
        micro=True,
    ),
    Mistake(
        "the first micro-batch is lost, and the others are averaged by themselves",
        "every micro-batch counts alike, and gradients are reset after the first one",
        "0 for the first micro-batch, w_i / (R K W_rk) for the others",
        _ADD_UP,
        lambda s: _not_first(s) * s.weights / s.of_part / (s.replicas * s.micro_batches),
        micro=True,
    ),
    Mistake(
        "gradients are reduced again in every micro-batch",
        "what was summed over the replicas already is summed again with the next micro-batch",
        "w_i R^(K-k) / W  instead of  w_i / W, for micro-batch k of K",
        "add up locally, and reduce once after the last micro-batch",
        lambda s: s.right * _reduced_again(s),
        fixed=True,
        micro=True,
    ),
    Mistake(
        "means are reduced again in every micro-batch",
        "each micro-batch is averaged by itself, and what was summed over the replicas already is "
        "summed again with the next one",
        "w_i R^(K-k) / (R K W_rk)  instead of  w_i / W, for micro-batch k of K",
        "add up locally, and reduce once after the last micro-batch",
        lambda s: s.weights / s.of_part / (s.replicas * s.micro_batches) * _reduced_again(s),
        micro=True,
    ),
)
