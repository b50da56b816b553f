"""The diagnosis of a training step: its fields, its printed form and its JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from samegrad_doctor._catalogue import FailureMode
from samegrad_doctor._layouts import Layout
from samegrad_doctor._words import ONE_DEVICE, WHERE, remedy, symbols_of

SHOWN = 4  # lines of a table
_STYLE = """
:root { color-scheme: light dark; --bad: #b3261e; --good: #1a7f37; --line: #8886; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #6fdd8b; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1.wrong, .minus { color: var(--bad); } h1.correct, .plus { color: var(--good); }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; text-align: right; }
th { border-bottom: 1px solid var(--line); } dt { font-weight: 600; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>samegrad-doctor: {word}</title>
<style>{style}</style></head>
<body><h1 class="{word}">The step is {word}</h1><p>{summary}</p>
<table>{table}</table>
<dl>{entries}</dl></body></html>
"""


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
        lines, table = [self.summary], self.table()[: 1 + SHOWN]
        for cells in table:
            lines.append("  ".join(map(str.rjust, cells, (len(table[0][0]), 8, 10, 10, 8))))
        for label, text in self.entries():
            lines.append(f"{label}:\n{text}" if label == "diff" else f"{label + ':':6} {text}")
        return "\n".join(lines)

    def table(self) -> list[list[str]]:
        """Return the head and the lines of the table of weights; none for a correct update.

        Returns:
            A list with the cells of each line.
        """
        if self.correct or not self.per_replica:
            return []
        whole = self.per_replica[0].micro_batch is None
        head = ["replica" if whole else "micro-batch", "examples", "expected", "found", "factor"]
        return [head] + [
            [str(own.replica if whole else own.micro_batch), str(own.examples),
             f"{own.expected:.6f}", f"{own.found:.6f}",
             f"{own.factor:.4g}" if own.expected else "-"]
            for own in self.per_replica
        ]  # fmt: skip

    def entries(self) -> list[tuple[str, str]]:
        """Return the parts of the report behind the table.

        Returns:
            A list of labels and texts.
        """
        found = [("where", f"{WHERE}.")] if self.table() else []
        found += self._told("cause", self.cause) if self.cause is not None else []
        found += [("diff", self.patch)] if self.patch else []
        if self.alternatives:
            more = f" (and {left} more)" if (left := len(self.alternatives) - SHOWN) > 0 else ""
            names = "; ".join(mode.name for mode in self.alternatives[:SHOWN]) + more
            unknown = ("cause", f"unknown; candidates: {names}")
            found.append(unknown if self.cause is None else ("or", names))
        for warning in self.warnings:
            found += self._told("warning", warning)
        if self.reported_loss_issue:
            found.append(("reported loss", f"{self.reported_loss_issue}."))
        return found + [("note", f"{note}.") for note in self.notes]

    def _told(self, label: str, mode: FailureMode) -> list[tuple[str, str]]:
        known = symbols_of(mode.formula)
        return [
            (label, f"{mode.name}: {mode.sentence}."),
            ("maths", f"{mode.formula}{f'  ({known})' if known else ''}"),
            ("fix", f"{mode.fix_for(self.framework)}."),
        ]

    def to_json(self) -> str:
        """Return the diagnosis as a JSON object, which `samegrad-doctor schema` describes.

        Returns:
            A string with the fields by name; failure modes appear by name, and `layout` as the
            numbers of examples of each replica and micro-batch.
        """
        texts = {
            "sentence": self.cause and self.cause.sentence,
            "formula": self.cause and self.cause.formula,
            "fix": self.cause and self.cause.fix_for(self.framework),
        }
        return json.dumps({name: _plain(value) for name, value in vars(self).items()} | texts)

    def to_html(self) -> str:
        """Return the diagnosis as a page of HTML that needs no other file.

        Returns:
            A string: the document.
        """
        table, tag = "", "th"
        for cells in self.table():
            line = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
            table, tag = f"{table}<tr>{line}</tr>\n", "td"
        told = [
            f"<dt>{label}</dt><dd>{_diff(text) if label == 'diff' else escape(text)}</dd>"
            for label, text in self.entries()
        ]
        return _PAGE.format(
            word="correct" if self.correct and not self.reported_loss_issue else "wrong",
            style=_STYLE, summary=escape(self.summary), entries="\n".join(told),
            table=table.rstrip(),
        )  # fmt: skip


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


def _diff(text: str) -> str:
    """Return a diff with a class for each line that it takes out or puts in."""
    kinds, lines = {"-": "minus", "+": "plus"}, text.splitlines()
    spans = (f'<span class="{kinds.get(own[:1], "")}">{escape(own)}</span>' for own in lines)
    return "<pre>" + "\n".join(spans) + "</pre>"
