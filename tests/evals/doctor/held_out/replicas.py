"""Ranks that are added, averaged, left out, counted twice, or joined by nodes."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.toy import (
    BY_TOKENS,
    IMAGES,
    PLAIN,
    SIZE,
    TEXT,
    cut,
    dp_mean,
    grad_mean,
    grad_sum,
    n_tokens,
    rows,
    token_sum,
)
from samegrad.testing import Outcome


def bigdl(shares):
    """size_average=False: sums of executors are averaged over the cluster."""
    return dp_mean(grad_sum(s) for s in shares)


def mxnet_batch(shares):
    """normalization='batch' on each device, the store adds gradients."""
    return sum(grad_mean(s) for s in shares)


def mxnet_valid(shares):
    return sum(token_sum(s) / n_tokens(s) for s in shares)


def fedprox(shares):
    """Clients are averaged without their numbers of samples."""
    return dp_mean(grad_mean(s) for s in shares)


def without_chief(shares):
    """Aggregation begins at rank 1: the chief's own gradient is not in the sum."""
    n = sum(rows(s) for s in shares)
    return sum(grad_sum(s) for s in shares[1:] or shares) / n


def chief_twice(shares):
    """The chief adds its gradient to a sum that holds it already."""
    n = sum(rows(s) for s in shares)
    total = sum(grad_sum(s) for s in shares)
    return (total + (grad_sum(shares[0]) if len(shares) > 1 else 0)) / n


def last_twice(shares):
    n = sum(rows(s) for s in shares)
    total = sum(grad_sum(s) for s in shares)
    return (total + (grad_sum(shares[-1]) if len(shares) > 1 else 0)) / n


def means_without_chief(shares):
    """Workers' means are averaged, the chief's is missing but counted."""
    return sum(grad_mean(s) for s in shares[1:] or shares) / len(shares)


def of_last_count(shares):
    """A loop variable survives: the rows of the last rank divide."""
    n = 0
    for s in shares:
        n = rows(s)
    return dp_mean(grad_sum(s) / n for s in shares)


def by_nodes(shares):
    """Two ranks per node: a true mean inside of a node, nodes are averaged alike."""
    nodes = [shares[i : i + 2] for i in range(0, len(shares), 2)]
    means = [sum(grad_sum(s) for s in node) / sum(rows(s) for s in node) for node in nodes]
    return dp_mean(means)


def nodes_added(shares):
    """A mean of the node, all-reduced with SUM over nodes."""
    nodes = [shares[i : i + 2] for i in range(0, len(shares), 2)]
    return sum(sum(grad_sum(s) for s in node) / sum(rows(s) for s in node) for node in nodes)


def running_average(shares):
    """avg = (avg + g) / 2 while gradients arrive."""
    average = None
    for s in shares:
        g = grad_mean(s)
        average = g if average is None else (average + g) / 2
    return average


def sqrt_lr(shares):
    """The learning rate grows with the square root of the ranks."""
    n = sum(rows(s) for s in shares)
    return sum(grad_sum(s) for s in shares) / n * np.sqrt(len(shares))


def paddle_scale(shares):
    """scale_loss divides means by the trainers, all-reduce averages."""
    return dp_mean(grad_mean(s) / len(shares) for s in shares)


def scaled_twice(shares):
    """Both the framework and the user undo the mean over ranks."""
    n, world = sum(rows(s) for s in shares), len(shares)
    return dp_mean(grad_sum(s) * world * world / n for s in shares)


def unbiased(shares):
    """n - 1 divides on every rank, at least 1."""
    return dp_mean(grad_sum(s) / max(rows(s) - 1, 1) for s in shares)


def squared_divisor(shares):
    """Local means are divided by the rank's rows again."""
    return dp_mean(grad_mean(s) / rows(s) for s in shares)


def nothing_reduced(shares):
    """Evaluated under no_sync: every rank keeps its own."""
    return Outcome(grad_mean(shares[0]), replicas=[grad_mean(s) for s in shares])


def one_bucket_is_forgotten(shares):
    """The head is not registered with the reducer: copies diverge there."""
    n = sum(rows(s) for s in shares)
    body = sum(grad_sum(s) for s in shares)[:63] / n
    copies = [[body, grad_mean(s)[63:]] for s in shares]
    return Outcome(copies[0], replicas=copies)


def head_by_first(shares):
    """The head's gradient is that of rank 0, broadcast."""
    n = sum(rows(s) for s in shares)
    return {
        "body": sum(grad_sum(s) for s in shares)[:63] / n,
        "head": grad_sum(shares[0])[63:] / rows(shares[0]),
    }


def experts_summed(shares):
    """Shared weights are averaged by counts, experts' means are added."""
    n = sum(rows(s) for s in shares)
    return [
        sum(grad_sum(s) for s in shares)[:63] / n,
        sum(grad_mean(s) for s in shares)[63:],
    ]


