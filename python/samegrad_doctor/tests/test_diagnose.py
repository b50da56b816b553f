"""Correct steps give no false positives, noise is allowed for, unclear steps say why."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steps import REGULARISATION, WEIGHTS, X, Y, count, losses, mean, total

from samegrad_doctor import (
    Outcome,
    StepError,
    assert_replica_equivalent,
    diagnose,
    layout,
    unequal_sizes,
)


def right(shares: Any) -> np.ndarray:
    return sum(total(p) for p in shares) / count(shares)


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(4, 16),
    parameters=st.integers(20, 60),
    kind=st.sampled_from(
        ["mean", "sum", "fixed", "weighted", "regularised", "fixed and regularised"]
    ),
    replicas=st.lists(st.integers(2, 4), min_size=1, max_size=2, unique=True),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_correct_steps_are_never_accused(seed, rows, parameters, kind, replicas, dtype) -> None:
    rng = np.random.default_rng(seed)
    gradients, weights = rng.normal(size=(rows, parameters)), rng.uniform(0.5, 2, rows)
    term = rng.normal(size=parameters)

    def step(shares):
        g, w = (np.concatenate([share[i] for share in shares]) for i in (0, 1))
        update = {
            "mean": lambda: g.mean(axis=0),
            "sum": lambda: g.sum(axis=0),
            "fixed": lambda: g.sum(axis=0) / 64,
            "weighted": lambda: w @ g / w.sum(),
            "regularised": lambda: g.mean(axis=0) + term,
            "fixed and regularised": lambda: g.sum(axis=0) / 64 + term,
        }[kind]()
        return update.astype(dtype)

    found = diagnose(step, (gradients, weights), replicas=replicas)
    assert found.correct, str(found)


def test_a_fixed_number_that_divides_is_a_convention() -> None:
    found = diagnose(lambda s: sum(total(p) for p in s) / 64, (X, Y))
    assert found.correct and "convention" in found.notes[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("step", "name"),
    [
        (right, None),
        (lambda s: sum(mean(p) for p in s), "mean per replica, then sum"),
        (lambda s: np.mean([mean(p) for p in s], axis=0), "mean of the replicas' means"),
    ],
)
def test_noise_of_a_thousandth_changes_no_verdict(step, name, seed) -> None:
    def noisy(shares):
        update = step(shares)
        key = abs(hash((seed, update.tobytes()))) % 2**32
        return update * (1 + 1e-3 * np.random.default_rng(key).normal(size=update.shape))

    found = diagnose(noisy, (X, Y), max_examples=8)
    assert (found.cause and found.cause.name) == name, str(found)


def test_weights_of_the_examples_are_found_or_given() -> None:
    def step(shares):
        return sum(total(p, p[2]) for p in shares) / sum(p[2].sum() for p in shares)

    assert diagnose(step, (X, Y, WEIGHTS)).correct
    assert diagnose(step, (X, Y, WEIGHTS), weights=WEIGHTS).correct


def test_regularisation_that_counts_once_is_right() -> None:
    step = lambda s: sum(total(p) / count(s) + REGULARISATION / len(s) for p in s)  # noqa: E731
    assert diagnose(step, (X, Y)).correct


def test_the_diagnosis_is_short_and_names_maths_and_fix() -> None:
    found = diagnose(lambda s: sum(mean(p) for p in s), (X, Y))
    lines = str(found).splitlines()
    assert len(lines) <= 10
    assert any(line.startswith("maths: w_i / W_r") for line in lines)
    assert any("compute_average_loss" in line for line in lines)
    data = json.loads(found.to_json())
    assert data["cause"] == "mean per replica, then sum" and not data["correct"]
    assert data["per_replica"][0]["factor"] > 1


def test_the_assertion_fails_with_the_diagnosis() -> None:
    assert_replica_equivalent(right, (X, Y))
    with pytest.raises(AssertionError, match="mean per replica, then sum"):
        assert_replica_equivalent(lambda s: sum(mean(p) for p in s), (X, Y))
    wrong_report = lambda s: Outcome(right(s), sum(losses(p).mean() for p in s))  # noqa: E731
    with pytest.raises(AssertionError, match="reported loss"):
        assert_replica_equivalent(wrong_report, (X, Y))


class Counter:
    calls = 0


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda s: None, "must return the update"),
        (lambda s: [None], "must return the update"),
        (lambda s: right(s) * np.nan, "is not finite"),
        (lambda s: right(s)[:4], "at least 11 parameters"),
        (lambda s: right(s) * 0, "changes nothing"),
        (lambda s: right(s) if len(s) == 1 else right(s)[:-1], "same structure"),
    ],
)
def test_a_step_that_cannot_be_judged_says_why(step, words) -> None:
    with pytest.raises(StepError, match=words):
        diagnose(step, (X, Y))


def test_examples_that_depend_on_others_are_left_out() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 8))
    rows = np.concatenate([rows, rows[:3] + rows[3:6]])  # 11 examples, 8 parameters
    wrong = diagnose(lambda s: sum(p.mean(axis=0) for p in s), rows)
    assert wrong.cause.name == "mean per replica, then sum"
    assert diagnose(lambda s: np.concatenate(s).mean(axis=0), rows).correct


def test_a_step_with_a_memory_is_seen() -> None:
    def step(shares):
        Counter.calls += 1
        return right(shares) * Counter.calls

    with pytest.raises(StepError, match="keeps state"):
        diagnose(step, (X, Y))


def test_batches_that_do_not_fit_are_named() -> None:
    with pytest.raises(StepError, match="same number of examples"):
        diagnose(right, (X, Y[:5]))
    with pytest.raises(StepError, match="at least 3"):
        diagnose(right, (X[:2], Y[:2]))


def test_sizes_of_shares_have_no_common_divisor() -> None:
    assert unequal_sizes(10, 3) == [2, 3, 5]
    assert layout([2, 4], 2).parts == (((0,), (1,)), ((2, 3), (4, 5)))
