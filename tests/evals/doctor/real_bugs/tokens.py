"""Variable numbers of tokens, boxes or weights over ranks."""

from __future__ import annotations

import numpy as np

from real_bugs import bug
from real_bugs.model import (
    EXAMPLES,
    LENGTHS,
    LONGEST,
    OF_TOKENS,
    SEQUENCES,
    X,
    Y,
    count,
    ddp,
    sequence_mean,
    token_mean,
    token_sum,
    tokens,
    total,
)

MEANS = "mean of the replicas' means"
SHARE = "divided by the global batch, then averaged"


def clamped_boxes(shares):
    """Boxes of all ranks by the world size, at least one; each rank sums its own losses."""
    world = len(shares)
    boxes = max(sum(map(tokens, shares)) / world, 1)
    return ddp([token_sum(share) / boxes for share in shares])


def local_boxes(shares):
    return ddp([token_sum(share) / max(tokens(share), 1) for share in shares])


def num_items_without_world_size(shares):
    num_items_in_batch = sum(map(tokens, shares))
    return ddp([token_sum(share) / num_items_in_batch for share in shares])


def scale_grads_after_mean(shares):
    """FSDP averages; the recipe then divides by the token count of all ranks."""
    gradient = ddp([token_sum(share) for share in shares])
    return gradient * (1 / sum(map(tokens, shares)))


def fairseq_undone(shares):
    """Gradients are averaged, then multiplied by the world size over the sample size: right."""
    sample_size = sum(map(tokens, shares))
    return ddp([token_sum(share) for share in shares]) * len(shares) / sample_size


def loss_over_sequence_length(shares):
    """The mean over a padded tensor of masked losses."""
    return ddp([token_sum(p) / (len(p[0]) * p[2].sum(axis=1).max()) for p in shares])


def masked_to_a_fixed_length(shares):
    """Dr. GRPO: the maximal length divides, and FSDP's mean over ranks is undone."""
    world = len(shares)
    return ddp([token_sum(p) / (64 * LONGEST) * world for p in shares])


def weighted(share):
    return total(share, share[2])


def weighted_mean_by_count(shares):
    whole = tuple(np.concatenate(leaves) for leaves in zip(*shares, strict=True))
    return weighted(whole) / len(whole[0])


def weighted_by_local_count(shares):
    return ddp([weighted(share) / len(share[0]) for share in shares])


def local_weight_sums(shares):
    return ddp([weighted(share) / share[2].sum() for share in shares])


CLASS_WEIGHTS = np.where(np.arange(30) % 3 == 0, 4.0, 0.5)
WEIGHTED = (X, Y, CLASS_WEIGHTS)
OF_CLASSES = {"weights": CLASS_WEIGHTS}


def pmean_of_masked_losses(shares):
    grads = [token_mean(share) for share in shares]
    return sum(grads) / len(grads)


def sequences_then_ranks(shares):
    return ddp([sequence_mean(share) for share in shares])


def sp_shards_averaged(shares):
    """Sequence parallel ranks average their own valid tokens, then the ranks."""
    per_rank = np.stack([token_mean(share) for share in shares])
    return per_rank.sum(axis=0) / per_rank.shape[0]


def positives_of_the_batch(shares):
    """tf: losses by the positives that this replica sees; gradients are summed."""
    return sum(token_sum(share) / tokens(share) for share in shares)


def agg_loss_without_dp_size(shares):
    batch_tokens = sum(map(tokens, shares))
    return np.mean([token_sum(p) / batch_tokens for p in shares], axis=0)


def fill_short_ranks(shares):
    most = max(len(share[0]) for share in shares)
    longer = [tuple(leaf[np.resize(np.arange(len(leaf)), most)] for leaf in s) for s in shares]
    return ddp([total(share) / most for share in longer])


def distributed_sampler(shares):
    """Indices are extended by the first ones until the ranks are even, then distributed."""
    x, y = (np.concatenate(leaves) for leaves in zip(*shares, strict=True))
    world, rows = len(shares), count(shares)
    indices = list(range(rows))
    indices += indices[: -rows % world]
    ranks = [indices[rank::world] for rank in range(world)]
    return ddp([total((x[own], y[own])) / len(own) for own in ranks])


