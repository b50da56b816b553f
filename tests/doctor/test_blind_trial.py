"""The first evaluation set: steps written without the doctor's implementation, frozen before.

What is asked here is what was seen in the first run (see blind_trial/README.md): names are those
that were read against the table by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blind_trial.truth import MODULES, cases, judged
from blind_trial.verdicts import accused_or_refused, check_mistakes, installed, tabled, verdicts

from samegrad_doctor import Diagnosis

TRIAL = "blind_trial"
# Mistakes of each part, and how many of them the first run named rightly in first place.
NAMED = {"torch": (79, 70), "processes": (9, 9), "jax": (9, 7), "samegrad": (11, 11)}


@pytest.fixture(scope="module", params=list(MODULES))
def part(request: pytest.FixtureRequest) -> Iterator[str]:
    """A part whose framework is installed."""
    with installed(request.param):
        yield request.param


@pytest.mark.timeout(600)
def test_the_cases_are_what_their_authors_say(part: str) -> None:
    contradicted = {case.name: said for case in cases(part) if (said := judged(case))}
    assert not contradicted


@pytest.mark.timeout(900)
def test_mistakes_are_detected_and_as_many_named_as_in_the_first_run(part: str) -> None:
    check_mistakes(part, TRIAL, *NAMED[part])


@pytest.mark.timeout(900)
def test_right_steps_are_not_accused_and_none_is_refused(part: str) -> None:
    assert not accused_or_refused(part, TRIAL)


def test_a_limit_before_unscaling_is_warned_of(part: str) -> None:
    warned = [(case, found) for case, found in verdicts(part, TRIAL) if case.kind == "warned"]
    assert len(warned) == (2 if part == "torch" else 0)
    assert all(isinstance(found, Diagnosis) and found.warnings for _, found in warned)


def test_there_are_enough_and_each_names_its_thread() -> None:
    verdict, repositories = tabled(TRIAL)
    assert verdict.count("wrong") == sum(count for count, _ in NAMED.values()) == 108
    assert len(verdict) - verdict.count("wrong") == 79
    assert len(repositories) >= 80
