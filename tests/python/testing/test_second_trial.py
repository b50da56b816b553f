"""A second blind trial, after threads of other repositories (see second_trial/README.md).

What is asked here is what was seen in its first run.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blind_trial.truth import cases, judged
from blind_trial.verdicts import accused_or_refused, check_mistakes, installed, tabled
from second_trial import MODULES

TRIAL = "second_trial"
# Mistakes of each part, and how many of them the first run named rightly in first place.
NAMED = {"torch": (86, 70), "processes": (7, 7), "jax": (9, 9), "samegrad": (9, 8)}
# A right step that the first run accused, and weights that the user gave: the README says why.
NOT_RIGHT = {"weights_over_batch_size"}


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
def test_no_more_right_steps_are_accused_or_refused_than_in_the_first_run(part: str) -> None:
    found = accused_or_refused(part, TRIAL)
    assert not {name: said for name, said in found.items() if name not in NOT_RIGHT}


def test_there_are_enough_of_repositories_that_the_first_trial_does_not_have() -> None:
    verdict, repositories = tabled(TRIAL)
    assert verdict.count("wrong") == sum(count for count, _ in NAMED.values()) == 111
    assert len(verdict) - verdict.count("wrong") == 79
    assert len(repositories) == 142
    assert not repositories & tabled("blind_trial")[1]
