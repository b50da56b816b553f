"""Writes TABLE.md: what was written about each case before the doctor saw it."""

from __future__ import annotations

import sys
from pathlib import Path

from .truth import asked, cases


def table(trial: str = __package__) -> str:
    """One row for each case, by repository."""
    held = sorted(
        ((case, part) for part, _ in asked([f"--trial={trial}"]) for case in cases(part, trial)),
        key=lambda pair: (pair[0].source.lower(), pair[0].name),
    )
    lines = ["| source | step | in | verdict | what | weight of an example |", "| --- " * 6 + "|"]
    for case, part in held:
        shows = "" if case.where == "update" else f" ({case.where})"
        row = (case.source, case.name, part, case.kind + shows, case.what, case.formula)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    _, named = next(asked(sys.argv[1:]))
    (Path(__file__).parents[1] / named / "TABLE.md").write_text(table(named))
