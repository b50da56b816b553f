"""The evaluation sets after the first one, each after threads of other repositories.

What is asked here is what was seen in the first run of each (see README.md of its folder): names
are those that were read against its table by hand.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from blind_trial.truth import cases, judged
from blind_trial.verdicts import accused_or_refused, check_mistakes, installed, tabled


class Trial(NamedTuple):
    """What the first run of a trial showed.

    Args:
        named: Mistakes of each part, and how many of them were named rightly in first place.
        wrong: Mistakes of all parts.
        right: Steps without a mistake.
        repositories: Of the threads.
        accused: Right steps that gave a false positive; the README says why.
    """

    named: dict[str, tuple[int, int]]
    wrong: int
    right: int
    repositories: int
    accused: frozenset[str] = frozenset()


TRIALS = {
    "second_trial": Trial(
        {"torch": (86, 70), "processes": (7, 7), "jax": (9, 9), "samegrad": (9, 8)},
        111, 79, 142, frozenset({"weights_over_batch_size"}),
    ),
    "third_trial": Trial(
        {"torch": (77, 66), "processes": (5, 5), "jax": (5, 5), "samegrad": (5, 5)}, 92, 44, 108
    ),
    "fourth_trial": Trial(
        {"torch": (141, 127), "processes": (8, 8), "jax": (7, 7), "samegrad": (8, 8)}, 164, 100, 157
    ),
    "fifth_trial": Trial(
        {"torch": (82, 76), "processes": (4, 3), "jax": (5, 5), "samegrad": (7, 7)}, 98, 61, 134
    ),
}  # fmt: skip
PARTS = [(name, part) for name, trial in TRIALS.items() for part in trial.named]


@pytest.fixture(scope="module", params=PARTS, ids="-".join)
def trial_part(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A trial and a part of it whose framework is installed."""
    name, part = request.param
    with installed(part):
        yield name, part


@pytest.mark.timeout(600)
def test_the_cases_are_what_their_authors_say(trial_part: tuple[str, str]) -> None:
    name, part = trial_part
    contradicted = {case.name: said for case in cases(part, name) if (said := judged(case))}
    assert not contradicted


@pytest.mark.timeout(900)
def test_mistakes_are_detected_and_as_many_named_as_in_the_first_run(
    trial_part: tuple[str, str],
) -> None:
    name, part = trial_part
    check_mistakes(part, name, *TRIALS[name].named[part])


@pytest.mark.timeout(900)
def test_no_more_right_steps_are_accused_or_refused_than_in_the_first_run(
    trial_part: tuple[str, str],
) -> None:
    name, part = trial_part
    found = accused_or_refused(part, name)
    assert not {case: said for case, said in found.items() if case not in TRIALS[name].accused}


@pytest.mark.parametrize("name", TRIALS)
def test_there_are_enough_of_repositories_that_earlier_trials_do_not_have(name: str) -> None:
    trial, (verdict, repositories) = TRIALS[name], tabled(name)
    assert set(importlib.import_module(name).MODULES) == set(trial.named)
    mistakes = sum(count for count, _ in trial.named.values())
    assert verdict.count("wrong") == mistakes == trial.wrong
    assert len(verdict) - verdict.count("wrong") == trial.right
    assert len(repositories) == trial.repositories
    names = ["blind_trial", *TRIALS]
    earlier = (tabled(other)[1] for other in names[: names.index(name)])
    assert not repositories & set().union(*earlier)
