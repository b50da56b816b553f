"""What was found out about a step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from samegrad.testing._catalogue import Mistake
from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector

_SHOWN = 4  # rows of a table


@dataclass(frozen=True)
class ShareRow:
    """A line of the table: one replica's examples, or those of a micro-batch of one device.

    Args:
        replica: Its number.
        examples: How many it has.
        right: The mean of their right weights.
        found: The mean of the weights found.
        micro_batch: Its number, where one device has several.
    """

    replica: int
    examples: int
    right: float
    found: float
    micro_batch: int | None = None

    @property
    def factor(self) -> float:
        """Found by right; nan for a replica without examples."""
        return self.found / self.right if self.right else float("nan")


@dataclass(frozen=True)
class Found:
    """What explains the updates of a step.

    Args:
        what: A few words, for the first line.
        causes: Mistakes that explain them, each by itself.
        candidates: What is left by elimination, where nothing explains them.
        notes: What a reader should know of it.
        right: Whether they are those of one device.
        beside: Whether that is said of the statistics, the update being right.
    """

    what: str
    causes: tuple[Mistake, ...] = ()
    candidates: tuple[Mistake, ...] = ()
    notes: tuple[str, ...] = ()
    right: bool = False
    beside: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """The verdict on a step.

    Args:
        correct: Whether R replicas do what one device does.
        cause: The row of the catalogue (or point of the grammar) that explains it, or None.
        others: What explains it as well and cannot be told apart; without a cause, candidates.
        rows: The replicas of the layout that shows it best.
        layout: That layout.
        notes: Conventions and limits that a reader should know.
        reported: What is wrong with the reported loss, or None.
        tolerance: Relative error that noise leaves in weights, or in updates that are compared as
            a whole.
        summary: The verdict in one line.
        cautions: Rows of what one device does as well, which may be meant: they leave `correct` as
            it is.
        reported_cause: The mistake of the reported loss, if one explains it.
        framework: In whose words fixes are printed.
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
    reported_cause: Mistake | None = None
    framework: str = "samegrad"

    def __bool__(self) -> bool:
        return self.correct

    def __str__(self) -> str:
        lines = [self.summary]
        if self.rows and not self.correct:
            what = "replica" if self.rows[0].micro_batch is None else "micro-batch"
            lines.append(f"{what}  examples       right       found    factor")
            for row in self.rows[:_SHOWN]:
                number = row.replica if row.micro_batch is None else row.micro_batch
                lines.append(
                    f"{number:{len(what)}d}  {row.examples:8d}  {row.right:10.6f}  "
                    f"{row.found:10.6f}  {row.factor:8.4g}"
                )
        lines += self._lines("cause: ", self.cause) if self.cause is not None else []
        if self.others:
            what = "or:    " if self.cause is not None else "cause: not known; candidates: "
            more = f" (and {left} more)" if (left := len(self.others) - _SHOWN) > 0 else ""
            lines.append(what + "; ".join(row.name for row in self.others[:_SHOWN]) + more)
        for caution in self.cautions:
            lines += self._lines("caution: ", caution)
        lines += [f"reported loss: {self.reported}."] if self.reported else []
        lines += [f"note:  {note}." for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The same for programs."""
        content: dict[str, Any] = {
            "correct": self.correct,
            "cause": self.cause and self.cause.name,
            "formula": self.cause and self.cause.formula,
            "fix": self.cause and self.cause.fix_for(self.framework),
            "others": [other.name for other in self.others],
            "layout": self.layout and [list(map(len, share)) for share in self.layout.parts],
            "shares": [
                {**row.__dict__, "factor": row.factor if row.right else None} for row in self.rows
            ],
            "reported": self.reported,
            "cautions": [caution.name for caution in self.cautions],
            "notes": list(self.notes),
            "tolerance": self.tolerance,
        }
        return json.dumps(content)

    def _lines(self, what: str, mistake: Mistake) -> list[str]:
        return [
            f"{what}{mistake.name}: {mistake.sentence}.",
            f"maths: {mistake.formula}",
            f"fix:   {mistake.fix_for(self.framework)}.",
        ]


def share_rows(layout: Layout, right: Vector, found: Vector) -> tuple[ShareRow, ...]:
    """The table for a layout: a line for each replica, or for each micro-batch of one device."""
    rows = []
    for replica, share in enumerate(layout.parts):
        parts = share if layout.replicas == 1 else [tuple(i for part in share for i in part)]
        for number, part in enumerate(parts):
            own = list(part)
            mean = [float(np.mean(values[own])) if own else 0.0 for values in (right, found)]
            of_device = number if layout.replicas == 1 else None
            rows.append(ShareRow(replica, len(own), mean[0], mean[1], of_device))
    return tuple(rows)


def factors_of_examples(layout: Layout, right: Vector, found: Vector) -> str | None:
    """How much each example of a layout counts, where examples of a share differ."""
    ratios = found / right
    shares = [[ratios[i] for part in share for i in part] for share in layout.parts]
    if all(np.ptp(share) <= 0.02 * np.abs(share).max() for share in shares if share):
        return None
    listed = " | ".join(
        " ".join(f"{ratio:.3g}" for ratio in share[:8]) for share in shares[:_SHOWN]
    )
    return f"the examples of the replicas count, by what is right: {listed}"
