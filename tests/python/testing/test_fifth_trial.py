"""A fifth blind trial, after threads of other repositories (see fifth_trial/README.md).

What is asked here is what was seen in its first run.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blind_trial.truth import cases, judged
from blind_trial.verdicts import accused_or_refused, check_mistakes, installed, tabled
from fifth_trial import MODULES

TRIAL = "fifth_trial"
# Mistakes of each part, and how many of them the first run named rightly in first place.
NAMED = {"torch": (82, 76), "processes": (4, 3), "jax": (5, 5), "samegrad": (7, 7)}


@pytest.fixture(scope="module", params=list(MODULES))
def part(request: pytest.FixtureRequest) -> Iterator[str]:
    """A part whose framework is installed."""
    with installed(request.param):
        yield request.param


@pytest.mark.timeout(600)
def test_the_cases_are_what_their_authors_say(part: str) -> None:
    contradicted = {case.name: said for case in cases(part, TRIAL) if (said := judged(case))}
    assert not contradicted


@pytest.mark.timeout(900)
def test_mistakes_are_detected_and_as_many_named_as_in_the_first_run(part: str) -> None:
    check_mistakes(part, TRIAL, *NAMED[part])


@pytest.mark.timeout(900)
def test_no_right_step_is_accused_or_refused(part: str) -> None:
    assert not accused_or_refused(part, TRIAL)


def test_there_are_enough_of_repositories_that_the_other_trials_do_not_have() -> None:
    verdict, repositories = tabled(TRIAL)
    assert verdict.count("wrong") == sum(count for count, _ in NAMED.values()) == 98
    assert len(verdict) - verdict.count("wrong") == 61
    assert len(repositories) == 134
    others = ("blind_trial", "second_trial", "third_trial", "fourth_trial")
    assert not repositories & set().union(*(tabled(trial)[1] for trial in others))
