"""Twelve training programs give the recorded bits on every kernel variant at hand."""

from __future__ import annotations

import functools
import json

import golden_programs
import pytest
from golden_networks import PROGRAMS

from samegrad import _core
from samegrad._base.numerics import numerics

found_with = functools.cache(golden_programs.found_with)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("isa", _core.isa_supported())
def test_a_program_has_its_recorded_fingerprint(isa: str, program: str) -> None:
    found = {setting: {program: values[program]} for setting, values in found_with(isa).items()}
    departed = golden_programs.departures(found, isa)
    assert not departed, (
        f"on {isa}: {'; '.join(departed)}. Undo the change of bits, or raise kReductionOrder "
        "or kFunctionVersion in cpp/base, run tests/contract/golden_programs.py --write CAUSE, "
        "and state the cause in the commit"
    )


def test_the_log_has_the_cause_of_each_fingerprint_and_todays_versions() -> None:
    contents = golden_programs.recorded()
    assert list(contents["programs"]) == list(PROGRAMS)
    assert {name for entry in contents["log"] for name in entry["changed"]} == set(PROGRAMS)
    assert all(entry["cause"] for entry in contents["log"])
    newest = contents["log"][-1]
    assert {name: newest[name] for name in numerics()} == numerics(), (
        "run tests/contract/golden_programs.py --write CAUSE"
    )


def test_write_records_the_cause_of_changed_programs_only(tmp_path, monkeypatch) -> None:
    values = dict.fromkeys(PROGRAMS, "a")
    monkeypatch.setattr(golden_programs, "FILE", tmp_path / "golden.json")
    monkeypatch.setattr(golden_programs, "found_with", lambda isa: {"1 replica": values})
    golden_programs.write("first")
    golden_programs.write("nothing has changed")
    values["lstm"] = "b"
    golden_programs.write("a new sigmoid")
    entries = golden_programs.recorded()["log"]
    assert [entry["cause"] for entry in entries] == ["first", "a new sigmoid"]
    assert entries[0]["changed"] == list(PROGRAMS) and entries[1]["changed"] == ["lstm"]
    assert set(golden_programs.recorded()["programs"]["lstm"].values()) == {"b"}

    recorded = golden_programs.FILE.read_text()
    other = {"1 replica": values, "2 replicas": values | {"unet": "c"}}
    monkeypatch.setattr(golden_programs, "found_with", lambda isa: other)
    with pytest.raises(ValueError, match="unet: .* 2 replicas departs"):
        golden_programs.write("replicas disagree")
    assert golden_programs.FILE.read_text() == recorded


def test_write_records_a_raised_version(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(golden_programs, "FILE", tmp_path / "golden.json")
    values = {"1 replica": dict.fromkeys(PROGRAMS, "a")}
    monkeypatch.setattr(golden_programs, "found_with", lambda isa: values)
    golden_programs.write("first")
    monkeypatch.setattr(_core, "function_version", lambda: 9)
    golden_programs.write("another polygamma, which no program has")
    newest = json.loads(golden_programs.FILE.read_text())["log"][-1]
    assert newest["function_version"] == 9 and newest["changed"] == []
