"""The evaluation sets: each verdict is the recorded one, and the record is as good as stated.

`tests/evals/doctor/evaluate.py record` runs all cases, and writes the record.
"""

from __future__ import annotations

import importlib.util
import re
from typing import Any

import pytest
from eval_case import FOLDER, NEEDS, TRIALS, Case, cases
from evaluate import BEGIN, END, PAGE, is_wrong, judged, load, row_of, table
from evaluate import is_named as is_named_in
from real_bugs import all_cases, is_named
from split_check import contradiction

from samegrad_doctor import StepError
from samegrad_doctor.adapters import ddp_workers

RECORD = load()
# Wrong steps, those that the first run named rightly in first place, correct steps, repositories.
FIRST = {
    "first_trial": (108, 97, 79, 87),
    "second_trial": (111, 94, 79, 142),
    "third_trial": (92, 81, 44, 108),
    "fourth_trial": (164, 150, 100, 157),
    "fifth_trial": (98, 91, 61, 134),
}
ACCUSED = {"second_trial/torch/weights_over_batch_size"}
BUGS = list(enumerate(all_cases()))


def names_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(key) for key in ("verdict", "update", "report"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", NEEDS)
@pytest.mark.parametrize("trial", TRIALS)
def test_each_verdict_is_the_recorded_one(trial: str, part: str) -> None:
    if importlib.util.find_spec(NEEDS[part]) is None:
        pytest.skip(f"{NEEDS[part]} is not installed")
    held = {f"{trial}/{part}/{case.name}": case for case in cases(trial, part)}
    assert held.keys() == {key for key in RECORD if key.startswith(f"{trial}/{part}/")}
    assert not {key: said for key, case in held.items() if (said := contradiction(case))}
    with ddp_workers():
        found = {key: row_of(judged(case)) for key, case in held.items()}
    differ = {key for key, row in found.items() if names_of(row) != names_of(RECORD[key])}
    assert not differ, {key: found[key] for key in differ}


@pytest.mark.parametrize(("index", "bug"), BUGS, ids=lambda bug: getattr(bug, "source", None))
def test_a_real_bug_is_named_as_recorded(index: int, bug: Case) -> None:
    found = judged(bug)
    assert not isinstance(found, StepError), str(found)
    assert is_named(bug, found), f"{bug.source}: wanted {bug.named!r}\n{found}"
    assert names_of(row_of(found)) == names_of(RECORD[f"real_bugs/{index}/{bug.source}"])


def test_real_bugs_are_many_and_each_names_its_source() -> None:
    assert len(BUGS) >= 100
    assert all("/" in bug.source and bug.what for _, bug in BUGS)


@pytest.mark.parametrize("trial", TRIALS)
def test_the_record_names_as_many_as_the_first_run_and_accuses_no_more(trial: str) -> None:
    rows = {key: row for key, row in RECORD.items() if key.startswith(f"{trial}/")}
    wrong = [row for row in rows.values() if is_wrong(row)]
    assert (len(wrong), len(rows) - len(wrong)) == (FIRST[trial][0], FIRST[trial][2])
    assert all(row["verdict"] == "wrong" for row in wrong)
    assert sum(map(is_named_in, wrong)) >= FIRST[trial][1]
    said = {key for key, row in rows.items() if not is_wrong(row) and row["verdict"] != "correct"}
    assert said <= ACCUSED
    assert all(row.get("warnings") for row in rows.values() if row["truth"] == "warned")


def test_each_set_has_repositories_that_earlier_ones_do_not_have() -> None:
    seen: set[str] = set()
    for trial in TRIALS:
        text = "".join(path.read_text() for path in (FOLDER / trial).glob("*.py"))
        own = set(re.findall(r'@case\(\s*"([^"#]+)#', text))
        assert len(own) == FIRST[trial][3] and not own & seen
        seen |= own


def test_the_page_has_the_table_of_the_record() -> None:
    assert f"{BEGIN}\n\n{table(RECORD)}\n\n{END}" in PAGE.read_text()
