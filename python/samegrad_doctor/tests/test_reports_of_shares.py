"""A reported number that each share makes by itself, or the last one alone."""

from __future__ import annotations

import numpy as np
import pytest
from steps import X, Y, count, losses, total

from samegrad_doctor import Outcome, diagnose

MICRO = {"replicas": (1, 2), "micro_batches": (1, 2, 3)}
LOCAL = {
    "replica": "batch statistics are not synchronised",
    "micro-batch": "batch statistics are those of each micro-batch",
}


def parts(shares):
    """All micro-batches of all replicas."""
    return [p for share in shares for p in (share if isinstance(share, list) else [share])]


def reporting(report):
    """A step whose update is right, and what it reports."""

    def step(shares):
        every = parts(shares)
        return Outcome(sum(map(total, every)) / count(every), report(shares))

    return step


def root(share):
    return np.sqrt(losses(share).mean())


@pytest.mark.parametrize(
    ("report", "options", "who"),
    [
        (lambda s: np.mean([root(p) for p in s]), {}, "replica"),
        (lambda s: np.average([root(p) for p in s], weights=[len(p[0]) for p in s]), {}, "replica"),
        (lambda s: np.mean([np.exp(losses(p).mean() / 10) for p in s]), {}, "replica"),
        (lambda s: np.mean([root(p) for p in parts(s)]), MICRO, "micro-batch"),
    ],
)  # fmt: skip
def test_roots_and_perplexities_of_shares_that_are_averaged_are_named(report, options, who) -> None:
    found = diagnose(reporting(report), (X, Y), **options)
    assert found.correct
    assert found.reported_loss_cause is not None and found.reported_loss_cause.name == LOCAL[who]
    assert f"each {who} makes it by itself" in found.reported_loss_issue


def test_a_root_of_the_mean_over_all_is_right() -> None:
    def report(shares):
        return np.sqrt(sum(losses(p).sum() for p in shares) / count(shares))

    assert diagnose(reporting(report), (X, Y)).reported_loss_issue is None


@pytest.mark.parametrize("by", [1, "K"])
@pytest.mark.parametrize("end", [0, -1])
def test_the_last_micro_batch_of_one_replica_is_named(end, by) -> None:
    def report(shares):
        own = parts([shares[end]])
        return losses(own[-1]).mean() / (len(own) if by == "K" else 1)

    found = diagnose(reporting(report), (X, Y), **MICRO)
    which = "last" if end else "first"
    assert found.reported_loss_cause is not None
    name = f"only the last micro-batch of the {which} replica is kept"
    assert found.reported_loss_cause.name.startswith(name)
    assert ("divided by the micro-batches" in found.reported_loss_cause.name) == (by == "K")
