"""Batch normalization, contrastive losses and dropout: what depends on the whole batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from real_bugs import bug
from real_bugs.model import EXAMPLES, W1, W2, Outcome, Share, X, ddp, join

LOCAL = "batch statistics are not synchronised"
ONE = "the statistics are those of one replica"
EQUAL = "batch statistics are merged with equal weights"
EXCHANGE = "no gradient passes through what the replicas exchange"
NOISE = "dropout or noise is equal on all replicas"
BIG = tuple(np.tile(leaf, (2, 1)) + 0.1 * np.arange(60)[:, None] % 0.7 for leaf in EXAMPLES)


def normalised(shares: Sequence[Share], weights: np.ndarray, denominators: np.ndarray):
    """Gradient of a layer, batch normalization with merged moments, and a linear head.

    Args:
        shares: Of the replicas that share their moments.
        weights: Of the moments of each share; they sum to 1.
        denominators: Of the losses of each share.
    """
    inputs = [x @ W1 for x, _ in shares]
    means = [h.mean(axis=0) for h in inputs]
    squares = [(h**2).mean(axis=0) for h in inputs]
    mean = sum(w * m for w, m in zip(weights, means, strict=True))
    variance = sum(w * s for w, s in zip(weights, squares, strict=True)) - mean**2
    scale = 1 / np.sqrt(variance + 1e-3)
    back_mean, back_square, centred, own = 0.0, 0.0, [], []
    head = np.zeros_like(W2)
    for h, (_, y), d in zip(inputs, shares, denominators, strict=True):
        out = (h - mean) * scale
        hidden = np.tanh(out)
        error = 2 * (hidden @ W2 - y) / d
        head += hidden.T @ error
        back = error @ W2.T * (1 - hidden**2)
        own.append(back * scale)
        centred.append(h)
        back_mean = back_mean - (back * scale).sum(axis=0)
        dvariance = (back * (h - mean) * -0.5 * scale**3).sum(axis=0)
        back_square = back_square + dvariance
        back_mean = back_mean - 2 * mean * dvariance
    layer = np.zeros_like(W1)
    for (x, _), h, direct, w in zip(shares, centred, own, weights, strict=True):
        through = w / len(h) * (back_mean + 2 * h * back_square)
        layer += x.T @ (direct + through)
    return np.concatenate([layer.ravel(), head.ravel()])


def sizes(shares):
    return np.array([len(x) for x, _ in shares], dtype=float)


def unsynchronised(shares):
    """DDP: each rank normalises its own rows, and means are averaged."""
    return ddp([normalised([p], np.ones(1), sizes([p])) for p in shares])


def unsynchronised_sum(shares):
    """tf: each replica normalises its own rows; losses are divided by the global batch."""
    rows = sizes(shares).sum()
    return sum(normalised([p], np.ones(1), np.array([rows])) for p in shares)


def unsynchronised_fixed(shares):
    """tf: as before, with a constant global batch."""
    return sum(normalised([p], np.ones(1), np.array([64.0])) for p in shares)


def equal_weights(shares):
    """Moments of the ranks are averaged alike; losses are divided by all rows."""
    n = sizes(shares)
    return normalised(shares, np.full(len(n), 1 / len(n)), np.full(len(n), n.sum()))


def synchronised(shares):
    n = sizes(shares)
    return normalised(shares, n / n.sum(), np.full(len(n), n.sum()))


def synchronised_but_means(shares):
    """Moments are right; each rank averages its own losses."""
    n = sizes(shares)
    return normalised(shares, n / n.sum(), n * len(n))


def synchronised_then_mean(shares):
    return synchronised(shares) / len(shares)


def moving(shares, weights):
    """The update is right; the moving mean is merged otherwise."""
    means = [(x @ W1).mean(axis=0) for x, _ in shares]
    merged = sum(w * m for w, m in zip(weights, means, strict=True))
    return Outcome(synchronised(shares), statistics={"mean": 0.1 * merged})


def moving_equal(shares):
    return moving(shares, np.full(len(shares), 1 / len(shares)))


def moving_of_first(shares):
    return moving(shares, np.eye(len(shares))[0])


def moving_right(shares):
    n = sizes(shares)
    return moving(shares, n / n.sum())


def contrast(own: np.ndarray, others: np.ndarray, own_rows: range):
    """InfoNCE of own rows against the others: gradients of both, and the loss, as a sum."""
    logits = own @ others.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(own)), list(own_rows)] -= 1
    return p @ others, p.T @ own


def embed(x):
    return np.tanh(x @ W1)


def back(x, gradient):
    return (x.T @ (gradient * (1 - embed(x) ** 2))).ravel()


VIEWS = (X, X + 0.3 * np.random.default_rng(3).normal(size=X.shape))


def contrastive(shares, gathered: bool, with_gradient: bool, divisor: str = "all"):
    """The rows of each rank against those of the rank, or of all ranks."""
    first, second = (np.concatenate(leaf) for leaf in zip(*shares, strict=True))
    starts = np.cumsum([0, *(len(p[0]) for p in shares)])
    total = 0.0
    for share, start in zip(shares, starts[:-1], strict=True):
        a, b = share
        rows = range(int(start), int(start) + len(a)) if gathered else range(len(a))
        keys = embed(second) if gathered else embed(b)
        d_own, d_keys = contrast(embed(a), keys, rows)
        n = len(first) if divisor == "all" else len(a)
        total = total + back(a, d_own) / n
        if gathered and with_gradient:
            total = total + back(second, d_keys) / n
        elif gathered:
            total = total + back(b, d_keys[list(rows)]) / n
        else:
            total = total + back(b, d_keys) / n
    return total


def local_negatives(shares):
    return contrastive(shares, False, False)


def gathered_without_gradient(shares):
    return contrastive(shares, True, False)


def gathered(shares):
    return contrastive(shares, True, True)


def gathered_then_mean(shares):
    return gathered(shares) / len(shares)


def gathered_times_world(shares):
    """torch.distributed.nn.all_gather with the loss of all rows on every rank, summed."""
    return gathered(shares) * len(shares)


def dropped(share, seed: int):
    """A gradient with a mask drawn for the rows of the share."""
    x, y = share
    mask = 2.0 * np.random.default_rng(seed).integers(0, 2, size=(len(x), 5))
    hidden = np.tanh(x @ W1) * mask
    error = 2 * (hidden @ W2 - y)
    back = error @ W2.T * mask * (1 - np.tanh(x @ W1) ** 2)
    return np.concatenate([(x.T @ back).ravel(), (hidden.T @ error).ravel()]) / len(x)


def same_seed(shares):
    return ddp([dropped(share, 42) for share in shares])


def same_seed_weighted(shares):
    n = sizes(shares)
    return sum(len(p[0]) / n.sum() * dropped(p, 42) for p in shares)


def one_stream(shares):
    """Masks are drawn for the rows of the global batch: right."""
    return dropped(join(shares), 42)


CASES = [
    bug(
        "pytorch/pytorch#2584", "each GPU normalises its own rows", LOCAL, unsynchronised, BIG,
    ),
    bug(
        "tensorflow/models#100", "each tower has its own batch norm", LOCAL, unsynchronised_sum,
        BIG,
    ),
    bug(
        "tensorflow/tensorflow#7439", "no batch norm over replicas, with a constant batch", LOCAL,
        unsynchronised_fixed, BIG,
    ),
    bug(
        "google/flax#2417", "the mean of per-device means", EQUAL, equal_weights, BIG,
    ),
    bug(
        "pytorch/pytorch#22192", "SyncBatchNorm takes the local count for all GPUs", EQUAL,
        equal_weights, BIG,
    ),
    bug(
        "PaddlePaddle/Paddle#32464", "sync_batch_norm averages local means", EQUAL, equal_weights,
        EXAMPLES,
    ),
    bug(
        "mapillary/inplace_abn#68", "the count on every GPU is taken as the same", EQUAL,
        moving_equal, BIG,
    ),
    bug(
        "NVIDIA/apex#387", "running statistics with equal weights", EQUAL, moving_equal, EXAMPLES,
    ),
    bug(
        "NVIDIA-Merlin/HugeCTR#181", "moving averages are those of one GPU", ONE,
        moving_of_first, BIG,
    ),
    bug(
        "NVIDIA/apex#792", "non-uniform batches are supported: nothing is wrong", None,
        moving_right, BIG,
    ),
    bug(
        "google/flax#2417 (losses)", "moments are right, ranks count alike",
        "mean of the replicas' means", synchronised_but_means, BIG,
    ),
    bug(
        "tensorflow/tensorflow#35333 (moments are right)", "synchronised, and averaged once more",
        "divided by the global batch, then averaged", synchronised_then_mean, BIG,
    ),
    bug(
        "Lightning-Universe/lightning-bolts#179", "NT-Xent sees the rank's own negatives", LOCAL,
        local_negatives, VIEWS,
    ),
    bug(
        "vturrisi/solo-learn#229", "NNCLR's loss on the current GPU only", LOCAL, local_negatives,
        VIEWS,
    ),
    bug(
        "facebookresearch/vissl#123", "gathered embeddings carry no gradient", EXCHANGE,
        gathered_without_gradient, VIEWS,
    ),
    bug(
        "lightly-ai/lightly#1977", "gathered, and off by 1 / world_size",
        "divided by the global batch, then averaged", gathered_then_mean, VIEWS,
    ),
    bug(
        "JohnGiorgi/DeCLUTR#212", "all_gather: gradients are off by 1 / N",
        "divided by the global batch, then averaged", gathered_then_mean, VIEWS,
    ),
    bug(
        "mlfoundations/open_clip#616", "all_gather with gradient scales by the GPUs",
        "multiplied by the replicas", gathered_times_world, VIEWS,
    ),
    bug(
        "huggingface/transformers#31412", "one seed gives all devices the same masks", NOISE,
        same_seed, BIG,
    ),
    bug(
        "huggingface/accelerate#114", "dropout is the same across GPUs", NOISE,
        same_seed_weighted, BIG,
    ),
    bug(
        "tenstorrent/tt-metal#16823", "the seed knows no device", NOISE, same_seed, EXAMPLES,
    ),
    bug(
        "huggingface/accelerate#114 (fixed)", "one stream over the rows: nothing is wrong", None,
        one_stream, BIG,
    ),
]  # fmt: skip
