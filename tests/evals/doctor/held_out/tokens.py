"""Token counts of language models and of reinforcement learning."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.toy import (
    BY_TOKENS,
    CLASSES,
    LENGTH,
    TEXT,
    TOKEN_WINDOWS,
    backward,
    cut,
    dp_mean,
    flat,
    forward,
    n_tokens,
    rows,
    token_sum,
    valid,
    windows,
)


def no_op_token_level(shares):
    """policy_loss.sum() / numel() of sums over sequences: a mean over sequences."""
    return dp_mean(token_sum(s) / rows(s) for s in shares)


def longest(batch):
    return int(valid(batch).sum(axis=1).max())


def norm_by_batch_length(shares):
    return dp_mean(token_sum(s) / (rows(s) * longest(s)) for s in shares)


def padded_micro_batches(shares):
    """loss.mean() over padded tensors, each micro-batch padded to its own longest."""
    return dp_mean(
        sum(token_sum(mb) / (rows(mb) * longest(mb)) for mb in rank) / len(rank)
        for rank in windows(shares)
    )


def per_example_then_global(shares):
    """/ n_i of each response, then / N of all."""
    everything = sum(rows(s) for s in shares)
    own = [token_sum(cut(s, [i])) / n_tokens(cut(s, [i])) for s in shares for i in range(rows(s))]
    return sum(own) / everything


def mead(shares):
    total = sum(n_tokens(s) for s in shares)
    return dp_mean(token_sum(s) / total for s in shares)


def sample_ratio(shares):
    """Local token means are weighted by the rank's part of the samples."""
    n = sum(rows(s) for s in shares)
    return sum(rows(s) / n * token_sum(s) / n_tokens(s) for s in shares)


def sample_ratio_ddp(shares):
    """The same behind DDP, with world_size undone."""
    n, world = sum(rows(s) for s in shares), len(shares)
    return dp_mean(world * rows(s) / n * token_sum(s) / n_tokens(s) for s in shares)


def sample_ratio_of_micro_batches(shares):
    """len(mb) / len(window) weights token means of micro-batches (one device)."""
    (window,) = windows(shares)
    n = sum(rows(mb) for mb in window)
    return sum(rows(mb) / n * token_sum(mb) / n_tokens(mb) for mb in window)


def token_ratio_of_sums(shares):
    """Sums are weighted by the tokens of the rank as if they were means."""
    total = sum(n_tokens(s) ** 2 for s in shares)
    return sum(token_sum(s) * n_tokens(s) for s in shares) / total


def window_tokens_divided_by_world(shares):
    """num_items of all ranks / world, as if averaged already, and ranks are averaged: right sum,
    then divided by the accumulation steps once more."""
    ranks = windows(shares)
    items = sum(n_tokens(mb) for mb in flat(shares)) / len(ranks)
    return dp_mean(sum(token_sum(mb) / items for mb in rank) / len(rank) for rank in ranks)


def last_micro_batch_tokens(shares):
    """num_items of the last micro-batch of all ranks divides the whole window."""
    ranks = windows(shares)
    items = sum(n_tokens(rank[-1]) for rank in ranks)
    return sum(token_sum(mb) for mb in flat(shares)) / items


def first_micro_batch_tokens(shares):
    """num_items is cached at the first micro-batch of the rank."""
    return dp_mean(
        sum(token_sum(mb) for mb in rank) / n_tokens(rank[0]) for rank in windows(shares)
    )


def entropy_gradient(batch):
    """The gradient of Σ over sequences of a confidence term of the first token."""
    x = batch["input_ids"][:, 0]
    _, chances, _ = forward(x, np.zeros(rows(batch), int))
    return backward(x, chances.argmax(axis=1), np.ones(rows(batch)) * 0.7)


def kl_by_sequences(shares):
    """Policy loss over tokens of all ranks, KL over the sequences of the rank, averaged."""
    tokens = sum(n_tokens(s) for s in shares)
    policy = sum(token_sum(s) for s in shares) / tokens
    return policy + dp_mean(entropy_gradient(s) / rows(s) for s in shares)


def value_loss_added(shares):
    """Policy loss right; the value loss is a local mean that the sum over ranks adds up."""
    tokens = sum(n_tokens(s) for s in shares)
    return sum(token_sum(s) / tokens + entropy_gradient(s) / rows(s) for s in shares)


