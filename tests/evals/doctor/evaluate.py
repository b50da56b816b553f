"""Run the doctor on its evaluation sets, and compare two runs.

    python tests/evals/doctor/evaluate.py record [FILE.json] [SET[/PART] ...]
    python tests/evals/doctor/evaluate.py diff OLD.json NEW.json
    python tests/evals/doctor/evaluate.py check [SET[/PART] ...]
    python tests/evals/doctor/evaluate.py tables

`record` writes the verdict of every case; without FILE.json to `verdicts.json`, the record of the
current doctor, and then writes the tables of docs/doctor.md. Parts whose framework is not installed
are left out: `pip install -r tests/evals/doctor/requirements.txt` installs them. `check` tests the
cases without the doctor.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
VERDICTS = FOLDER / "verdicts.json"
PAGE = ROOT / "docs" / "doctor.md"
BEGIN, END = "<!-- made by tests/evals/doctor/evaluate.py -->", "<!-- end -->"
Row = dict[str, Any]


def judged(case: Any) -> Any:
    """Return the diagnosis of a case, or the StepError."""
    from samegrad_doctor import StepError, diagnose

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            step, batch = case.make()
            return diagnose(step, batch, **case.options)
        except StepError as error:
            return error


def row_of(found: Any) -> Row:
    """Return a diagnosis by names."""
    if isinstance(found, Exception):
        return {"verdict": "not decided", "why": str(found)}
    named = {
        "verdict": "correct" if found.correct and not found.reported_loss_issue else "wrong",
        "update": found.cause and found.cause.name,
        "report": found.reported_loss_cause and found.reported_loss_cause.name,
        "alternatives": [row.name for row in found.alternatives],
        "warnings": [row.name for row in found.warnings],
        "first_line": str(found).partition("\n")[0],
    }
    return {key: value for key, value in named.items() if value}


def verdicts(wanted: Callable[[str], bool] = lambda name: True) -> dict[str, Row]:
    """Return the verdicts of the wanted sets and parts, such as "first_trial/jax"."""
    from eval_case import all_cases

    from samegrad_doctor.adapters import ddp_workers

    with ddp_workers():
        return {
            key: {"truth": case.truth if isinstance(case.truth, str) else case.kind}
            | {"where": case.where, "named": case.named, **row_of(judged(case))}
            for key, case in all_cases(wanted)
        }


def load(path: Path | str = VERDICTS) -> dict[str, Row]:
    """Return the verdicts of a file."""
    found: dict[str, Row] = json.loads(Path(path).read_text())
    return found


def record(words: list[str]) -> None:
    """Write the verdicts of the wanted sets; keep those of others that the file has."""
    file = Path(words.pop(0)) if words and words[0].endswith(".json") else VERDICTS
    found = (load(file) if file.exists() else {}) | verdicts(asked(words))
    lines = (f"{json.dumps(key, ensure_ascii=False)}: {_line(found[key])}" for key in sorted(found))
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    if file == VERDICTS:
        tables()
    print(table(found))


def _line(row: Row) -> str:
    kept = {key: value for key, value in row.items() if value}
    return json.dumps(kept, sort_keys=True, ensure_ascii=False)


def asked(words: list[str]) -> Callable[[str], bool]:
    """Return a function that tells if a set or a part is wanted; no words want all."""
    return lambda name: not words or any(one in (name, name.partition("/")[0]) for one in words)


_FACTS = {"first_line", "named", "where"}  # which are not verdicts


def diff(old_path: str, new_path: str) -> int:
    """Print the cases of both records whose verdicts differ, and return their number."""
    old, new = load(old_path), load(new_path)
    both, changed = sorted(old.keys() & new.keys()), 0
    for name in both:
        keys = sorted((old[name].keys() | new[name].keys()) - _FACTS)
        differ = [key for key in keys if old[name].get(key) != new[name].get(key)]
        if differ:
            changed += 1
            print(f"{name} ({old[name]['truth']})")
            for key in differ:
                print(f"  {key}: {old[name].get(key)} -> {new[name].get(key)}")
    words = sum(old[name].get("first_line") != new[name].get("first_line") for name in both)
    print(f"{changed} of {len(both)} verdicts differ, {words} first lines")
    return changed


def check(words: list[str]) -> int:
    """Print the cases of the trials that are not what their authors say, and their number."""
    from eval_case import TRIALS, all_cases
    from split_check import contradiction

    held = [(key, case) for key, case in all_cases(asked(words or list(TRIALS)))]
    wrong = [(key, said) for key, case in held if (said := contradiction(case))]
    print(*(f"{key}: {said}" for key, said in wrong), f"{len(wrong)} of {len(held)}", sep="\n")
    return len(wrong)


def is_wrong(row: Row) -> bool:
    """Return True if the step of a row has a failure mode."""
    return row["truth"] not in ("right", "even", "warned")


def is_named(row: Row) -> bool:
    """Return True if the first cause is the one that a reader compared with the step."""
    first = row.get("report" if row["where"] == "report" else "update")
    return first is not None and first == row.get("named")


_SETS = {"first_trial": "1", "second_trial": "2", "third_trial": "3", "fourth_trial": "4",
         "fifth_trial": "5"}  # fmt: skip


def table(found: dict[str, Row]) -> str:
    """Return the table of sets 1 to 5: detected, named, and false positives."""
    lines = ["| set | wrong steps | named | detected | not decided | correct steps | "
             "false positives | not decided |", "| --- " * 8 + "|"]  # fmt: skip
    for name, number in _SETS.items():
        rows = [row for key, row in found.items() if key.startswith(f"{name}/")]
        wrong = [row for row in rows if is_wrong(row)]
        said = Counter((is_wrong(row), row["verdict"]) for row in rows)
        cells = (
            number, len(wrong), sum(map(is_named, wrong)), said[True, "wrong"],
            said[True, "not decided"], len(rows) - len(wrong), said[False, "wrong"],
            said[False, "not decided"],
        )  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def tables() -> None:
    """Write the table of verdicts.json into docs/doctor.md."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n\n{table(load())}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    sys.path[:0] = map(str, (FOLDER, ROOT / "tests", ROOT / "python/samegrad_doctor/tests"))
    command, words = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if command == "record":
        record(words)
    elif command == "diff" and len(words) == 2:
        sys.exit(diff(*words) > 0)
    elif command == "check":
        sys.exit(check(words) > 0)
    elif command == "tables":
        tables()
    else:
        sys.exit(__doc__)
