"""Terms that belong to no example."""

from __future__ import annotations

from held_out import Case
from held_out.toy import (
    IMAGES,
    NOISE,
    PLAIN,
    TEXT,
    TOKEN_WINDOWS,
    WINDOWS,
    dp_mean,
    flat,
    grad_mean,
    grad_sum,
    n_tokens,
    rows,
    token_sum,
    windows,
)

DECAY = 0.05 * NOISE


def aux_by_dp(shares):
    """FSDP's mean divides the auxiliary gradient, which only one rank adds."""
    n = sum(rows(s) for s in shares)
    return sum(grad_sum(s) for s in shares) / n + DECAY / len(shares)


def aux_in_every_micro_batch(shares):
    ranks = windows(shares)
    tokens = sum(n_tokens(mb) for mb in flat(shares))
    world = len(ranks)
    return dp_mean(sum(token_sum(mb) * world / tokens + DECAY for mb in rank) for rank in ranks)


def towers_with_l2(shares):
    n = sum(rows(s) for s in shares)
    return sum(grad_sum(s) / n + DECAY for s in shares)


def l2_everywhere(shares):
    """L2 in the loss of every micro-batch of every rank, all added."""
    n = sum(rows(mb) for mb in flat(shares))
    return sum(grad_sum(mb) / n + DECAY for mb in flat(shares))


def l2_divided_by_steps(shares):
    """The data's loss is right; the decay is in a loss that the steps divide, once."""
    ranks = windows(shares)
    n = sum(rows(mb) for mb in flat(shares))
    return sum(grad_sum(mb) for mb in flat(shares)) / n + DECAY / len(ranks[0])


def means_added_with_l2(shares):
    return sum(grad_mean(s) for s in shares) + DECAY


def mean_of_means_with_l2(shares):
    return dp_mean(grad_mean(s) + DECAY for s in shares)


def sums_with_l2(shares):
    """A constant batch divides the data, every rank adds its decay."""
    return sum(grad_sum(s) / 256 + DECAY / 20 for s in shares)


CASES = [
    Case("NVIDIA-NeMo/Automodel#1408", "the auxiliary term is divided by the ranks",
         "term: divided by the replicas", aux_by_dp, IMAGES, PLAIN),
    Case("NVIDIA-NeMo/Automodel#3359", "the auxiliary term enters every micro-batch",
         "term: once per micro-batch", aux_in_every_micro_batch, TEXT, TOKEN_WINDOWS),
    Case("practice: L2 in every tower", "towers add their decay", "term: once per replica",
         towers_with_l2, IMAGES, PLAIN),
    Case("practice: L2 in every backward", "all micro-batches of all ranks add it",
         "term: once per micro-batch of every replica", l2_everywhere, IMAGES, WINDOWS),
    Case("practice: decay in a loss that the steps divide", "the steps divide the decay",
         "term: divided by the micro-batches", l2_divided_by_steps, IMAGES, WINDOWS),
    Case("practice: means are added beside a right decay", "means are added, decay counts once",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r))), means_added_with_l2, IMAGES, PLAIN),
    Case("practice: DDP of means with decay in the loss", "means are averaged, decay counts once",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r)) / d.R), mean_of_means_with_l2,
         IMAGES, PLAIN),
    Case("practice: a constant batch and decay on every rank", "decay per rank beside a constant",
         "term: once per replica", sums_with_l2, IMAGES, PLAIN),
]  # fmt: skip
