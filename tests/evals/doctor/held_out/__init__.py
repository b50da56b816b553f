"""Training steps that no rule of the doctor was tuned on: collected first, then frozen by hash.

Each is written by us in the manner of a public repository. What is true of it is told without the
doctor's words: the weight of every example as a function, or the kind of mistake. `manifest.json`
holds the hash of every file; a step that is found to be wrong is left out there by its name and a
reason, and not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eval_case
import numpy as np


class Deal:
    """Who has which examples: deal.parts[replica][micro-batch] are numbers of examples."""

    def __init__(self, parts: Any, weights: Any) -> None:
        self.parts = parts
        self.w = np.asarray(weights, dtype=float)
        self.R, self.K = len(parts), len(parts[0])
        self.N, self.W = len(self.w), float(self.w.sum())

    def sum(self, numbers: Any) -> float:
        return float(self.w[list(numbers)].sum())

    def share(self, r: int) -> list[int]:
        return [i for part in self.parts[r] for i in part]

    def window(self, k: int) -> list[int]:
        return [i for share in self.parts for i in share[k]]

    def each(self, weight: Callable[[int, int, int], float]) -> np.ndarray:
        """weight(example, replica, micro-batch) for all examples."""
        found = np.zeros(self.N)
        for r, share in enumerate(self.parts):
            for k, part in enumerate(share):
                for i in part:
                    found[i] = weight(i, r, k)
        return found


_WHERE = {"cause": "update", "reported": "report", "warning": "warning"}


def Case(  # a class when the files were frozen
    source: str,
    what: str,
    truth: Any,
    step: Callable[[list[Any]], Any],
    batch: Any,
    options: dict[str, Any] | None = None,
    where: str = "cause",
) -> eval_case.Case:
    """Return a case without a framework.

    Args:
        source: Repository and issue, pull request or practice that it is in the manner of.
        what: What it does.
        truth: A function of a Deal that gives the weights, or the kind of failure in words.
        step: The step.
        batch: What it works on.
        options: Of `diagnose`.
        where: "cause", "reported" or "warning".
    """
    name, make = getattr(step, "__name__", ""), lambda: (step, batch)
    kind = "right" if truth == "right" else "wrong"
    return eval_case.Case(
        name, source, what, "", kind, make, dict(options or {}), _WHERE[where], truth=truth
    )


def all_cases() -> list[eval_case.Case]:
    from held_out import (
        accumulation,
        detection,
        exchange,
        limits,
        replicas,
        reports,
        right,
        samplers,
        terms,
        tokens,
    )

    modules = (
        accumulation, detection, exchange, limits, replicas, reports, right, samplers, terms, tokens
    )  # fmt: skip
    return [case for module in modules for case in module.CASES]
