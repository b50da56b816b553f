"""Gradient accumulation: micro-batches of a loader, and chunks that the step itself cuts."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.toy import (
    IMAGES,
    ONE_DEVICE,
    PLAIN,
    TEXT,
    TOKEN_WINDOWS,
    WINDOWS,
    cut,
    dp_mean,
    flat,
    grad_mean,
    grad_sum,
    n_tokens,
    rows,
    token_sum,
    windows,
)


def stylegan3(shares):
    """gain = phase.interval only: rounds of the accumulation add up."""
    grads = []
    for rank in windows(shares):
        g = 0
        for real in rank:
            g = g + grad_mean(real) * 1.0
        grads.append(g)
    return dp_mean(grads)


def atlas(shares):
    (window,) = windows(shares)
    total = 0
    for batch in window:
        total = total + grad_mean(batch)  # loss.backward() without / accumulate
    return total


def nemo_rl(shares):
    return dp_mean(sum(token_sum(mb) / n_tokens(mb) for mb in rank) for rank in windows(shares))


def automodel_dp_size(shares):
    ranks = windows(shares)
    dp_size = len(ranks)
    return dp_mean(sum(grad_mean(mb) * dp_size for mb in rank) for rank in ranks)


def automodel_num_batches(shares):
    ranks = windows(shares)
    dp_size = len(ranks)
    return dp_mean(sum(grad_mean(mb) * dp_size / len(rank) for mb in rank) for rank in ranks)


def nightmarenet(shares):
    """The configured grad_accum divides in the last, shorter window."""
    grad_accum = 4
    return dp_mean(sum(grad_mean(mb) / grad_accum for mb in rank) for rank in windows(shares))


def mflux(shares):
    """A non-finite loss clears what was accumulated: of the first micro-batch, always."""
    out = []
    for rank in windows(shares):
        accumulated = None
        for index, mb in enumerate(rank):
            g = grad_mean(mb) / len(rank)
            accumulated = g if accumulated is None else accumulated + g
            if index == 0 and len(rank) > 1:
                accumulated = None
        out.append(accumulated)
    return dp_mean(out)


def nanogpt_605(shares):
    """loss / (micro_step + 1)."""
    return dp_mean(
        sum(grad_mean(mb) / (step + 1) for step, mb in enumerate(rank)) for rank in windows(shares)
    )


def cs336(shares):
    """sum over the micro-batch / constant / gradient_accumulation_steps; ranks are added."""
    constant = 100.0
    return sum(sum(token_sum(mb) / constant / len(rank) for mb in rank) for rank in windows(shares))


def opennmt(shares):
    """Tokens of the rank's own window normalise; all-reduce, then / n_gpu."""
    ranks = windows(shares)
    grads = []
    for rank in ranks:
        normalization = sum(n_tokens(mb) for mb in rank)
        grads.append(sum(token_sum(mb) / normalization for mb in rank))
    return sum(grads) / len(ranks)


def step_before_last(shares):
    """The optimizer steps when (i + 1) % n == 0 is seen before the last backward."""
    ranks = windows(shares)
    total = sum(rows(mb) for mb in flat(shares))
    g = 0
    for rank in ranks:
        for i, mb in enumerate(rank):
            if i + 1 == len(rank) and len(rank) > 1:
                break
            g = g + grad_sum(mb) / total
    return g


def tail_dropped_mean(shares):
    """The tail micro-batch is skipped; the others are averaged over the configured number."""
    out = []
    for rank in windows(shares):
        used = rank[:-1] or rank
        out.append(sum(grad_mean(mb) for mb in used) / len(rank))
    return dp_mean(out)


def last_twice(shares):
    """The synchronising backward of the last micro-batch runs on top of its no_sync one."""
    ranks = windows(shares)
    total = sum(rows(mb) for mb in flat(shares))
    g = 0
    for rank in ranks:
        for i, mb in enumerate(rank):
            g = g + grad_sum(mb) / total * (2 if i == len(rank) - 1 and len(rank) > 1 else 1)
    return g


def chunked(count):
    """The step cuts its batch into chunks and averages their means."""

    def step(shares):
        grads = []
        for share in shares:
            pieces = [p for p in np.array_split(np.arange(rows(share)), count) if len(p)]
            grads.append(sum(grad_mean(cut(share, p)) for p in pieces) / len(pieces))
        return dp_mean(grads)

    return step


def chunks_of(size):
    """Chunks of a fixed size, the last one shorter; their means are averaged."""

    def step(shares):
        grads = []
        for share in shares:
            starts = range(0, rows(share), size)
            grads.append(
                sum(grad_mean(cut(share, slice(s, s + size))) for s in starts) / len(starts)
            )
        return dp_mean(grads)

    return step


