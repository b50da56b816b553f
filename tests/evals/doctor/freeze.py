"""Record the doctor's verdict of every case of the evaluation sets, and compare two records.

    python tests/evals/doctor/freeze.py record FILE.json [SET[/PART] ...]
    python tests/evals/doctor/freeze.py diff OLD.json NEW.json

`verdicts.json` is the record of the current doctor. Parts whose framework is not installed are left
out, and `diff` compares the cases of both records. This is a program, not a test: it takes minutes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2]
PACKAGE = TESTS.parent / "python" / "samegrad_doctor"
TRIALS = ("blind_trial", "second_trial", "third_trial", "fourth_trial", "fifth_trial")
NEEDS = {"torch": "torch", "processes": "torch", "jax": "jax", "samegrad": "samegrad"}


def verdict(step: Any, batch: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Return the doctor's verdict of a step, by names."""
    from samegrad_doctor import StepError, diagnose

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = diagnose(step, batch, **options)
        except StepError as error:
            return {"verdict": "not decided", "why": str(error)}
    named = {
        "verdict": "correct" if found.correct and not found.reported_loss_issue else "wrong",
        "update": found.cause and found.cause.name,
        "report": found.reported_loss_cause and found.reported_loss_cause.name,
        "alternatives": [row.name for row in found.alternatives],
        "warnings": [row.name for row in found.warnings],
        "first_line": str(found).partition("\n")[0],
    }
    return {key: value for key, value in named.items() if value}


def trial_cases(trial: str, wanted: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the verdict of each case of a trial."""
    from blind_trial.truth import cases, modules_of

    from samegrad_doctor.adapters import ddp_workers

    for part in modules_of(trial):
        if importlib.util.find_spec(NEEDS[part]) is None or not asked(f"{trial}/{part}", wanted):
            continue
        with ddp_workers() if part == "processes" else contextlib.nullcontext():
            for case in cases(part, trial):
                truth = {"truth": case.kind, "where": case.where}
                found = verdict(*case.make(), case.options)
                yield f"{trial}/{part}/{case.name}", truth | found


def other_cases(wanted: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the verdicts of the sets without frameworks."""
    if asked("real_bugs", wanted):
        from real_bugs import all_bugs

        for index, bug in enumerate(all_bugs()):
            truth = {"truth": bug.name or "right", "where": bug.where}
            found = verdict(bug.step, bug.batch, bug.options)
            yield f"real_bugs/{index}/{bug.source}", truth | found
    if asked("held_out", wanted):
        from held_out import all_cases

        for index, case in enumerate(all_cases()):
            name = case.truth if isinstance(case.truth, str) else "wrong"
            found = verdict(case.step, case.batch, case.options)
            yield f"held_out/{index}/{case.source}", {"truth": name, "where": case.where} | found


def asked(name: str, wanted: list[str]) -> bool:
    """Return True if a set, or a part of a set, is to be recorded."""
    return not wanted or any(one in (name, name.partition("/")[0]) for one in wanted)


def record(path: str, wanted: list[str]) -> None:
    """Write the verdicts of the wanted sets; keep those of other sets that the file has."""
    file = Path(path)
    found = json.loads(file.read_text()) if file.exists() and wanted else {}
    for trial in TRIALS:
        found |= trial_cases(trial, wanted)
    found |= other_cases(wanted)
    file.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print(summary(found))


def summary(found: dict[str, Any]) -> str:
    """Return a table of the verdicts by set and truth."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for name, row in found.items():
        truth = row["truth"] if row["truth"] in ("right", "even", "warned") else "wrong"
        cell = counts.setdefault((name.partition("/")[0], truth), {})
        cell[row["verdict"]] = cell.get(row["verdict"], 0) + 1
    return "\n".join(f"{key[0]:14s} {key[1]:7s} {cell}" for key, cell in sorted(counts.items()))


def diff(old_path: str, new_path: str) -> None:
    """Print the cases of both records whose verdicts differ."""
    old, new = (json.loads(Path(path).read_text()) for path in (old_path, new_path))
    both, changed = sorted(old.keys() & new.keys()), 0
    for name in both:
        keys = sorted((old[name].keys() | new[name].keys()) - {"first_line"})
        differ = [key for key in keys if old[name].get(key) != new[name].get(key)]
        if differ:
            changed += 1
            print(f"{name} ({old[name]['truth']})")
            for key in differ:
                print(f"  {key}: {old[name].get(key)} -> {new[name].get(key)}")
    words = sum(old[name].get("first_line") != new[name].get("first_line") for name in both)
    print(f"{changed} of {len(both)} verdicts differ, {words} first lines")


if __name__ == "__main__":
    sys.path[:0] = [str(TESTS), str(TESTS / "doctor"), str(PACKAGE / "tests")]
    if sys.argv[1:2] == ["record"]:
        record(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["diff"]:
        diff(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)
