"""A blind trial: steps that were written without the doctor's implementation, and frozen before.

What is asked here is what was seen in the first run (see blind_trial/README.md): names are those
that were read against the table by hand.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from blind_trial.case import Case
from blind_trial.truth import MODULES, cases, judged

from samegrad.testing import Diagnosis, StepError, diagnose
from samegrad.testing.adapters import ddp_workers

NAMES: dict[str, str] = json.loads(
    Path(__file__).with_name("blind_trial").joinpath("names.json").read_text()
)
NEEDS = {"torch": ("torch",), "processes": ("torch",), "jax": ("jax",), "samegrad": ()}
# Mistakes of each part, and how many of them the first run named rightly in first place.
NAMED = {"torch": (79, 70), "processes": (9, 9), "jax": (9, 7), "samegrad": (11, 11)}


@pytest.fixture(scope="module", params=list(MODULES))
def part(request: pytest.FixtureRequest) -> Iterator[str]:
    """A part whose framework is installed."""
    for name in NEEDS[request.param]:
        pytest.importorskip(name, reason=f"{name} is not installed")
    with ddp_workers() if request.param == "processes" else contextlib.nullcontext():
        yield request.param


@cache
def verdicts(part: str) -> list[tuple[Case, Diagnosis | StepError]]:
    """What the doctor says of each case."""
    found: list[tuple[Case, Diagnosis | StepError]] = []
    for case in cases(part):
        step, batch = case.make()
        try:
            found.append((case, diagnose(step, batch, **case.options)))
        except StepError as error:
            found.append((case, error))
    return found


def is_right(found: Any) -> bool:
    """Whether nothing is said against a step or its report."""
    return isinstance(found, Diagnosis) and found.correct and not found.reported


def first_name(case: Case, found: Any) -> str:
    """What is said in first place."""
    if isinstance(found, StepError):
        return ""
    cause = found.reported_cause if case.where == "report" else found.cause
    return "" if cause is None else cause.name


@pytest.mark.timeout(600)
def test_the_cases_are_what_their_authors_say(part: str) -> None:
    contradicted = {case.name: said for case in cases(part) if (said := judged(case))}
    assert not contradicted


@pytest.mark.timeout(900)
def test_mistakes_are_detected_and_as_many_named_as_in_the_first_run(part: str) -> None:
    wrong = [(case, found) for case, found in verdicts(part) if case.kind == "wrong"]
    missed = [case.name for case, found in wrong if is_right(found) or isinstance(found, StepError)]
    assert not missed
    other = {c.name: first_name(c, f) for c, f in wrong if first_name(c, f) != NAMES.get(c.name)}
    count, named = NAMED[part]
    assert len(wrong) == count
    assert len(wrong) - len(other) >= named, other


@pytest.mark.timeout(900)
def test_right_steps_are_not_accused_and_none_is_refused(part: str) -> None:
    wrong = {
        case.name: str(found)
        for case, found in verdicts(part)
        if case.kind != "wrong" and not is_right(found)
    }
    assert not wrong


def test_a_limit_before_unscaling_is_warned_of(part: str) -> None:
    warned = [(case, found) for case, found in verdicts(part) if case.kind == "warned"]
    assert len(warned) == (2 if part == "torch" else 0)
    assert all(isinstance(found, Diagnosis) and found.cautions for _, found in warned)


def test_there_are_enough_and_each_names_its_thread() -> None:
    table = (
        Path(__file__).with_name("blind_trial").joinpath("TABLE.md").read_text().splitlines()[2:]
    )
    sources = {line.split("|")[1].strip() for line in table}
    verdict = [line.split("|")[4].split()[0] for line in table]
    assert verdict.count("wrong") == sum(count for count, _ in NAMED.values()) == 108
    assert len(verdict) - verdict.count("wrong") == 79
    assert len({source.partition("#")[0] for source in sources}) >= 80
