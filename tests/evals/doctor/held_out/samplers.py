"""Examples that are drawn twice or never."""

from __future__ import annotations

import numpy as np

from held_out import Case
from held_out.toy import IMAGES, PLAIN, cut, dp_mean, grad_mean, grad_sum, merged, rows

SEVERAL = {"replicas": (2, 3, 4), "max_examples": 13}


def last_repeated(shares):
    """Short shares are filled up with their own last example."""
    most = max(rows(s) for s in shares)
    return dp_mean(grad_mean(cut(s, np.minimum(np.arange(most), rows(s) - 1))) for s in shares)


def first_repeated(shares):
    """Short shares are filled up with their first example."""
    most = max(rows(s) for s in shares)
    fill = [np.r_[np.arange(rows(s)), np.zeros(most - rows(s), int)] for s in shares]
    return dp_mean(grad_mean(cut(s, own)) for s, own in zip(shares, fill, strict=True))


def pad_with_last_of_all(shares):
    """The data set is padded with its last example until ranks are even."""
    everything, world = merged(shares), len(shares)
    n = rows(everything)
    index = np.r_[np.arange(n), np.full(-n % world, n - 1)]
    return grad_mean(cut(everything, index))


def odd_example_dropped(shares):
    """Each rank keeps an even number of examples, pairs of two."""
    kept = [cut(s, slice(0, max(rows(s) // 2 * 2, 1))) for s in shares]
    return sum(grad_sum(s) for s in kept) / sum(rows(s) for s in kept)


def odd_example_dropped_means(shares):
    return dp_mean(grad_mean(cut(s, slice(0, max(rows(s) // 2 * 2, 1)))) for s in shares)


def to_the_shortest(shares):
    """Every rank stops where the shortest share ends (min over ranks)."""
    least = min(rows(s) for s in shares)
    return dp_mean(grad_mean(cut(s, slice(0, least))) for s in shares)


def overlap(shares):
    """Slices overlap by one: a rank begins with the last example of the one before."""
    n = sum(rows(s) for s in shares)
    total = 0
    for r, s in enumerate(shares):
        total = total + grad_sum(s)
        if r:
            total = total + grad_sum(cut(shares[r - 1], [rows(shares[r - 1]) - 1]))
    return total / n


def gap(shares):
    """Off by one: every rank but the first skips its first example."""
    n = sum(rows(s) for s in shares)
    total = 0
    for r, s in enumerate(shares):
        total = total + grad_sum(cut(s, slice(1 if r and rows(s) > 1 else 0, None)))
    return total / n


def same_data_everywhere(shares):
    """No sampler: each rank trains on the data of all, averaged: nothing is wrong."""
    everything = merged(shares)
    return dp_mean(grad_mean(everything) for _ in shares)


def first_share_everywhere(shares):
    """No set_epoch, one seed: every rank draws the share of rank 0."""
    return dp_mean(grad_mean(shares[0]) for _ in shares)


def filled(place):
    def truth(d):
        most = max(len(d.share(r)) for r in range(d.R))
        return d.each(
            lambda i, r, k: (1 + (most - len(d.share(r)) if i == d.share(r)[place] else 0))
            / most / d.R
        )  # fmt: skip

    return truth


def padded_last(d):
    order = [i for r in range(d.R) for i in d.share(r)]
    more = -d.N % d.R
    return d.each(lambda i, r, k: (1 + more * (i == order[-1])) / (d.N + more))


def even_share(d, r):
    own = d.share(r)
    return own[: max(len(own) // 2 * 2, 1)]


def shortest(d):
    least = min(len(d.share(r)) for r in range(d.R))
    return d.each(lambda i, r, k: 1 / least / d.R if i in d.share(r)[:least] else 0)


CASES = [
    Case("practice: pad with the last sample of the rank", "the last example fills the share",
         filled(-1), last_repeated, IMAGES, PLAIN),
    Case("practice: pad with index 0", "the first example fills the share", filled(0),
         first_repeated, IMAGES, PLAIN),
    Case("practice: pad the index list with its last entry", "the last example of all is repeated",
         padded_last, pad_with_last_of_all, IMAGES, SEVERAL),
    Case("practice: pairs, drop the odd one", "the odd example of a rank is dropped",
         lambda d: d.each(lambda i, r, k: (i in even_share(d, r))
                          / sum(len(even_share(d, q)) for q in range(d.R))),
         odd_example_dropped, IMAGES, PLAIN),
    Case("practice: drop_last with batch_size 2 on each rank", "the same, ranks averaged",
         lambda d: d.each(lambda i, r, k: (i in even_share(d, r)) / len(even_share(d, r)) / d.R),
         odd_example_dropped_means, IMAGES, PLAIN),
    Case("practice: stop at the shortest rank", "what is longer than the shortest share is dropped",
         shortest, to_the_shortest, IMAGES, PLAIN),
    Case("practice: slices that overlap by one", "the last example of all but the last rank twice",
         lambda d: d.each(lambda i, r, k: (2 if r < d.R - 1 and i == d.share(r)[-1] else 1) / d.N),
         overlap, IMAGES, PLAIN),
    Case("practice: slices with a gap", "the first example of all but the first rank is lost",
         lambda d: d.each(lambda i, r, k: (0 if r and i == d.share(r)[0] and len(d.share(r)) > 1
                                           else 1) / d.N),
         gap, IMAGES, PLAIN),
    Case("practice: every rank has all data", "nothing is wrong", "right", same_data_everywhere,
         IMAGES, PLAIN),
    Case("practice: one seed for all samplers", "the share of rank 0 everywhere",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(0)) if r == 0 else 0),
         first_share_everywhere, IMAGES, PLAIN),
]  # fmt: skip
