"""Functions of the whole batch: moments, pairs, roots, squares, and what replicas draw."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.toy import (
    FEATURES,
    HIDDEN,
    IMAGES,
    A,
    B,
    dp_mean,
    forward,
    grad_mean,
    grad_sum,
    images,
    losses,
    merged,
    rows,
)
from samegrad.testing import Outcome

RNG = np.random.default_rng(7)
SCALES = RNG.normal(size=(FEATURES, 40)), RNG.normal(size=40)
BIG = {"max_examples": 24}


def root_of_mean(share):
    """RMSE-like: the root of the share's mean loss."""
    return grad_mean(share) / (2 * np.sqrt(losses(share).mean()))


def rmse(shares):
    return dp_mean(root_of_mean(s) for s in shares)


def square_of_mean(share):
    """A moment penalty: the square of the share's mean loss."""
    return 2 * losses(share).mean() * grad_mean(share)


def squares(shares):
    return dp_mean(square_of_mean(s) for s in shares)


def squares_by_samples(shares):
    n = sum(rows(s) for s in shares)
    return sum(rows(s) / n * square_of_mean(s) for s in shares)


def log_of_mean(share):
    return grad_mean(share) / losses(share).mean()


def logs(shares):
    return dp_mean(log_of_mean(s) for s in shares)


def soft_dice(share):
    """1 - 2 Σ p t / (Σ p + Σ t) of one class over the share."""
    x, y = images(share)
    hidden, chances, _ = forward(x, y)
    p, t = chances[:, 0], (y == 0).astype(float)
    top, bottom = 2 * (p @ t) + 1, p.sum() + t.sum() + 1
    dp = -(2 * t * bottom - top) / bottom**2
    error = chances * (np.eye(4)[0] - chances[:, :1]) * dp[:, None]
    error = p[:, None] * (np.eye(4)[0] - chances) * dp[:, None]
    inner = error @ B.T * (1 - hidden**2)
    return np.concatenate([(x.T @ inner).ravel(), (hidden.T @ error).ravel()])


def dice(shares):
    return dp_mean(soft_dice(s) for s in shares)


def batch_norm(shares, weights, divisors):
    """Layer, moments merged with the given weights, tanh, head, cross-entropy."""
    hs = [s["image"] @ A for s in shares]
    mean = sum(w * h.mean(axis=0) for w, h in zip(weights, hs, strict=True))
    square = sum(w * (h**2).mean(axis=0) for w, h in zip(weights, hs, strict=True))
    inverse = 1 / np.sqrt(square - mean**2 + 1e-2)
    d_mean, d_square, parts, head = 0.0, 0.0, [], np.zeros_like(B)
    for h, s, n in zip(hs, shares, divisors, strict=True):
        out = np.tanh((h - mean) * inverse)
        logits = out @ B
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        error = (p - np.eye(4)[s["label"]]) / n
        head += out.T @ error
        back = error @ B.T * (1 - out**2)
        parts.append(back * inverse)
        d_var = (back * (h - mean) * -0.5 * inverse**3).sum(axis=0)
        d_mean = d_mean - (back * inverse).sum(axis=0) - 2 * mean * d_var
        d_square = d_square + d_var
    layer = np.zeros((FEATURES, HIDDEN))
    for s, h, own, w in zip(shares, hs, parts, weights, strict=True):
        layer += s["image"].T @ (own + w / len(h) * (d_mean + 2 * h * d_square))
    return np.concatenate([layer.ravel(), head.ravel()])


def counts(shares):
    return np.array([rows(s) for s in shares], dtype=float)


def local_norm(shares):
    return dp_mean(batch_norm([s], [1.0], [rows(s)]) for s in shares)


def ghost_norm_summed(shares):
    n = counts(shares).sum()
    return sum(batch_norm([s], [1.0], [n]) for s in shares)


def merged_alike(shares):
    n = counts(shares)
    return batch_norm(shares, np.full(len(n), 1 / len(n)), np.full(len(n), n.sum()))


def merged_right_losses_alike(shares):
    n = counts(shares)
    return batch_norm(shares, n / n.sum(), n * len(n))


def pairs(share, others, first):
    """Supervised contrast of own rows against others (a sum over own rows)."""
    a, o = np.tanh(share["image"] @ A), np.tanh(others["image"] @ A)
    logits = a @ o.T
    own = np.arange(len(a)) + first
    logits[np.arange(len(a)), own] = -50.0
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    alike = (share["label"][:, None] == others["label"][None, :]).astype(float)
    alike[np.arange(len(a)), own] = 0
    alike /= np.maximum(alike.sum(axis=1, keepdims=True), 1)
    error = p * alike.sum(axis=1, keepdims=True) - alike
    return error @ o * (1 - a**2), error.T @ a * (1 - o**2)


