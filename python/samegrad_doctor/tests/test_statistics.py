"""What a step returns beside its update: how much shares and old values count in statistics."""

from __future__ import annotations

import numpy as np
import pytest
from steps import W1, X, Y, count, flat, mean, total

from samegrad_doctor import Outcome, diagnose

OLD = np.random.default_rng(3).normal(size=5)
OLD_COUNT = 7.0
MOMENTUM = 0.9
WINDOWS = {"replicas": (2,), "micro_batches": (2,)}


def windows_of(shares):
    return shares if isinstance(shares[0], list) else [[share] for share in shares]


def seen_by(part):
    return np.tanh(part[0] @ W1)


def moved(mean, old=OLD, momentum=MOMENTUM):
    return momentum * old + (1 - momentum) * mean


def with_statistics(make):
    """A right step with statistics."""

    def step(shares):
        many = windows_of(shares)
        parts = flat(many)
        return Outcome(sum(map(total, parts)) / count(parts), statistics=make(many))

    return step


def joined(many):
    return np.concatenate([seen_by(part) for part in flat(many)])


def of_all(many):
    return moved(joined(many).mean(axis=0))


def sums_of_all(many, times=1.0, old=1.0):
    return [old * OLD + times * joined(many).sum(axis=0), np.float64(old * OLD_COUNT)]


def of_each_micro_batch(many, momentum=MOMENTUM):
    found = OLD
    for k in range(len(many[0])):
        found = moved(joined([[share[k]] for share in many]).mean(axis=0), found, momentum)
    return found


def mean_of(parts):
    return np.mean([moved(seen_by(part).mean(axis=0)) for part in parts], axis=0)


@pytest.mark.parametrize(
    ("make", "options", "name"),
    [
        (lambda many: mean_of(flat(many)), {}, "batch statistics are merged with equal weights"),
        (lambda many: mean_of(flat(many)), WINDOWS,
         "in the statistics: mean of the micro-batches' means"),
        (lambda many: mean_of(many[0]), {}, "the statistics are those of one replica"),
        (lambda many: mean_of(many[-1]), {}, "the statistics are those of one replica"),
        (lambda many: sums_of_all(many, 1 / len(many)), {},
         "in the statistics: divided by the global batch, then averaged"),
        (lambda many: sums_of_all(many, len(many)), {},
         "in the statistics: multiplied by the replicas"),
        (lambda many: sums_of_all(many, 1, len(many)), {},
         "in the statistics, old values count once on every replica"),
        (of_each_micro_batch, WINDOWS, "the statistics are updated in every micro-batch"),
        (lambda many: of_each_micro_batch(many, 0.993), WINDOWS,
         "the statistics are updated in every micro-batch"),
        (lambda many: np.mean([seen_by(part).var(axis=0) for part in flat(many)], axis=0), {},
         "the optimizer's moments are those of the replicas' own gradients"),
    ],
)  # fmt: skip
def test_a_mistake_of_statistics_alone_is_named(make, options, name) -> None:
    found = diagnose(with_statistics(make), (X, Y), **options)
    assert not found.correct and not found.per_replica
    assert found.cause is not None and found.cause.name == name, str(found)


@pytest.mark.parametrize("options", [{}, WINDOWS, {"replicas": (1,), "micro_batches": (2, 3)}])
@pytest.mark.parametrize("make", [of_all, sums_of_all])
def test_statistics_of_all_examples_are_right(make, options) -> None:
    assert diagnose(with_statistics(make), (X, Y), **options).correct


def test_statistics_that_nothing_explains_have_candidates_and_no_cause() -> None:
    def make(many):
        return moved(joined(many).mean(axis=0) * np.sqrt(len(many)) + len(flat(many)[0][0]))

    found = diagnose(with_statistics(make), (X, Y))
    assert not found.correct and found.cause is None and found.alternatives


def test_statistics_are_told_beside_a_wrong_update() -> None:
    def step(shares):
        update = np.mean([mean(share) for share in shares], axis=0)
        return Outcome(update, statistics=shares[0][0].mean(axis=0))

    found = diagnose(step, (X, Y))
    assert found.cause is not None and found.cause.name == "mean of the replicas' means"
    assert any("the statistics are those of one replica" in note for note in found.notes)
