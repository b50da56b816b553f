"""What the doctor says of the cases of a part: JSON, one line a case."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from samegrad_doctor import StepError, diagnose

from .case import Case
from .truth import asked, cases


def said(case: Case) -> dict[str, Any]:
    """The verdict on a case, in names."""
    step, batch = case.make()
    start = time.perf_counter()
    try:
        found = diagnose(step, batch, **case.options)
    except StepError as error:
        return {"refused": str(error)}
    cause = found.cause if case.where != "report" else found.reported_loss_cause
    return {
        "correct": found.correct,
        "reported": found.reported_loss_issue,
        "cause": cause and cause.name,
        "formula": cause and cause.formula,
        "others": [row.name for row in found.alternatives],
        "cautions": [row.name for row in found.warnings],
        "seconds": round(time.perf_counter() - start, 2),
        "text": str(found),
    }


def main() -> None:
    """Judges the parts that are named, or all."""
    for part, trial in asked(sys.argv[1:]):
        for case in cases(part, trial):
            row = {"name": case.name, "part": part, "kind": case.kind, "where": case.where}
            row |= {"source": case.source, "expected": case.formula, "what": case.what}
            print(json.dumps(row | said(case)), flush=True)


if __name__ == "__main__":
    main()