def stale_world(shares):
    """world_size is that of the launch, 8, though fewer ranks run."""
    if len(shares) == 1:
        return grad_mean(shares[0])
    n = sum(rows(s) for s in shares)
    return sum(grad_sum(s) / n * 8 for s in shares) / len(shares) / 8 * len(shares) * 0.25


def first_examples_only(shares):
    """Every rank takes the first example of its share for the whole share."""
    return dp_mean(grad_sum(cut(s, [0])) for s in shares)


assert SIZE == 91

CASES = [
    Case("intel/ipex-llm#2079", "sums are averaged over the executors",
         lambda d: d.w / d.W / d.R, bigdl, IMAGES, PLAIN),
    Case("apache/mxnet#6710", "the device's batch divides, devices are added",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r))), mxnet_batch, IMAGES, PLAIN),
    Case("apache/mxnet#6710 (valid)", "the device's valid count divides, devices are added",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.share(r))), mxnet_valid, TEXT,
         BY_TOKENS),
    Case("litian96/FedProx#12", "clients count alike",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r)) / d.R), fedprox, IMAGES, PLAIN),
    Case("practice: aggregation from rank 1", "the first replica is left out",
         lambda d: d.each(lambda i, r, k: 0 if r == 0 and d.R > 1 else 1 / d.N), without_chief,
         IMAGES, PLAIN),
    Case("practice: the chief adds itself", "the first replica counts twice",
         lambda d: d.each(lambda i, r, k: (2 if r == 0 and d.R > 1 else 1) / d.N), chief_twice,
         IMAGES, PLAIN),
    Case("practice: reduce into an own buffer", "the last replica counts twice",
         lambda d: d.each(lambda i, r, k: (2 if r == d.R - 1 and d.R > 1 else 1) / d.N),
         last_twice, IMAGES, PLAIN),
    Case("practice: workers only, divided by all", "means without the first replica",
         lambda d: d.each(lambda i, r, k: 0 if r == 0 and d.R > 1 else 1 / len(d.share(r)) / d.R),
         means_without_chief, IMAGES, PLAIN),
    Case("practice: a loop variable survives", "the count of the last replica divides",
         lambda d: d.w / d.R / len(d.share(d.R - 1)), of_last_count, IMAGES, PLAIN),
    Case("practice: hierarchical all-reduce", "nodes of two count alike",
         lambda d: d.each(lambda i, r, k: 1 / sum(len(d.share(q)) for q in range(d.R)
                                                  if q // 2 == r // 2) / -(-d.R // 2)),
         by_nodes, IMAGES, {"replicas": (2, 3, 4), "max_examples": 13}),
    Case("practice: hierarchical all-reduce with SUM", "means of nodes are added",
         lambda d: d.each(lambda i, r, k: 1 / sum(len(d.share(q)) for q in range(d.R)
                                                  if q // 2 == r // 2)),
         nodes_added, IMAGES, {"replicas": (2, 3, 4), "max_examples": 13}),
    Case("practice: avg = (avg + g) / 2", "a running average of arriving means",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r)) / 2 ** (d.R - max(r, 1))),
         running_average, IMAGES, {"replicas": (2, 3, 4), "max_examples": 13}),
    Case("practice: lr * sqrt(world)", "the square root of the replicas multiplies",
         lambda d: d.w / d.W * np.sqrt(d.R), sqrt_lr, IMAGES, PLAIN),
    Case("practice: scale_loss and a mean", "the replicas divide twice",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r)) / d.R**2), paddle_scale, IMAGES,
         PLAIN),
    Case("practice: the mean over ranks is undone twice", "the replicas multiply",
         lambda d: d.w / d.W * d.R, scaled_twice, IMAGES, PLAIN),
    Case("practice: Bessel's n - 1", "n - 1 of the rank divides",
         lambda d: d.each(lambda i, r, k: 1 / max(len(d.share(r)) - 1, 1) / d.R), unbiased, IMAGES,
         PLAIN),
    Case("practice: .mean() / len(batch)", "the rank's rows divide twice",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r)) ** 2 / d.R), squared_divisor, IMAGES,
         PLAIN),
    Case("practice: no_sync everywhere", "copies diverge", "copies differ", nothing_reduced,
         IMAGES, PLAIN),
    Case("practice: a head outside of the wrapped module", "copies diverge in the head",
         "copies differ", one_bucket_is_forgotten, IMAGES, PLAIN),
    Case("practice: broadcast of the head's gradient", "the head follows rank 0",
         "part of the parameters", head_by_first, IMAGES, PLAIN),
    Case("practice: experts outside of the data group", "experts' means are added",
         "part of the parameters", experts_summed, IMAGES, PLAIN),
    Case("practice: WORLD_SIZE of the launch", "a constant divides on several ranks",
         lambda d: d.w / d.W * (1 if d.R == 1 else 0.25), stale_world, IMAGES, PLAIN),
    Case("practice: batch[0] for batch", "the first example of each share stands for it",
         lambda d: d.each(lambda i, r, k: 1 / d.R if i == d.share(r)[0] else 0),
         first_examples_only, IMAGES, PLAIN),
]  # fmt: skip
