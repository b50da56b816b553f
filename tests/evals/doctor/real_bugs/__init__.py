"""Bugs of loss normalization from public repositories, each as a short step of our own.

A row gives the source, what was wrong in our words, the name in the catalogue, and the step; a
variant of a bug is marked as such behind its source. Steps are written as their frameworks are: a
loop over ranks and micro-batches, a mean where DistributedDataParallel averages, a sum where
tf.distribute adds. Discussions in which nothing is wrong are among them: they must
not give false positives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eval_case import Case

from samegrad_doctor import Diagnosis


def bug(
    source: str,
    what: str,
    name: str | None,
    step: Callable[[list[Any]], Any],
    batch: Any,
    where: str = "update",
    options: dict[str, Any] | None = None,
) -> Case:
    """Return a case without a framework.

    Args:
        source: Repository and issue, pull request or file.
        what: What was wrong.
        name: Of the catalogue; None for a step that is right by convention.
        step: The step.
        batch: What it works on.
        where: Where it must be named: "update", "report" or "notes".
        options: Of `diagnose`.
    """
    kind, make = "wrong" if name else "right", lambda: (step, batch)
    return Case(
        getattr(step, "__name__", ""), source, what, "", kind, make, dict(options or {}), where,
        name, name or "right",
    )  # fmt: skip


def said(case: Case, found: Diagnosis) -> str:
    """Return what is said in first place."""
    if case.where == "report":
        return found.reported_loss_issue or ""
    rows = [row for row in (found.cause, *found.alternatives) if row is not None]
    return rows[0].name if rows else ""  # without a cause, the first candidate


def is_named(case: Case, found: Diagnosis) -> bool:
    """Return True if a diagnosis says what the case does."""
    if case.where == "notes":
        return found.correct and any("convention" in note for note in found.notes)
    if case.named is None:
        return found.correct and not found.reported_loss_issue
    if case.where == "report":
        return found.correct and case.named in said(case, found)
    return not found.correct and said(case, found).startswith(case.named)


def all_cases() -> list[Case]:
    """Return those of all files."""
    from real_bugs import accumulation, limits, metrics, parts, replicas, statistics, tokens

    modules = (tokens, accumulation, replicas, parts, limits, statistics, metrics)
    return [case for module in modules for case in module.CASES]
