"""Limits and normalization of gradients at the wrong place."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.toy import (
    IMAGES,
    PLAIN,
    WINDOWS,
    clip,
    dp_mean,
    flat,
    grad_mean,
    grad_sum,
    rows,
    windows,
)

SCALE = 65536.0


def latex_ocr(shares):
    """clip_grad_norm_ inside of the loop over micro-batches."""
    (window,) = windows(shares)
    n = sum(rows(mb) for mb in window)
    return sum(clip(grad_mean(mb) * rows(mb) / n, 0.15) for mb in window)


def every_rank(shares):
    return dp_mean(clip(grad_mean(s), 0.3) for s in shares)


def by_value_in_every_micro_batch(shares):
    ranks = windows(shares)
    return dp_mean(
        sum(np.clip(grad_mean(mb), -0.02, 0.02) for mb in rank) / len(rank) for rank in ranks
    )


def scaled(gradient, limit=1.0, scale=SCALE):
    """The gradient of a scaled loss is limited, and unscaled afterwards."""
    return clip(gradient * scale, limit) / scale


def waifu(shares):
    n = sum(rows(s) for s in shares)
    return scaled(sum(grad_sum(s) for s in shares) / n)


def unet(shares):
    n = sum(rows(s) for s in shares)
    return np.clip(sum(grad_sum(s) for s in shares) / n * SCALE, -1.0, 1.0) / SCALE


def everydream(shares):
    n = sum(rows(mb) for mb in flat(shares))
    return scaled(sum(grad_sum(mb) for mb in flat(shares)) / n, 1.0, 1024.0)


def per_tensor(shares):
    n = sum(rows(s) for s in shares)
    g = sum(grad_sum(s) for s in shares) / n
    return [scaled(g[:63], 0.5, 8192.0), scaled(g[63:], 0.5, 8192.0)]


def normalised_on_ranks(shares):
    """NovoGrad-like: every rank normalises its gradient before the exchange."""
    return dp_mean(grad_mean(s) / np.linalg.norm(grad_mean(s)) for s in shares)


def sum_then_clip_then_divide(shares):
    """The sum over ranks is limited, and only then divided by the ranks."""
    world = len(shares)
    n = sum(rows(s) for s in shares)
    return clip(sum(grad_sum(s) * world / n for s in shares), 0.3) / world


def norm_of_own_shard(shares):
    n = sum(rows(s) for s in shares)
    g = sum(grad_sum(s) for s in shares) / n
    return np.concatenate([clip(piece, 0.15) for piece in np.array_split(g, len(shares))])


def clip_then_sum_shares(shares):
    n = sum(rows(s) for s in shares)
    return sum(clip(grad_sum(s) / n, 0.1) for s in shares)


CASES = [
    Case("lukas-blecher/LaTeX-OCR#222", "each micro-batch is limited by itself",
         "clip in every micro-batch", latex_ocr, IMAGES,
         {"replicas": (1,), "micro_batches": (1, 2, 3), "max_examples": 14}),
    Case("practice: clip before all_reduce", "each rank limits its own",
         "clip before the reduction", every_rank, IMAGES, PLAIN),
    Case("practice: clip_grad_value_ in the loop", "each micro-batch is limited by value",
         "clip in every micro-batch", by_value_in_every_micro_batch, IMAGES, WINDOWS),
    Case("harubaru/waifu-diffusion#64", "scaled gradients are limited", "clip before unscale",
         waifu, IMAGES, PLAIN, "warning"),
    Case("milesial/Pytorch-UNet#468", "scaled gradients are limited by value",
         "clip before unscale", unet, IMAGES, PLAIN, "warning"),
    Case("victorchall/EveryDream2trainer#175", "a scale of 1,024, accumulated",
         "clip before unscale", everydream, IMAGES, WINDOWS, "warning"),
    Case("k2-fsa/icefall#2081", "scaled gradients of each tensor are limited",
         "clip before unscale", per_tensor, IMAGES, PLAIN, "warning"),
    Case("practice: normalize, then all_reduce", "each rank normalises its gradient",
         "clip before the reduction", normalised_on_ranks, IMAGES, PLAIN),
    Case("practice: SUM, clip, divide", "the limit meets a sum over ranks",
         "limit depends on the replicas", sum_then_clip_then_divide, IMAGES, PLAIN),
    Case("practice: ZeRO without a norm over shards", "the norm of a shard limits it",
         "clip by the norm of a shard", norm_of_own_shard, IMAGES, PLAIN),
    Case("practice: clipnorm inside of strategy.run", "shares are limited and added",
         "clip before the reduction", clip_then_sum_shares, IMAGES, PLAIN),
]  # fmt: skip