def contrast(shares, gathered, gradient, world):
    everything, n = merged(shares), sum(rows(s) for s in shares)
    starts = np.cumsum([0, *(rows(s) for s in shares)])
    total = 0
    for s, start in zip(shares, starts[:-1], strict=True):
        others, first = (everything, int(start)) if gathered else (s, 0)
        da, do = pairs(s, others, first)
        own = do[first : first + rows(s)]
        part = s["image"].T @ da
        part = part + (others["image"].T @ do if gradient else s["image"].T @ own)
        total = total + part / (n if gathered else rows(s))
    return total.ravel() * world / len(shares)


def local_contrast(shares):
    return contrast(shares, False, True, 1)


def gathered_without_gradient(shares):
    return contrast(shares, True, False, len(shares))


def gathered_and_averaged(shares):
    """Gradients flow through the gather, and DDP's mean is not undone."""
    return contrast(shares, True, True, 1)


def gathered_right(shares):
    return contrast(shares, True, True, len(shares))


def dropped(share, seed):
    mask = 2.0 * np.random.default_rng(seed).integers(0, 2, (rows(share), FEATURES))
    return grad_sum({**share, "image": share["image"] * mask})


def one_mask(shares):
    """torch.manual_seed(seed) on every rank: the same masks."""
    n = sum(rows(s) for s in shares)
    return sum(dropped(s, 5) for s in shares) / n


def one_noise_level(shares):
    """A diffusion time drawn once per rank, for all of its examples."""
    n = sum(rows(s) for s in shares)
    total = 0
    for r, s in enumerate(shares):
        level = np.random.default_rng((3, r)).uniform(0.2, 2.0)
        total = total + grad_sum({**s, "image": np.sin(level * s["image"])})
    return total / n


def running_moments(weights_of):
    def step(shares):
        n = counts(shares)
        update = sum(grad_sum(s) for s in shares) / n.sum()
        means = [(s["image"] @ A).mean(axis=0) for s in shares]
        w = weights_of(n)
        return Outcome(update, statistics=[0.1 * sum(a * m for a, m in zip(w, means, strict=True))])

    return step


def adam_moments(shares):
    """exp_avg_sq is the mean of the ranks' squares, not the square of the mean."""
    n = counts(shares).sum()
    g = sum(grad_sum(s) for s in shares) / n
    second = dp_mean(grad_mean(s) ** 2 for s in shares)
    return Outcome(g, statistics=[0.1 * g, 0.001 * second])


CASES = [
    Case("practice: torch.sqrt(mse) on each rank", "roots of local means are averaged",
         "a function of the share", rmse, IMAGES, BIG),
    Case("practice: (mean of scores) ** 2 on each rank", "squares of local means are averaged",
         "a function of the share", squares, IMAGES, BIG),
    Case("practice: the same, weighted by samples", "squares of local means by samples",
         "a function of the share", squares_by_samples, IMAGES, BIG),
    Case("practice: log of a local mean (Donsker-Varadhan)", "logs of local means are averaged",
         "a function of the share", logs, IMAGES, BIG),
    Case("practice: soft Dice on each rank", "ratios of local sums are averaged",
         "a function of the share", dice, IMAGES, BIG),
    Case("practice: BatchNorm without SyncBN", "each rank normalises its rows",
         "a function of the share", local_norm, IMAGES, BIG),
    Case("practice: towers, losses by the global batch", "each tower normalises its rows",
         "a function of the share", ghost_norm_summed, IMAGES, BIG),
    Case("practice: pmean of moments", "moments of ranks are averaged alike",
         "moments merged with equal weights", merged_alike, IMAGES, BIG),
    Case("practice: SyncBN, local mean losses", "moments right, ranks count alike",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r)) / d.R), merged_right_losses_alike,
         IMAGES, BIG),
    Case("practice: in-rank negatives", "pairs of the rank only", "a function of the share",
         local_contrast, IMAGES, BIG),
    Case("practice: all_gather without gradient, times world", "gathered rows are constants",
         "no gradient of the exchange", gathered_without_gradient, IMAGES, BIG),
    Case("practice: all_gather with gradient under DDP", "the mean over ranks is not undone",
         lambda d: d.w / d.W / d.R, gathered_and_averaged, IMAGES, BIG),
    Case("ShiqiYu/OpenGait#36", "the gradient of the gather times world: nothing is wrong",
         "right", gathered_right, IMAGES, BIG),
    Case("practice: one seed on all ranks", "masks are the same on all ranks", "same noise",
         one_mask, IMAGES, BIG),
    Case("practice: t drawn once per rank", "one noise level for a rank's examples",
         "one number per replica", one_noise_level, IMAGES, {"max_examples": 14}),
    Case("practice: buffers broadcast from rank 0", "moving moments of the first rank",
         "statistics: of one replica", running_moments(lambda n: np.eye(len(n))[0]), IMAGES, BIG),
    Case("practice: buffers averaged over ranks", "moving moments with equal weights",
         "statistics: equal weights", running_moments(lambda n: np.full(len(n), 1 / len(n))),
         IMAGES, BIG),
    Case("practice: optimizer in backward on local gradients", "second moments of local means",
         "statistics: of local gradients", adam_moments, IMAGES, BIG),
]  # fmt: skip
