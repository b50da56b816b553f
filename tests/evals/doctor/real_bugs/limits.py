"""Clipping and normalizing at the wrong place."""

from __future__ import annotations

import numpy as np

from real_bugs import bug
from real_bugs.model import EXAMPLES, WINDOW, clip, count, ddp, mean, total, windows

LIMIT = 2.0
BEFORE = "gradients are clipped before the all-reduce"
PARTS = "gradients are clipped in every micro-batch"


def clip_then_average(shares):
    return ddp([clip(mean(share), LIMIT) for share in shares])


def clip_by_value_then_average(shares):
    return ddp([np.clip(mean(share), -0.2, 0.2) for share in shares])


def clip_shares_then_sum(shares):
    """tf: gradients of the shares are clipped by clipnorm in run, then summed."""
    return sum(clip(total(share) / count(shares), 0.4) for share in shares)


def clip_every_micro_step(shares):
    """clip_grad_norm_ after each backward, on what is accumulated on its own."""
    ranks = windows(shares)
    return ddp([sum(clip(mean(b), LIMIT) / len(w) for b in w) for w in ranks])


def reduce_then_clip(shares):
    """Right."""
    return clip(sum(total(share) for share in shares) / count(shares), LIMIT)


def clip_by_shard(shares):
    """Each rank clips the shard of the parameters that it keeps by the shard's norm."""
    gradient = sum(total(share) for share in shares) / count(shares)
    shards = np.array_split(gradient, len(shares))
    return np.concatenate([clip(shard, LIMIT) for shard in shards])


def clip_by_overcounted_norm(shares):
    """The squared norm of replicated parameters is summed over the ranks."""
    gradient = sum(total(share) for share in shares) / count(shares)
    norm = np.sqrt(len(shares) * float(gradient @ gradient))
    return gradient * min(1.0, LIMIT / norm)


def normalised_per_rank(shares):
    return ddp([mean(share) / np.linalg.norm(mean(share)) for share in shares])


def per_tensor_before_join(shares):
    halves = []
    for share in shares:
        gradient = mean(share)
        halves.append([clip(gradient[:30], 1.0), clip(gradient[30:], 1.0)])
    return [ddp([half[i] for half in halves]) for i in (0, 1)]


CASES = [
    bug(
        "tensorflow/tensorflow#25806", "gradients are clipped before they are reduced", BEFORE,
        clip_shares_then_sum, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#35333 (clip_by_global_norm)", "each replica clips its gradient",
        BEFORE, clip_then_average, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#25806 (clip by value)", "values are limited on each rank", BEFORE,
        clip_by_value_then_average, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#25806 (normalized)", "gradients are normalized on each rank", BEFORE,
        normalised_per_rank, EXAMPLES,
    ),
    bug(
        "tensorflow/tensorflow#25806 (each tensor)", "each tensor is limited on each rank", BEFORE,
        per_tensor_before_join, EXAMPLES,
    ),
    bug(
        "huggingface/transformers#1563", "clip_grad_norm_ after each backward", PARTS,
        clip_every_micro_step, EXAMPLES, options=WINDOW,
    ),
    bug(
        "facebookresearch/lingua#59", "clipping at each accumulation step", PARTS,
        clip_every_micro_step, EXAMPLES, options=WINDOW,
    ),
    bug(
        "huggingface/diffusers#721", "clipped before gradients are synchronised", PARTS,
        clip_every_micro_step, EXAMPLES, options=WINDOW,
    ),
    bug(
        "areal-project/AReaL#312", "the norm of the shard limits the shard",
        "gradients are clipped by the norm of a shard", clip_by_shard, EXAMPLES,
    ),
    bug(
        "sgl-project/SpecForge#663", "each rank has another coefficient for its shard",
        "gradients are clipped by the norm of a shard", clip_by_shard, EXAMPLES,
    ),
    bug(
        "pytorch/pytorch#88955", "norms of unsharded parameters are counted by every rank",
        "gradient clipping depends on the replicas", clip_by_overcounted_norm, EXAMPLES,
    ),
    bug(
        "mindspore-ai/hyper-parallel#279", "replicated parameters count world size times",
        "gradient clipping depends on the replicas", clip_by_overcounted_norm, EXAMPLES,
    ),
    bug(
        "pytorch/torchtitan#766", "the norm of all shards limits: nothing is wrong", None,
        reduce_then_clip, EXAMPLES,
    ),
]  # fmt: skip
