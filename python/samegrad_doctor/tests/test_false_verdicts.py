"""Verdicts that were false: "correct" of a few examples, and names of what is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from steps import W1, W2, WEIGHTS, Step, X, Y, count, mean, total

from samegrad_doctor import Outcome, diagnose

POSITIVE = np.isin(np.arange(12), (0, 4, 9)).astype(float)
LABELLED = (X[:12], Y[:12], POSITIVE)


def with_hard_negatives(shares: Sequence[Any]) -> np.ndarray:
    """Positives of a share, and twice as many of its negatives, those with the largest losses."""
    found = np.zeros(40)
    for x, y, positive in shares:
        losses = np.square(np.tanh(x @ W1) @ W2 - y).sum(axis=1)
        negatives = np.flatnonzero(positive == 0)
        hard = negatives[np.argsort(-losses[negatives])[: 2 * int(positive.sum())]]
        chosen = [*np.flatnonzero(positive), *hard]
        found = found + total((x[chosen], y[chosen]))
    return found / max(sum(positive.sum() for _, _, positive in shares), 1)


def gathered(shares: Sequence[Any]) -> np.ndarray:
    """The same of the whole batch, as one device does."""
    return with_hard_negatives([tuple(map(np.concatenate, zip(*shares, strict=True)))])


def pairs_of_share(shares: Sequence[Any]) -> np.ndarray:
    """The spread of a share: an example alone has none."""
    return sum(
        total((x - x.mean(axis=0), y - y.mean(axis=0))) * (len(x) > 1) / count(shares)
        for x, y in shares
    )  # fmt: skip


def pairs_of_batch(shares: Sequence[Any]) -> np.ndarray:
    return pairs_of_share([tuple(map(np.concatenate, zip(*shares, strict=True)))])


@pytest.mark.parametrize(
    ("step", "batch", "correct"),
    [
        (with_hard_negatives, LABELLED, False),
        (gathered, LABELLED, True),
        (pairs_of_share, (X[:12], Y[:12]), False),
        (pairs_of_batch, (X[:12], Y[:12]), True),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_examples_without_gradient_alone_are_judged_in_company(
    step: Step, batch: Any, correct: bool
) -> None:
    found = diagnose(step, batch)
    assert found.correct == correct, str(found)


def kept_by(end: int, divide: Callable[[Any, int, int], Any]) -> Step:
    """The second half of the parameters is not reduced, and one replica's gradient is applied."""

    def step(shares: Sequence[Any]) -> np.ndarray:
        whole = sum(map(total, shares)) / count(shares)
        own = divide(shares[end], count(shares), len(shares))
        return np.concatenate([whole[:20], own[20:]])

    return step


@pytest.mark.parametrize("end", [0, -1])
@pytest.mark.parametrize(
    "divide",
    [
        lambda share, n, r: total(share) * r / n,
        lambda share, n, r: total(share) / n,
        lambda share, n, r: total(share) / (n * r),
        lambda share, n, r: mean(share),
        lambda share, n, r: mean(share) / r,
        lambda share, n, r: mean(share) * r,
    ],
    ids=["sum_R_n", "sum_n", "sum_nR", "mean", "mean_R", "mean_R_times"],
)
def test_part_of_the_parameters_that_is_not_reduced_is_named(
    end: int, divide: Callable[[Any, int, int], Any]
) -> None:
    found = diagnose(kept_by(end, divide), (X, Y))
    assert found.cause is not None and found.cause.name.startswith("a part of the parameters: ")
    assert ("not reduced" if end == 0 else "only the last replica") in found.cause.name


def test_a_factor_of_each_replica_on_a_part_of_the_parameters_is_no_random_factor() -> None:
    def step(shares: Sequence[Any]) -> np.ndarray:
        each = [total(share) / count(shares) for share in shares]
        factors = [np.repeat([1.0, 0.3 + 0.7 * r], 20) for r in range(len(each))]
        return sum(own * factor for own, factor in zip(each, factors, strict=True))

    found = diagnose(step, (X, Y))
    assert not found.correct
    assert "random factor" not in str(found)


@pytest.mark.parametrize("framework", ["pytorch", "jax", "tensorflow"])
def test_fix_for_one_device_names_no_other(framework: str) -> None:
    def step(shares: Sequence[Any]) -> Outcome:
        parts = shares[0] if isinstance(shares[0], list) else shares
        return Outcome(sum(map(mean, parts)) / len(parts))

    found = diagnose(step, (X, Y), replicas=(1,), micro_batches=(2, 3), framework=framework)
    (fix,) = (line for line in str(found).splitlines() if line.startswith("fix:"))
    assert not {"get_world_size", "psum", "all_reduce", "ranks"} & set(
        fix.replace(".", " ").split()
    )


@pytest.mark.parametrize(
    ("weighted", "said"),
    [
        (True, "unless all shards have equal weights (tokens)"),
        (False, "unless all shards are equal"),
    ],
)
def test_first_line_says_what_must_be_equal(weighted: bool, said: str) -> None:
    def step(shares: Sequence[Any]) -> np.ndarray:
        means = [
            total((x, y), tokens) / tokens.sum() if weighted else mean((x, y))
            for x, y, tokens in shares
        ]
        return sum(means) / len(shares)

    assert said in str(diagnose(step, (X, Y, WEIGHTS))).splitlines()[0]