def z_loss_by_local_tokens(shares):
    """Cross-entropy over all tokens; z-loss over the rank's own tokens, averaged over ranks."""
    tokens = sum(n_tokens(s) for s in shares)
    ce = sum(token_sum(s) for s in shares) / tokens
    return ce + dp_mean(entropy_gradient(s) / n_tokens(s) for s in shares)


def padded_everywhere(shares):
    """All rows times the context length divide: a constant per example."""
    return sum(token_sum(s) for s in shares) / (sum(rows(s) for s in shares) * LENGTH)


def local_means(d):
    return d.each(lambda i, r, k: d.w[i] / d.sum(d.share(r)) * len(d.share(r)) / d.N)


def max_of(d, numbers):
    return max(d.w[list(numbers)])


assert CLASSES > 1

CASES = [
    Case("akaszubski/autonomous-dev#413", "a mean over sequences of sums over tokens",
         lambda d: d.each(lambda i, r, k: d.w[i] / len(d.share(r)) / d.R), no_op_token_level, TEXT,
         BY_TOKENS),
    Case("NovaSky-AI/SkyRL#133", "rows times the longest of the rank divide",
         lambda d: d.each(lambda i, r, k: d.w[i] / (len(d.share(r)) * max_of(d, d.share(r))) / d.R),
         norm_by_batch_length, TEXT, BY_TOKENS),
    Case("practice: loss.mean() of padded micro-batches", "each is padded to its own longest",
         lambda d: d.each(lambda i, r, k: d.w[i] / (len(d.parts[r][k]) * max_of(d, d.parts[r][k]))
                          / d.R / d.K),
         padded_micro_batches, TEXT, TOKEN_WINDOWS),
    Case("marin-community/marin#2376", "responses count alike", lambda d: d.w / d.N,
         per_example_then_global, TEXT, BY_TOKENS),
    Case("mead-ml/mead-baseline#793", "tokens of all ranks divide, DDP averages",
         lambda d: d.w / d.W / d.R, mead, TEXT, BY_TOKENS),
    Case("facebookresearch/pytext#453", "token means times the part of the samples", local_means,
         sample_ratio, TEXT, BY_TOKENS),
    Case("practice: maxwellzh's workaround with tokens", "the same behind DDP", local_means,
         sample_ratio_ddp, TEXT, BY_TOKENS),
    Case("practice: len(mb) / len(batch) weights", "token means of micro-batches by samples",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.parts[r][k])
                          * len(d.parts[r][k]) / len(d.share(r))),
         sample_ratio_of_micro_batches, TEXT,
         {**TOKEN_WINDOWS, "replicas": (1,), "micro_batches": (1, 2, 3)}),
    Case("practice: weighted all-reduce of sums", "sums are weighted by their tokens again",
         lambda d: d.each(lambda i, r, k: d.w[i] * d.sum(d.share(r))
                          / sum(d.sum(d.share(q)) ** 2 for q in range(d.R))),
         token_ratio_of_sums, TEXT, BY_TOKENS),
    Case("OpenHelix-Team/cobra#19", "a window-normalised loss is divided by the steps",
         lambda d: d.w / d.W / d.K, window_tokens_divided_by_world, TEXT, TOKEN_WINDOWS),
    Case("practice: num_items of the last batch", "the last micro-batch of all ranks divides",
         lambda d: d.w / d.sum(d.window(d.K - 1)), last_micro_batch_tokens, TEXT, TOKEN_WINDOWS),
    Case("practice: num_items cached at the first batch", "the first micro-batch divides",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.parts[r][0]) / d.R),
         first_micro_batch_tokens, TEXT, TOKEN_WINDOWS),
    Case("practice: KL by sequences beside tokens", "two counts in one loss", "part of the loss",
         kl_by_sequences, TEXT, BY_TOKENS),
    Case("practice: PPO's value loss", "a local mean beside a global one", "part of the loss",
         value_loss_added, TEXT, BY_TOKENS),
    Case("practice: z-loss by the rank's tokens", "a local count beside a global one",
         "part of the loss", z_loss_by_local_tokens, TEXT, BY_TOKENS),
    Case("practice: rows times the context length", "padding divides", lambda d: d.w / d.N,
         padded_everywhere, TEXT, BY_TOKENS),
]  # fmt: skip
