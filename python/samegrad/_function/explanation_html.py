"""HTML of an explanation: notebooks show a bar for each step."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from samegrad._base.user_files import shown_line

if TYPE_CHECKING:
    from samegrad._function.explanation import Explanation, PlanOperation, PlanStep, Reason

_COLOURS = {"predicted": "#9aa5b1", "measured": "#e07b39"}  # legible on white and on black
_LEFT = ' style="text-align:left"'


def explanation_html(explanation: Explanation) -> str:
    """Return a table of the steps with bars, below the answer about bits and its reasons.

    All strings are escaped. The HTML has neither scripts nor links.
    """
    if not explanation.steps:
        return f"<pre>{escape(explanation.text)}</pre>"
    times = ["predicted"] if explanation.measured is None else ["predicted", "measured"]
    longest = max(getattr(step, time) for step in explanation.steps for time in times)
    head = "".join(f"<th{_LEFT}>{text}</th>" for text in ["step", "operations", *times, ""])
    rows = "".join(_row(step, times, longest) for step in explanation.steps)
    return (
        f"<div>{_answer(explanation)}<div>{escape(_summary(explanation, times))}</div>"
        f"<table><tr>{head}</tr>{rows}</table></div>"
    )


def _answer(explanation: Explanation) -> str:
    answer = "yes" if explanation.bitwise else "no"
    reasons = "".join(f"<li>{escape(_shown(reason))}</li>" for reason in explanation.reasons)
    listed = f"<ul>{reasons}</ul>" if reasons else ""
    return f"<div><b>bitwise identical to one replica: {answer}</b></div>{listed}"


def _shown(reason: Reason) -> str:
    """Return the reason with its line as tracebacks show it, such as `Cell In[4], line 2`."""
    if reason.file is None or reason.line is None:
        return reason.text
    return f"{shown_line(reason.file, reason.line)}: {reason.text}"


def _summary(explanation: Explanation, times: list[str]) -> str:
    spent = [f"{time} {_text_of_time(getattr(explanation, time))}" for time in times]
    memory = explanation.memory.bytes if explanation.memory else 0
    parts = [
        f"{explanation.replicas} replica(s)", f"{explanation.threads} thread(s)",
        f"{memory:,} bytes between steps", *spent,
    ]  # fmt: skip
    return ", ".join(parts)


def _row(step: PlanStep, times: list[str], longest: float) -> str:
    seconds = [getattr(step, time) for time in times]
    numbers = "".join(f"<td>{_text_of_time(time)}</td>" for time in seconds)
    bars = "".join(
        f'<div style="width:{100 * time / longest if longest else 0:.1f}%;height:0.5em;'
        f'background:{_COLOURS[name]}"></div>'
        for name, time in zip(times, seconds, strict=True)
    )
    return (
        f"<tr><td{_LEFT}>{escape(step.title)}</td><td{_LEFT}>{_operations(step)}</td>{numbers}"
        f'<td><div style="width:12em">{bars}</div></td></tr>'
    )


def _operations(step: PlanStep) -> str:
    names = [_name(operation) for operation in step.operations]
    if len(names) <= 1:
        return escape("".join(names))
    lines = "<br>".join(map(escape, names))
    return f"<details><summary>{len(names)} operations</summary>{lines}</details>"


def _name(operation: PlanOperation) -> str:
    fused = f": {' '.join(operation.fused)}" if operation.fused else ""
    return f"{operation.name}{fused}"


def _text_of_time(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"
