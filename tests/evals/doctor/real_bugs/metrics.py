"""Losses and metrics that are reported wrongly, beside an update that is right."""

from __future__ import annotations

import numpy as np

from real_bugs import bug
from real_bugs.model import (
    EXAMPLES,
    REGULARISATION,
    SEQUENCES,
    WINDOW,
    Outcome,
    count,
    flat,
    losses,
    token_loss,
    token_sum,
    tokens,
    total,
    windows,
)

TIMES = "multiplied by the replicas"
SHARE = "divided by the global batch, then averaged"
ALIKE = "the last, shorter batch counts as much as the others"


def reporting(report):
    """A right update, and report(micro-batches of the ranks)."""

    def step(shares):
        ranks = windows(shares)
        update = sum(total(b) for b in flat(ranks)) / count(flat(ranks))
        return Outcome(update, report(ranks))

    return step


def reporting_tokens(report):
    def step(shares):
        ranks = windows(shares)
        update = sum(map(token_sum, flat(ranks))) / sum(map(tokens, flat(ranks)))
        return Outcome(update, report(ranks))

    return step


def average(batches):
    return sum(losses(b).sum() for b in batches) / count(batches)


def token_average(batches):
    return sum(map(token_loss, batches)) / sum(map(tokens, batches))


def with_constant_batch(shares):
    """tf: the update of shares of 64; the loss is their MEAN over replicas."""
    parts = [losses(share).sum() / 64 for share in shares]
    return Outcome(sum(total(share) for share in shares) / 64, np.mean(parts))


def regularised(shares):
    """The reported loss adds the regularisation of every replica."""
    world, rows = len(shares), count(shares)
    update = sum(total(p) / rows + REGULARISATION / world for p in shares)
    return Outcome(update, sum(losses(p).sum() / rows + 0.7 for p in shares))


CASES = [
    bug(
        "tensorflow/docs#608", "tf.metrics.Mean is fed with scaled losses", SHARE,
        reporting(lambda w: np.mean([average(r) * count(r) / count(flat(w)) for r in w])),
        EXAMPLES, "report",
    ),
    bug(
        "tensorflow/tensorflow#55321", "the loss on x GPUs is 1 / x", SHARE,
        reporting(lambda w: average(flat(w)) / len(w)), EXAMPLES, "report",
    ),
    bug(
        "tensorflow/tensorflow#28956 (reported)", "shares of a constant batch are averaged", SHARE,
        with_constant_batch, EXAMPLES, "report",
    ),
    bug(
        "keras-team/keras#15509", "the loss of the first replica is reported",
        "the replicas are not reduced", reporting(lambda w: average(w[0])), EXAMPLES, "report",
    ),
    bug(
        "KellerJordan/modded-nanogpt#2", "the logged loss is that of the first rank",
        "the replicas are not reduced", reporting(lambda w: average(w[0])), EXAMPLES, "report",
    ),
    bug(
        "tensorflow/tensorflow#40339", "the loss times num_replicas_in_sync is averaged", TIMES,
        reporting(lambda w: average(flat(w)) * len(w)), EXAMPLES, "report",
    ),
    bug(
        "huggingface/transformers#35078", "eval loss is num_processes times too large", TIMES,
        reporting_tokens(lambda w: len(w) * token_average(flat(w))), SEQUENCES, "report",
    ),
    bug(
        "huggingface/transformers#48167", "eval_loss is cp_size times its value", TIMES,
        reporting_tokens(lambda w: sum(token_average(flat(w)) for _ in w)), SEQUENCES, "report",
    ),
    bug(
        "huggingface/transformers#35204", "the logged loss is not divided by the steps",
        "micro-batches are not divided",
        reporting_tokens(lambda w: np.mean([sum(token_average([b]) for b in r) for r in w])),
        SEQUENCES, "report", options=WINDOW,
    ),
    bug(
        "BottleCapAI/NoCap-Test#2", "the logged loss is divided by the steps twice",
        "micro-batches are divided twice",
        reporting(lambda w: average(flat(w)) / len(w[0])), EXAMPLES, "report", options=WINDOW,
    ),
    bug(
        "espnet/espnet#5090", "the reported loss is divided by the accumulation",
        "micro-batches are divided twice",
        reporting(lambda w: sum(average(flat(w)) / len(w[0]) for _ in [0])), EXAMPLES, "report",
        options=WINDOW,
    ),
    bug(
        "dnouri/nolearn#247", "batch losses are averaged whatever their size", ALIKE,
        reporting(lambda w: np.mean([average([b]) for b in flat(w)])), EXAMPLES, "report",
        options=WINDOW,
    ),
    bug(
        "Nota-NetsPresso/netspresso-trainer#360", "AverageMeter takes batches as equal", ALIKE,
        reporting(lambda w: np.mean([np.mean([average([b]) for b in r]) for r in w])), EXAMPLES,
        "report", options=WINDOW,
    ),
    bug(
        "Lightning-AI/pytorch-lightning#2924", "the smaller last batch skews the result", ALIKE,
        reporting_tokens(lambda w: np.mean([token_average([b]) for b in flat(w)])), SEQUENCES,
        "report", options=WINDOW,
    ),
    bug(
        "davidnabergoj/torchflows#7", "batch means are added up",
        "means of micro-batches are summed everywhere",
        reporting(lambda w: sum(average([b]) for b in flat(w))), EXAMPLES, "report",
        options=WINDOW,
    ),
    bug(
        "NVIDIA/DeepLearningExamples#299", "the last batch's loss is reported",
        "only the last micro-batch is kept",
        reporting(lambda w: np.mean([average([r[-1]]) for r in w])), EXAMPLES, "report",
        options=WINDOW,
    ),
    bug(
        "RUCAIBox/RecBole#1872", "samples that the sampler repeats count twice",
        "examples are repeated until the shards are equal",
        lambda s: Outcome(sum(map(total, s)) / count(s), _with_repeats(s)), EXAMPLES, "report",
    ),
    bug(
        "keras-team/keras#19891", "evaluate averages the replicas' means",
        "mean of the replicas' means",
        reporting(lambda w: np.mean([average(r) for r in w])), EXAMPLES, "report",
    ),
    bug(
        "karpathy/nanoGPT#207 (printed)", "the sum of losses of a constant batch: agreed on", None,
        reporting(lambda w: average(flat(w))), EXAMPLES, "report",
    ),
    bug(
        "tensorflow/models#342 (reported)", "every replica's regularisation is in the loss",
        "regularisation counts once on every replica", regularised, EXAMPLES, "report",
    ),
]  # fmt: skip


def _with_repeats(shares):
    values = np.concatenate([losses(share) for share in shares])
    padded = np.concatenate([values, values[: -len(values) % len(shares)]])
    return padded.mean()
