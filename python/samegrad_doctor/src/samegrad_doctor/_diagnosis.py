"""The diagnosis of a training step: its fields, its printed form and its JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from samegrad_doctor._basis import NO_SUM
from samegrad_doctor._catalogue import FailureMode
from samegrad_doctor._layouts import Layout, of_parts, of_shares
from samegrad_doctor._updates import Vector
from samegrad_doctor._words import ONE_DEVICE, WHERE, remedy, symbols_of

_SHOWN = 4  # lines of a table


@dataclass(frozen=True)
class ReplicaWeights:
    """Mean example weights of one per-replica batch, or of one micro-batch on one device.

    Args:
        replica: The index of the replica.
        examples: The number of its examples.
        expected: The mean weight of its examples in single-device training.
        found: The mean weight of its examples in the update of the step.
        micro_batch: The index of the micro-batch; None for a per-replica batch.
    """

    replica: int
    examples: int
    expected: float
    found: float
    micro_batch: int | None = None

    @property
    def factor(self) -> float:
        """Return `found / expected`; NaN for a replica without examples."""
        return self.found / self.expected if self.expected else float("nan")


@dataclass(frozen=True)
class Found:
    """An explanation of the updates of a step.

    Args:
        what: A short text for the first line.
        causes: Failure modes that explain the updates, each by itself.
        candidates: Failure modes left by elimination, if nothing explains the updates.
        notes: Conventions and limits for the reader.
        right: True if the updates are those of one device.
        beside: True if the explanation is about statistics, and the update is correct.
    """

    what: str
    causes: tuple[FailureMode, ...] = ()
    candidates: tuple[FailureMode, ...] = ()
    notes: tuple[str, ...] = ()
    right: bool = False
    beside: bool = False


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of a training step. It is true if the step is correct, and prints as a report.

    Args:
        correct: True if R replicas make the update of one device.
        cause: The failure mode that explains the update, or None.
        alternatives: Failure modes that explain it equally well; candidates if `cause` is None.
        per_replica: Expected and found weights of each per-replica batch in `layout`.
        layout: The split of the batch that shows the failure best.
        notes: Conventions and limits that you should know.
        reported_loss_issue: What is wrong with the reported loss, or None.
        tolerance: The relative error that noise leaves in weights, or in whole updates.
        summary: The first line of the report.
        warnings: Failure modes that one device shares and that may be intended. They do not
            change `correct`.
        reported_loss_cause: The failure mode that explains the reported loss, or None.
        framework: The framework whose API the fixes name.
        patch: A unified diff of the line of user code to change, or "" if it is unknown.
    """

    correct: bool
    cause: FailureMode | None
    alternatives: tuple[FailureMode, ...] = ()
    per_replica: tuple[ReplicaWeights, ...] = ()
    layout: Layout | None = None
    notes: tuple[str, ...] = ()
    reported_loss_issue: str | None = None
    tolerance: float = 0.0
    summary: str = field(default="")
    warnings: tuple[FailureMode, ...] = ()
    reported_loss_cause: FailureMode | None = None
    framework: str = "samegrad"
    patch: str = ""

    def __bool__(self) -> bool:
        return self.correct

    def __str__(self) -> str:
        lines = [self.summary]
        if self.per_replica and not self.correct:
            what = "replica" if self.per_replica[0].micro_batch is None else "micro-batch"
            lines.append(f"{what}  examples    expected       found    factor")
            for own in self.per_replica[:_SHOWN]:
                number = own.replica if own.micro_batch is None else own.micro_batch
                lines.append(
                    f"{number:{len(what)}d}  {own.examples:8d}  {own.expected:10.6f}  "
                    f"{own.found:10.6f}  {own.factor:8.4g}"
                )
            lines.append(f"where: {WHERE}.")
        lines += self._lines("cause: ", self.cause) if self.cause is not None else []
        lines += ["diff:", *self.patch.splitlines()] if self.patch else []
        if self.alternatives:
            what = "or:    " if self.cause is not None else "cause: unknown; candidates: "
            more = f" (and {left} more)" if (left := len(self.alternatives) - _SHOWN) > 0 else ""
            lines.append(what + "; ".join(mode.name for mode in self.alternatives[:_SHOWN]) + more)
        for warning in self.warnings:
            lines += self._lines("warning: ", warning)
        if self.reported_loss_issue:
            lines.append(f"reported loss: {self.reported_loss_issue}.")
        lines += [f"note:  {note}." for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> str:
        """Return the diagnosis as a JSON object, which `samegrad-doctor schema` describes.

        Returns:
            A string with the fields by name; failure modes appear by name, and `layout` as the
            numbers of examples of each replica and micro-batch.
        """
        return json.dumps(self.content())

    def to_html(self) -> str:
        """Return the diagnosis as a page of HTML that needs no other file.

        Returns:
            A string: the document.
        """
        from samegrad_doctor._html import page_of

        return page_of(self.content())

    def content(self) -> dict[str, Any]:
        """Return the fields as JSON has them.

        Returns:
            A dictionary.
        """
        texts = {
            "sentence": self.cause and self.cause.sentence,
            "formula": self.cause and self.cause.formula,
            "fix": self.cause and self.cause.fix_for(self.framework),
        }
        return {name: _plain(value) for name, value in vars(self).items()} | texts

    def _lines(self, label: str, mode: FailureMode) -> list[str]:
        known = symbols_of(mode.formula)
        return [
            f"{label}{mode.name}: {mode.sentence}.",
            f"maths: {mode.formula}{f'  ({known})' if known else ''}",
            f"fix:   {mode.fix_for(self.framework)}.",
        ]


def _plain(value: Any) -> Any:
    """Return a field as JSON has it."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Layout):
        return [list(map(len, share)) for share in value.parts]
    if isinstance(value, ReplicaWeights):
        return {**vars(value), "factor": value.factor if value.expected else None}
    return value.name if isinstance(value, FailureMode) else value


def on_one_device(found: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose fixes name one device only."""

    def fixed(mode: FailureMode) -> FailureMode:
        if mode.remedy not in ONE_DEVICE:
            return mode
        return replace(mode, remedy="window", fix=remedy("window"))

    return replace(
        found, cause=found.cause and fixed(found.cause),
        alternatives=tuple(map(fixed, found.alternatives)),
        warnings=tuple(map(fixed, found.warnings)),
    )  # fmt: skip


def weights_per_replica(
    layout: Layout, expected: Vector, found: Vector
) -> tuple[ReplicaWeights, ...]:
    """Return mean weights of each per-replica batch, or of each micro-batch of one device."""
    groups = of_parts(layout) if layout.replicas == 1 else of_shares(layout)
    table = []
    for number, part in enumerate(groups):
        mean = [float(values[list(part)].mean()) if part else 0.0 for values in (expected, found)]
        replica, micro_batch = (number, None) if layout.replicas > 1 else (0, number)
        table.append(ReplicaWeights(replica, len(part), mean[0], mean[1], micro_batch))
    return tuple(table)


def factors_of_examples(layout: Layout, right: Vector, found: Vector) -> str | None:
    """Describe the weights of single examples if they differ within a per-replica batch."""
    ratios = found / right
    shares = [ratios[list(share)] for share in of_shares(layout)]
    if all(np.ptp(share) <= NO_SUM * np.abs(share).max() for share in shares if share.size):
        return None
    listed = " | ".join(
        " ".join(f"{ratio:.3g}" for ratio in share[:8]) for share in shares[:_SHOWN]
    )
    return f"found / expected weight of each example, by replica: {listed}"
