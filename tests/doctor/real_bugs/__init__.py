"""Bugs of loss normalization from public repositories, each as a short step of our own.

A row gives the source, what was wrong in our words, the name in the catalogue, and the step; a
variant of a bug is marked as such behind its source. Steps are written as their frameworks are: a
loop over ranks and micro-batches, a mean where DistributedDataParallel averages, a sum where
tf.distribute adds. Discussions in which nothing is wrong are among them: they must
not give false positives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Bug:
    """A real bug.

    Args:
        source: Repository and issue, pull request or file.
        what: What was wrong.
        name: Of the catalogue; None for a step that is right by convention.
        step: The step.
        batch: What it works on.
        where: Who must name it: "cause", "reported" or "notes".
        options: Of `diagnose`.
    """

    source: str
    what: str
    name: str | None
    step: Callable[[list[Any]], Any]
    batch: Any
    where: str = "cause"
    options: dict[str, Any] = field(default_factory=dict)


def all_bugs() -> list[Bug]:
    """Those of all files."""
    from real_bugs import accumulation, limits, metrics, parts, replicas, statistics, tokens

    modules = (tokens, accumulation, replicas, parts, limits, statistics, metrics)
    return [bug for module in modules for bug in module.BUGS]
