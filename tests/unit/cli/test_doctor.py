"""`samegrad doctor` judges a step in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from samegrad.cli import main

PROGRAM = """
import numpy as np

rng = np.random.default_rng(0)
batch = (rng.normal(size=(12, 20)),)
weights = rng.uniform(1, 2, size=12)

def right(shares):
    return sum(s[0].sum(axis=0) for s in shares) / sum(len(s[0]) for s in shares)

def wrong(shares):
    return sum(s[0].mean(axis=0) for s in shares)

def few(shares):
    return wrong(shares)[:3]

def leaves(shares):
    raise SystemExit(0)

def broken_batch():
    raise KeyError("the data set")
"""

COUNTED = """
def counted(shares):
    full = [s[0] for s in shares if len(s[0])]
    return sum(s.sum(axis=0) for s in full) / sum(map(len, full)) * len(full) / len(shares)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_a_right_step_ends_with_0_and_a_wrong_one_with_1(program, capsys) -> None:
    assert main(["doctor", f"{program}::right"]) == 0
    assert capsys.readouterr().out.startswith("correct")
    assert main(["doctor", f"{program}::wrong", "--replicas", "2", "4"]) == 1
    assert "cause: mean per replica, then sum" in capsys.readouterr().out
    assert main(["doctor", f"{program}::wrong", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["cause"] == "mean per replica, then sum"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{}"], "FILE.py::NAME"),
        (["/nowhere.py::step"], "a Python file is needed"),
        (["{}::missing"], "has no 'missing'"),
        (["{}::right", "--batch", "data"], "has no 'data'"),
        (["{}::few"], "at least 11 parameters"),
        (["{}::right", "--seed", "-1"], "seed must be an integer >= 0: got -1"),
        (["{}::right", "--batch", "broken_batch"], "it raised KeyError: 'the data set'"),
        (["{}::leaves"], "must return or raise: it called sys.exit(0)"),
    ],
)
def test_what_cannot_be_judged_ends_in_one_line(program, capsys, arguments, words) -> None:
    given = [argument.format(program) for argument in arguments]
    assert main(["doctor", *given]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_a_file_that_fails_is_named(tmp_path, capsys) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0")
    assert main(["doctor", f"{path}::step"]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_script_that_ends_while_it_is_imported_is_not_right(tmp_path, capsys) -> None:
    path = tmp_path / "script.py"
    path.write_text("import sys\nsys.exit(0)")
    assert main(["doctor", f"{path}::step"]) == 2
    assert 'behind `if __name__ == "__main__":`' in capsys.readouterr().err


def test_a_replica_without_examples_is_valid_json(tmp_path, capsys) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM + COUNTED)
    assert main(["doctor", f"{path}::counted", "--empty-shard", "--json"]) == 1

    def refuse(word: str) -> None:
        raise AssertionError(word)

    shares = json.loads(capsys.readouterr().out, parse_constant=refuse)["per_replica"]
    assert None in [share["factor"] for share in shares]