def chunks_of_added(size):
    """As before, but the chunks' means are added."""

    def step(shares):
        return dp_mean(
            sum(grad_mean(cut(share, slice(s, s + size))) for s in range(0, rows(share), size))
            for share in shares
        )

    return step


def split_of(d, r, cuts):
    share = d.share(r)
    return {
        i: [share[j] for j in part] for part in cuts(len(share)) for i in (share[j] for j in part)
    }


def pieces_truth(cuts, divide):
    def truth(d):
        homes = [split_of(d, r, cuts) for r in range(d.R)]
        number = [sum(1 for part in cuts(len(d.share(r))) if len(part)) for r in range(d.R)]
        return d.each(lambda i, r, k: 1 / len(homes[r][i]) / d.R / (number[r] if divide else 1))

    return truth


def by_count(count):
    return lambda n: [list(p) for p in np.array_split(np.arange(n), count)]


def by_size(size):
    return lambda n: [list(range(s, min(n, s + size))) for s in range(0, n, size)]


def not_divided(d):
    return d.each(lambda i, r, k: d.w[i] / d.sum(d.parts[r][k]) / d.R)


def first_lost(d):
    return d.each(
        lambda i, r, k: 0 if k == 0 and d.K > 1 else d.w[i] / d.sum(d.parts[r][k]) / d.R / d.K
    )


CASES = [
    Case("NVlabs/stylegan3#184", "accumulated rounds are not normalised", not_divided, stylegan3,
         IMAGES, WINDOWS),
    Case("fredzzhang/atlas#26", "one device, no division by the steps", not_divided, atlas, IMAGES,
         ONE_DEVICE),
    Case("NVIDIA-NeMo/RL#84", "token means of micro-batches are summed", not_divided, nemo_rl, TEXT,
         TOKEN_WINDOWS),
    Case("NVIDIA-NeMo/Automodel#3846", "local means times dp_size, summed over micro-batches",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.parts[r][k])), automodel_dp_size, IMAGES,
         WINDOWS),
    Case("NVIDIA-NeMo/Automodel#3830", "as before, divided by the number of micro-batches",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.parts[r][k]) / d.K),
         automodel_num_batches, IMAGES, WINDOWS),
    Case("Adit-Jain-srm/NightmareNet#562", "the configured steps divide", not_divided,
         nightmarenet, IMAGES, WINDOWS),
    Case("mflux-community/mflux#447", "the first micro-batch is cleared, the rest / steps",
         first_lost, mflux, IMAGES, WINDOWS),
    Case("karpathy/nanoGPT#605", "micro-step k is divided by k + 1",
         lambda d: d.each(lambda i, r, k: 1 / len(d.parts[r][k]) / d.R / (k + 1)), nanogpt_605,
         IMAGES, {**WINDOWS, "micro_batches": (1, 2, 3)}),
    Case("stanford-cs336/assignment5-alignment#10", "a constant and the steps divide sums",
         lambda d: d.w / d.W / d.K, cs336, TEXT, TOKEN_WINDOWS),
    Case("OpenNMT/OpenNMT-py#2209", "tokens of the rank's window normalise",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.share(r)) / d.R), opennmt, TEXT,
         TOKEN_WINDOWS),
    Case("practice: step on (i + 1) % n", "the last micro-batch never arrives",
         lambda d: d.each(lambda i, r, k: 0 if k == d.K - 1 and d.K > 1 else 1 / d.N),
         step_before_last, IMAGES, WINDOWS),
    Case("practice: len(loader) // n windows", "the tail is dropped, the rest / steps",
         lambda d: d.each(lambda i, r, k: 0 if k == d.K - 1 and d.K > 1
                          else 1 / len(d.parts[r][k]) / d.R / d.K),
         tail_dropped_mean, IMAGES, WINDOWS),
    Case("practice: no_sync for all but a second backward", "the last micro-batch counts twice",
         lambda d: d.each(lambda i, r, k: (2 if k == d.K - 1 and d.K > 1 else 1) / d.N), last_twice,
         IMAGES, WINDOWS),
    Case("marin-community/levanter#448", "the step cuts its share in two, means are averaged",
         pieces_truth(by_count(2), True), chunked(2), IMAGES, PLAIN),
    Case("practice: torch.chunk(batch, 3)", "the step cuts its share in three",
         pieces_truth(by_count(3), True), chunked(3), IMAGES, PLAIN),
    Case("practice: batch.split(4)", "chunks of four, the last one shorter, are averaged",
         pieces_truth(by_size(4), True), chunks_of(4), IMAGES, PLAIN),
    Case("practice: batch.split(2), loss.backward()", "chunks of two are averaged and added",
         pieces_truth(by_size(2), False), chunks_of_added(2), IMAGES, PLAIN),
]  # fmt: skip
