"""Bugs of public repositories are named right in first place."""

from __future__ import annotations

import pytest
from real_bugs import Bug, all_bugs

from samegrad_doctor import Diagnosis, diagnose

BUGS = all_bugs()


def said(bug: Bug, found: Diagnosis) -> str:
    """What is said in first place."""
    if bug.where == "reported":
        return found.reported_loss_issue or ""
    rows = [row for row in (found.cause, *found.alternatives) if row is not None]
    return rows[0].name if rows else ""  # without a cause, the first candidate


def is_named(bug: Bug, found: Diagnosis) -> bool:
    if bug.where == "notes":
        return found.correct and any("convention" in note for note in found.notes)
    if bug.name is None:
        return found.correct and not found.reported_loss_issue
    if bug.where == "reported":
        return found.correct and bug.name in said(bug, found)
    return not found.correct and said(bug, found).startswith(bug.name)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.source.replace("/", "-"))
def test_a_real_bug_is_named(bug: Bug) -> None:
    found = diagnose(bug.step, bug.batch, **bug.options)
    assert is_named(bug, found), f"{bug.source}: wanted {bug.name!r}\n{found}"


def test_there_are_many_and_each_names_its_source() -> None:
    assert len(BUGS) >= 100
    assert all("/" in bug.source and bug.what for bug in BUGS)
