"""Steps in which nothing is wrong, as well-known scripts write them."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.exchange import BIG, batch_norm, counts
from held_out.toy import (
    BY_TOKENS,
    IMAGES,
    IMPORTANCE,
    NOISE,
    ONE_DEVICE,
    PLAIN,
    TEXT,
    TOKEN_WINDOWS,
    WEIGHTED,
    WINDOWS,
    clip,
    dp_mean,
    flat,
    grad_mean,
    grad_sum,
    losses,
    merged,
    n_tokens,
    rows,
    token_losses,
    token_sum,
    windows,
)
from samegrad.testing import Outcome


def summed(shares):
    return sum(grad_sum(mb) for mb in flat(shares))


def total(shares):
    return sum(rows(mb) for mb in flat(shares))


def fairseq_like(shares):
    tokens = sum(n_tokens(s) for s in shares)
    return dp_mean(token_sum(s) for s in shares) * len(shares) / tokens


def trainer_items(shares):
    """loss = sum / num_items_in_batch * world, DDP averages."""
    ranks = windows(shares)
    items = sum(n_tokens(mb) for mb in flat(shares))
    return dp_mean(sum(token_sum(mb) / items * len(ranks) for mb in rank) for rank in ranks)


def fcos(shares):
    world = len(shares)
    positives = max(sum(n_tokens(s) for s in shares) / world, 1.0)
    return dp_mean(token_sum(s) / positives for s in shares)


def compute_average_loss(shares):
    return sum(grad_sum(s) / 256 for s in shares)


def accumulate_window_sizes(shares):
    """loss * len(mb) / len(window), one device."""
    (window,) = windows(shares)
    n = sum(rows(mb) for mb in window)
    return sum(grad_mean(mb) * rows(mb) / n for mb in window)


def even_ddp(shares):
    return dp_mean(grad_mean(s) for s in shares)


def even_accumulation(shares):
    return dp_mean(sum(grad_mean(mb) / len(rank) for mb in rank) for rank in windows(shares))


def clipped(shares):
    return clip(summed(shares) / total(shares), 0.3)


def clipped_amp(shares):
    """scaler.unscale_ comes first."""
    return clip(summed(shares) / total(shares) * 65536.0 / 65536.0, 0.3)


def by_value(shares):
    return np.clip(summed(shares) / total(shares), -0.02, 0.02)


def decayed(shares):
    return summed(shares) / total(shares) + 0.05 * NOISE


def decayed_share(shares):
    return sum(grad_sum(s) / total(shares) + 0.05 * NOISE / len(shares) for s in shares)


def importance(shares):
    whole = merged(shares)
    return grad_sum(whole, whole["weight"]) / whole["weight"].sum()


def synchronised(shares):
    n = counts(shares)
    return batch_norm(shares, n / n.sum(), np.full(len(n), n.sum()))


def float16_grads(shares):
    return (summed(shares) / total(shares)).astype(np.float16)


def float32_parts(shares):
    return sum((grad_sum(s) / total(shares)).astype(np.float32) for s in shares)


def logged(shares):
    ranks = windows(shares)
    values = np.concatenate([losses(mb) for mb in flat(ranks)])
    return Outcome(summed(shares) / total(shares), values.mean())


def logged_tokens(shares):
    tokens = sum(n_tokens(s) for s in shares)
    value = sum(token_losses(s).sum() for s in shares) / tokens
    return Outcome(sum(token_sum(s) for s in shares) / tokens, value)


def hard_examples(shares):
    """OHEM over all ranks: the harder half of the batch."""
    whole = merged(shares)
    own = losses(whole)
    kept = (own >= np.median(own)).astype(float)
    return grad_sum(whole, kept) / kept.sum()


def variance_penalty(shares):
    """Group DRO-like: the mean plus the variance of losses over the global batch."""
    whole = merged(shares)
    own = losses(whole)
    weights = (1 + 0.5 * 2 * (own - own.mean())) / len(own)
    return grad_sum(whole, weights)


def lars(shares):
    g = summed(shares) / total(shares)
    return np.concatenate([g[:63] / np.linalg.norm(g[:63]), g[63:] / np.linalg.norm(g[63:])])


def momentum_first_step(shares):
    g = summed(shares) / total(shares)
    return -(0.1 * (g + 0.9 * g))


def masked_out(shares):
    """Some examples have weight 0, which is a mask."""
    mask = [(np.abs(s["image"][:, 0]) > 0.2).astype(float) for s in shares]
    n = max(sum(m.sum() for m in mask), 1.0)
    return sum(grad_sum(s, m) for s, m in zip(shares, mask, strict=True)) / n


EVEN = {**PLAIN, "equal_shards": True}
EVEN_WINDOWS = {
    "replicas": (1, 2),
    "micro_batches": (1, 2),
    "max_examples": 12,
    "equal_shards": True,
}

CASES = [
    Case(f"script: {name}", "nothing is wrong", "right", step, batch, options)
    for name, step, batch, options in [
        ("fairseq trainer", fairseq_like, TEXT, BY_TOKENS),
        ("transformers Trainer with num_items", trainer_items, TEXT, TOKEN_WINDOWS),
        ("FCOS normaliser", fcos, TEXT, BY_TOKENS),
        ("tf.distribute tutorial, constant batch", compute_average_loss, IMAGES, PLAIN),
        ("accumulation by sizes, one device", accumulate_window_sizes, IMAGES, ONE_DEVICE),
        ("imagenet DDP, equal shares", even_ddp, IMAGES, EVEN),
        ("nanoGPT, equal shares", even_accumulation, IMAGES, EVEN_WINDOWS),
        ("clip after reduction", clipped, IMAGES, PLAIN),
        ("amp with unscale_", clipped_amp, IMAGES, WINDOWS),
        ("clip by value after reduction", by_value, IMAGES, PLAIN),
        ("decay once", decayed, IMAGES, PLAIN),
        ("decay / ranks on every rank", decayed_share, IMAGES, PLAIN),
        ("sample weights", importance, WEIGHTED, {"weights": IMPORTANCE, "max_examples": 12}),
        ("sample weights, not told", importance, WEIGHTED, PLAIN),
        ("SyncBN", synchronised, IMAGES, BIG),
        ("float16 gradients", float16_grads, IMAGES, PLAIN),
        ("float32 shares", float32_parts, IMAGES, WINDOWS | {"micro_batches": (1,)}),
        ("logged mean", logged, IMAGES, WINDOWS),
        ("logged token mean", logged_tokens, TEXT, BY_TOKENS),
        ("OHEM over the global batch", hard_examples, IMAGES, BIG),
        ("variance penalty over the global batch", variance_penalty, IMAGES, BIG),
        ("LARS", lars, IMAGES, BIG),
        ("SGD with momentum, first step", momentum_first_step, IMAGES, PLAIN),
        ("masked examples", masked_out, IMAGES, {"max_examples": 20}),
    ]
]  # fmt: skip