def drop_last(shares):
    x, y = (np.concatenate(leaves) for leaves in zip(*shares, strict=True))
    world = len(shares)
    even = count(shares) // world
    ranks = [range(rank * even, (rank + 1) * even) for rank in range(world)]
    return ddp([total((x[own], y[own])) / even for own in map(list, ranks)])


CASES = [
    bug(
        "huggingface/transformers#34242",
        "num_items_in_batch counts the tokens of one device; DDP averages the devices",
        MEANS, pmean_of_masked_losses, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "huggingface/transformers#34373 (review)",
        "tokens are counted over all devices, and DDP's mean is not undone by the world size",
        SHARE, num_items_without_world_size, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "huggingface/transformers#37474",
        "n_gpu > 1: each device divides by the tokens of all, and the losses are averaged",
        SHARE, num_items_without_world_size, SEQUENCES,
    ),
    bug(
        "meta-pytorch/torchtune#2172", "FSDP's mean and the division by all tokens",
        SHARE, scale_grads_after_mean, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "facebookresearch/fairseq#494", "the mean over workers is undone: nothing is wrong",
        None, fairseq_undone, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "PrimeIntellect-ai/prime-rl#2562", "each rank divides by its own unmasked tokens",
        MEANS, local_boxes, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "vllm-project/speculators#942", "supervised tokens of the rank divide",
        MEANS, pmean_of_masked_losses, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "verl-project/verl#5366", "loss over the global batch without dp_size",
        SHARE, agg_loss_without_dp_size, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "huggingface/trl#3231", "a constant length divides: a convention",
        None, masked_to_a_fixed_length, SEQUENCES, "notes",
    ),
    bug(
        "huggingface/transformers#19494", "flax: pmean of losses that are masked on each device",
        MEANS, sp_shards_averaged, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "huggingface/transformers#18297", "BART in flax: normalised per device, then pmean",
        MEANS, pmean_of_masked_losses, SEQUENCES,
    ),
    bug(
        "facebookresearch/detr#267", "num_boxes is all-reduced and divided by the ranks: right",
        None, clamped_boxes, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "tianzhi0549/FCOS#364", "proposal to use the positives of each GPU",
        MEANS, local_boxes, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "fizyr/keras-retinanet#339", "positives of a replica divide; tf adds the replicas",
        "mean per replica, then sum", positives_of_the_batch, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "sb-ai-lab/RePlay#91", "(loss * weight).mean() divides by N, not by the weights",
        "divided by examples instead of weights", weighted_mean_by_count, WEIGHTED,
        options=OF_CLASSES,
    ),
    bug(
        "keras-team/keras#19740", "sample_weight with sum_over_batch_size, on each replica",
        "divided by the local number of examples instead of weights", weighted_by_local_count,
        WEIGHTED, options=OF_CLASSES,
    ),
    bug(
        "keras-team/keras#13329", "weights over their number, not their sum",
        "divided by examples instead of weights", weighted_mean_by_count, WEIGHTED,
        options=OF_CLASSES,
    ),
    bug(
        "vllm-project/speculators#942 (masks as weights)", "weights are summed on each rank",
        MEANS, local_weight_sums, WEIGHTED, options=OF_CLASSES,
    ),
    bug(
        "huggingface/trl#3021", "every sequence counts alike on its rank, whatever its tokens",
        "divided by the local number of examples instead of weights", sequences_then_ranks,
        SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "tensorflow/docs#1460", "a masked loss is averaged with its padding",
        "padding counts as tokens", loss_over_sequence_length, SEQUENCES, options=OF_TOKENS,
    ),
    bug(
        "pytorch/pytorch#25162", "DistributedSampler repeats the first samples",
        "examples are repeated until the shards are equal", distributed_sampler, EXAMPLES,
    ),
    bug(
        "roboflow/rf-detr#1507", "padded index lists count images twice",
        "examples are repeated until the shards are equal", distributed_sampler, EXAMPLES,
    ),
    bug(
        "mosaicml/composer#2218", "batches are padded with samples that the rank has",
        "shards are padded by repeating examples", fill_short_ranks, EXAMPLES,
    ),
    bug(
        "areal-project/AReaL#1096", "drop_last takes the rest of the data away",
        "the rest of the batch is dropped", drop_last, EXAMPLES,
    ),
]  # fmt: skip
assert len(LENGTHS) == len(X)
