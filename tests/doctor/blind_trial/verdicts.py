"""What the doctor says of the cases of a trial, for the tests of all trials."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from samegrad_doctor import Diagnosis, StepError, diagnose
from samegrad_doctor.adapters import ddp_workers

from .case import Case
from .truth import cases

NEEDS = {"torch": ("torch",), "processes": ("torch",), "jax": ("jax",), "samegrad": ()}


@contextlib.contextmanager
def installed(part: str) -> Iterator[str]:
    """A part, whose test is skipped where its framework is not installed."""
    for name in NEEDS[part]:
        pytest.importorskip(name, reason=f"{name} is not installed")
    with ddp_workers() if part == "processes" else contextlib.nullcontext():
        yield part


@cache
def verdicts(part: str, trial: str) -> list[tuple[Case, Diagnosis | StepError]]:
    """What the doctor says of each case."""
    found: list[tuple[Case, Diagnosis | StepError]] = []
    for case in cases(part, trial):
        step, batch = case.make()
        try:
            found.append((case, diagnose(step, batch, **case.options)))
        except StepError as error:
            found.append((case, error))
    return found


def is_right(found: Any) -> bool:
    """Whether nothing is said against a step or its report."""
    return isinstance(found, Diagnosis) and found.correct and not found.reported_loss_issue


def first_name(case: Case, found: Any) -> str:
    """What is said in first place."""
    if isinstance(found, StepError):
        return ""
    cause = found.reported_loss_cause if case.where == "report" else found.cause
    return "" if cause is None else cause.name


def check_mistakes(part: str, trial: str, count: int, named: int) -> None:
    """All mistakes are detected, and as many named as in the first run."""
    names = json.loads((Path(__file__).parents[1] / trial / "names.json").read_text())
    wrong = [(case, found) for case, found in verdicts(part, trial) if case.kind == "wrong"]
    missed = [case.name for case, found in wrong if is_right(found) or isinstance(found, StepError)]
    assert not missed
    other = {c.name: first_name(c, f) for c, f in wrong if first_name(c, f) != names.get(c.name)}
    assert len(wrong) == count
    assert len(wrong) - len(other) >= named, other


def accused_or_refused(part: str, trial: str) -> dict[str, str]:
    """Right steps that are not called right, and what is said of them."""
    return {
        case.name: str(found)
        for case, found in verdicts(part, trial)
        if case.kind != "wrong" and not is_right(found)
    }


def tabled(trial: str) -> tuple[list[str], set[str]]:
    """The verdicts of a trial's TABLE.md, and the repositories."""
    lines = (Path(__file__).parents[1] / trial / "TABLE.md").read_text().splitlines()[2:]
    repositories = {line.split("|")[1].strip().partition("#")[0] for line in lines}
    return [line.split("|")[4].split()[0] for line in lines], repositories
