"""What was found out about a step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from samegrad.testing._catalogue import Mistake
from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector


@dataclass(frozen=True)
class ShareRow:
    """A line of the table: one replica's examples.

    Args:
        replica: Its number.
        examples: How many it has.
        right: The mean of their right weights.
        found: The mean of the weights found.
    """

    replica: int
    examples: int
    right: float
    found: float

    @property
    def factor(self) -> float:
        """Found by right; nan for a replica without examples."""
        return self.found / self.right if self.right else float("nan")


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on a step.

    Args:
        correct: Whether R replicas do what one device does.
        cause: The row of the catalogue that explains it, or None.
        others: Rows that explain it as well and cannot be told apart.
        rows: The replicas of the layout that shows it best.
        layout: That layout.
        notes: Conventions and limits that a reader should know.
        reported: What is wrong with the reported loss, or None.
        tolerance: Relative error of weights that counts as equal, derived from the fits.
        cautions: Rows of what one device does as well, which may be meant: they leave `correct` as
            it is.
    """

    correct: bool
    cause: Mistake | None
    others: tuple[Mistake, ...] = ()
    rows: tuple[ShareRow, ...] = ()
    layout: Layout | None = None
    notes: tuple[str, ...] = ()
    reported: str | None = None
    tolerance: float = 0.0
    summary: str = field(default="")
    cautions: tuple[Mistake, ...] = ()

    def __bool__(self) -> bool:
        return self.correct

    def __str__(self) -> str:
        lines = [self.summary]
        if self.rows and not self.correct:
            lines.append("replica  examples       right       found    factor")
            for row in self.rows[:4]:
                lines.append(
                    f"{row.replica:7d}  {row.examples:8d}  {row.right:10.6f}  {row.found:10.6f}  "
                    f"{row.factor:8.4g}"
                )
        if self.cause is not None:
            lines += _lines("cause: ", self.cause)
        if self.others:
            lines.append("or:    " + "; ".join(other.name for other in self.others))
        for caution in self.cautions:
            lines += _lines("caution: ", caution)
        if self.reported:
            lines.append(f"reported loss: {self.reported}.")
        lines += [f"note:  {note}." for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The same for programs."""
        content: dict[str, Any] = {
            "correct": self.correct,
            "cause": self.cause and self.cause.name,
            "formula": self.cause and self.cause.formula,
            "fix": self.cause and self.cause.fix,
            "others": [other.name for other in self.others],
            "layout": self.layout and [list(map(len, share)) for share in self.layout.parts],
            "shares": [{**row.__dict__, "factor": row.factor} for row in self.rows],
            "reported": self.reported,
            "cautions": [caution.name for caution in self.cautions],
            "notes": list(self.notes),
            "tolerance": self.tolerance,
        }
        return json.dumps(content)


def _lines(what: str, mistake: Mistake) -> list[str]:
    return [
        f"{what}{mistake.name}: {mistake.sentence}.",
        f"maths: {mistake.formula}",
        f"fix:   {mistake.fix}.",
    ]


def share_rows(layout: Layout, right: Vector, found: Vector) -> tuple[ShareRow, ...]:
    """The table for a layout."""
    rows = []
    for replica, share in enumerate(layout.parts):
        own = [i for part in share for i in part]
        mean = [float(np.mean(values[own])) if own else 0.0 for values in (right, found)]
        rows.append(ShareRow(replica, len(own), mean[0], mean[1]))
    return tuple(rows)
