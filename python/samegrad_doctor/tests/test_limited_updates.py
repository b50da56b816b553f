"""Behind a limit of the gradient: what still shows of the weights, and whose limit it is."""

from __future__ import annotations

import numpy as np
import pytest
from steps import W1, X, Y, count, flat, mean, total

from samegrad_doctor import diagnose

WINDOWS = {"replicas": (2,), "micro_batches": (2,)}
ALONE = {"replicas": (1,), "micro_batches": (2,)}
HIDES = "hides factors in front of the limit"


def limited(update, limit):
    return update * min(1.0, limit / np.linalg.norm(update))


def parts_of(shares):
    return flat(shares if isinstance(shares[0], list) else [[share] for share in shares])


def means(shares):
    return np.mean([mean(part) for part in parts_of(shares)], axis=0)


def right(shares):
    parts = parts_of(shares)
    return sum(map(total, parts)) / count(parts)


@pytest.mark.parametrize("limit", [1e-3, 0.5, 2.0])
@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "mean of the replicas' means"),
        (WINDOWS, "mean of the micro-batches' means"),
        (ALONE, "mean of the micro-batches' means"),
    ],
)
def test_local_means_show_behind_a_limit_of_what_was_joined(limit, options, name) -> None:
    found = diagnose(lambda shares: limited(means(shares), limit), (X, Y), **options)
    assert found.cause is not None and found.cause.name == name, str(found)
    assert HIDES in str(found)


@pytest.mark.parametrize("limit", [1e-3, 0.5, 2.0])
@pytest.mark.parametrize("options", [{}, WINDOWS, ALONE])
def test_a_limit_of_what_was_joined_is_right(limit, options) -> None:
    found = diagnose(lambda shares: limited(right(shares), limit), (X, Y), **options)
    assert found.correct, str(found)


@pytest.mark.parametrize("limit", [1e-3, 0.5])
def test_a_limit_of_each_replica_keeps_its_name(limit) -> None:
    def step(shares):
        return np.mean([limited(mean(share), limit) for share in shares], axis=0)

    found = diagnose(step, (X, Y))
    assert found.cause is not None
    assert found.cause.name == "gradients are clipped before the all-reduce", str(found)


def test_a_limit_before_the_division_by_the_micro_batches_is_named() -> None:
    def step(windows):
        (window,) = windows
        window = window if isinstance(window, list) else [window]
        return limited(sum(map(mean, window)), 1e-2) / len(window)

    found = diagnose(step, (X, Y), **ALONE)
    assert found.cause is not None
    assert found.cause.name == "gradient clipping depends on the replicas", str(found)


def test_own_statistics_are_told_from_a_limit_of_what_was_joined() -> None:
    def centred(share):
        x, y = share
        hidden = np.tanh(x @ W1)
        error = 2 * (hidden - hidden.mean(axis=0)) * np.square(y).sum(axis=1, keepdims=True)
        back = (error - error.mean(axis=0)) * (1 - hidden**2)
        return np.concatenate([(x.T @ back).ravel(), np.zeros(10)])

    def step(shares):
        return limited(sum(map(centred, shares)) / count(shares), 1e-3)

    found = diagnose(step, (X, Y))
    assert found.cause is not None
    assert found.cause.name == "batch statistics are not synchronised", str(found)


def test_equal_updates_of_single_examples_are_no_limit() -> None:
    """Behind moments over the batch an example alone moves what depends on its class only."""
    classes = np.arange(30) % 3

    def own_moments(share):
        x, kind = share
        centred = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 0.1)
        one_hot = np.eye(3)[kind] - 1 / 3
        bias = one_hot.mean(axis=0)
        return np.concatenate([bias, (centred.T @ one_hot / len(x)).ravel()])

    found = diagnose(
        lambda s: np.mean([own_moments(p) for p in s], axis=0), (X, classes), equal_shards=True
    )
    assert found.cause is not None
    assert found.cause.name == "batch statistics are not synchronised", str(found)
