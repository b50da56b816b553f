"""Numbers that each replica draws once for all its examples, and what looks like them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from samegrad_doctor import diagnose

RNG = np.random.default_rng(5)
X = RNG.normal(size=(14, 60))
DIRECTION = RNG.normal(size=60)
NAME = "one random factor per replica, shared by its examples"


def drawn(replica: int) -> float:
    return float(np.random.default_rng((9, replica)).uniform())


def gradients(x: np.ndarray, factor: Any) -> np.ndarray:
    """Of each example a loss that is not linear in the factor, as a penalty between two points."""
    between = x + factor * (DIRECTION - x)
    return between * (1.0 - 1.0 / np.linalg.norm(between, axis=1, keepdims=True)) + np.tanh(x)


def step_with(factor_of: Callable[[int, int], Any], divide: Callable[..., float]) -> Any:
    """`factor_of(replica, replicas)`; `divide(own, all)` is the divisor of a share."""

    def step(shares: list[np.ndarray]) -> np.ndarray:
        total = sum(map(len, shares))
        parts = [
            gradients(x, factor_of(r, len(shares))).sum(axis=0) / divide(len(x), total)
            for r, x in enumerate(shares)
            if len(x)
        ]
        return np.sum(parts, axis=0)

    return step


def own(replica: int, replicas: int) -> float:
    return drawn(replica)


def of_all(own: int, total: int) -> float:
    return total


@pytest.mark.parametrize("rows", [7, 14])
@pytest.mark.parametrize("options", [{}, {"replicas": (3,)}, {"equal_shards": True}])
def test_a_factor_of_each_replica_is_named(rows: int, options: dict[str, Any]) -> None:
    found = diagnose(step_with(own, of_all), X[:rows], **options)
    assert found.cause is not None and found.cause.name == NAME, str(found)


def test_with_two_replicas_alone_it_is_one_of_two_causes() -> None:
    """A part of the loss that the second replica leaves out gives the same updates."""
    found = diagnose(step_with(own, of_all), X, replicas=(2,))
    assert [row.name for row in found.alternatives] == [NAME], str(found)
    assert "the replicas are not reduced" in found.cause.name


def test_a_factor_that_one_device_has_otherwise_is_named() -> None:
    """As where the seed is that of the process, and one device is not a replica."""
    step = step_with(lambda r, replicas: drawn(r if replicas > 1 else 77), of_all)
    found = diagnose(step, X)
    assert found.cause is not None and found.cause.name == NAME, str(found)


def test_a_fixed_divisor_makes_no_difference() -> None:
    found = diagnose(step_with(own, lambda own, total: 64.0), X)
    assert found.cause is not None and found.cause.name == NAME, str(found)


def test_in_float32_it_is_named() -> None:
    step = step_with(own, of_all)
    found = diagnose(lambda shares: step(shares).astype(np.float32), X)
    assert found.cause is not None and found.cause.name == NAME, str(found)


@pytest.mark.parametrize("options", [{}, {"equal_shards": True}])
def test_one_factor_for_all_replicas_is_a_loss_like_any_other(options: dict[str, Any]) -> None:
    assert diagnose(step_with(lambda r, replicas: 0.37, of_all), X, **options).correct


def test_other_mistakes_keep_their_names() -> None:
    shared = lambda r, replicas: 0.37  # noqa: E731
    found = diagnose(step_with(shared, lambda own, total: own), X)
    assert found.cause is not None and found.cause.name == "mean per replica, then sum"


def test_what_depends_on_the_number_of_replicas_is_not_taken_for_it() -> None:
    found = diagnose(step_with(lambda r, replicas: 0.2 * replicas, of_all), X)
    assert not found.correct
    assert found.cause is None or found.cause.name != NAME, str(found)


def test_what_depends_on_the_others_of_the_share_is_not_taken_for_it() -> None:
    """A factor made of the share's own examples is a matter of statistics."""

    def step(shares: list[np.ndarray]) -> np.ndarray:
        total = sum(map(len, shares))
        parts = [gradients(x, 0.5 / len(x)).sum(axis=0) / total for x in shares if len(x)]
        return np.sum(parts, axis=0)

    found = diagnose(step, X)
    assert not found.correct
    assert found.cause is None or found.cause.name != NAME, str(found)
