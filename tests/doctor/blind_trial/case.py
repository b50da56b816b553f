"""What a case of the trial is: a step, its source, and what was written about it before any run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KINDS = ("wrong", "right", "even", "warned")
PLACES = ("update", "report", "statistics")


@dataclass(frozen=True)
class Case:
    """A step and what its author says of it.

    Args:
        name: Of the function that holds the step.
        source: The thread that shows the program, as owner/repository#number.
        what: What is wrong, or why it is right, in words.
        formula: How much an example counts in the update (or in the report). w_i is an example's
            weight, 1 or its tokens; W the sum of all, W_r of a replica's, W_rk of a micro-batch's,
            N, n_r and n_rk the numbers of examples, R replicas, K micro-batches.
        kind: "wrong"; "right"; "even" is right while all shares are equal, and run on such alone;
            "warned" agrees on all layouts, but a reader should be warned.
        make: Returns the step and its batch.
        options: For `diagnose`.
        where: Where a mistake shows.
    """

    name: str
    source: str
    what: str
    formula: str
    kind: str
    make: Callable[[], tuple[Any, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    where: str = "update"

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.where not in PLACES or "#" not in self.source:
            raise ValueError(f"{self.name}: a case of this trial has no such kind, place or source")
        if self.kind == "even":
            self.options.setdefault("equal_shards", True)

    @property
    def repository(self) -> str:
        """Owner and name."""
        return self.source.partition("#")[0]
