"""Losses and metrics that are logged wrongly beside a right update."""

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
    flat,
    grad_sum,
    losses,
    n_tokens,
    rows,
    token_losses,
    token_sum,
    windows,
)
from samegrad.testing import Outcome


def logging(report):
    def step(shares):
        update = sum(grad_sum(mb) for mb in flat(shares)) / sum(rows(mb) for mb in flat(shares))
        return Outcome(update, report(windows(shares)))

    return step


def logging_tokens(report):
    def step(shares):
        tokens = sum(n_tokens(mb) for mb in flat(shares))
        update = sum(token_sum(mb) for mb in flat(shares)) / tokens
        return Outcome(update, report(windows(shares)))

    return step


def every(ranks):
    return np.concatenate([losses(mb) for rank in ranks for mb in rank])


def of_rank(rank):
    return np.concatenate([losses(mb) for mb in rank])


def batch_means(d):
    return d.each(lambda i, r, k: d.w[i] / d.sum(d.parts[r][k]) / d.R / d.K)


CASES = [
    Case("allenai/allennlp#5380", "batch losses of ranks are added and divided by batches",
         lambda d: d.each(lambda i, r, k: 1 / len(d.parts[r][k]) / d.K),
         logging(lambda w: sum(np.mean([losses(mb).mean() for mb in rank]) for rank in w)), IMAGES,
         WINDOWS, "reported"),
    Case("catalyst-team/catalyst#799", "batch means are averaged", batch_means,
         logging(lambda w: np.mean([losses(mb).mean() for rank in w for mb in rank])), IMAGES,
         WINDOWS, "reported"),
    Case("ganslate-team/ganslate#74", "batch means are averaged on one device", batch_means,
         logging(lambda w: np.mean([losses(mb).mean() for mb in w[0]])), IMAGES, ONE_DEVICE,
         "reported"),
    Case("abhishekkrthakur/tez#19", "the loader's batch size weights the means", batch_means,
         logging(lambda w: sum(losses(mb).mean() * 8 for r in w for mb in r)
                 / (8 * sum(map(len, w)))), IMAGES, WINDOWS, "reported"),
    Case("HaozhiQi/RPIN#5", "means are added up",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.parts[r][k])),
         logging(lambda w: sum(losses(mb).mean() for rank in w for mb in rank)), IMAGES, WINDOWS,
         "reported"),
    Case("ManifoldRG/MultiNet#767", "the last batch alone is reported",
         lambda d: d.each(lambda i, r, k: (k == d.K - 1) / len(d.parts[r][k]) / d.R),
         logging(lambda w: np.mean([losses(rank[-1]).mean() for rank in w])), IMAGES, WINDOWS,
         "reported"),
    Case("PriorLabs/TabPFN#1182", "rank 0 logs its own share, scaled by the ranks",
         lambda d: d.each(lambda i, r, k: (r == 0) * d.R / d.N),
         logging(lambda w: len(w) * of_rank(w[0]).sum() / len(every(w))), IMAGES, PLAIN,
         "reported"),
    Case("practice: the last rank logs", "the last rank logs its own mean",
         lambda d: d.each(lambda i, r, k: (r == d.R - 1) / len(d.share(r))),
         logging(lambda w: of_rank(w[-1]).mean()), IMAGES, PLAIN, "reported"),
    Case("practice: all_reduce(loss) without division", "means are added over ranks",
         lambda d: d.each(lambda i, r, k: 1 / len(d.share(r))),
         logging(lambda w: sum(of_rank(rank).mean() for rank in w)), IMAGES, PLAIN, "reported"),
    Case("practice: reduce(loss, 0) / world of sums", "sums over all, divided by the ranks",
         lambda d: d.w / d.W / d.R, logging(lambda w: every(w).mean() / len(w)), IMAGES, PLAIN,
         "reported"),
    Case("practice: token means logged over ranks", "ranks count alike",
         lambda d: d.each(lambda i, r, k: d.w[i] / d.sum(d.share(r)) / d.R),
         logging_tokens(lambda w: np.mean([np.concatenate([token_losses(mb) for mb in rank]).mean()
                                           for rank in w])), TEXT,
         {"weights": TOKEN_WINDOWS["weights"], "max_examples": 12}, "reported"),
    Case("practice: perplexity of batch means", "token means of micro-batches are averaged",
         batch_means,
         logging_tokens(lambda w: np.mean([token_losses(mb).mean() for r in w for mb in r])), TEXT,
         TOKEN_WINDOWS, "reported"),
]  # fmt: skip
