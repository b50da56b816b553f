"""`samegrad record` runs a program as Python does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from samegrad.cli import main

PROGRAM = """
import sys, os
print(sys.argv[1:], __name__, os.path.basename(sys.argv[0]))
print(sys.path[0] == os.path.dirname(__file__))
import helper
class Own: pass
import pickle; pickle.loads(pickle.dumps(Own()))
if "fail" in sys.argv: raise helper.Failed("as asked")
if "exit" in sys.argv: sys.exit(7)
"""


@pytest.mark.parametrize(("word", "code"), [("--fine", 0), ("fail", 1), ("exit", 7)])
def test_record_command_runs_a_program_as_python_does(tmp_path: Path, word: str, code: int) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "prog.py").write_text(PROGRAM)
    (tmp_path / "sub" / "helper.py").write_text("class Failed(OSError): pass\n")
    arguments = ["sub/prog.py", word, "--output", "x"]
    commands = [[], ["-m", "samegrad", "record"]]
    plain, recorded = (
        subprocess.run(
            [sys.executable, *command, *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )
        for command in commands
    )  # fmt: skip
    assert plain.returncode == recorded.returncode == code, recorded.stderr
    assert plain.stdout == recorded.stdout
    if word == "fail":
        assert plain.stderr in recorded.stderr
    assert b'"kind":"end"' in (tmp_path / "prog.sgrec").read_bytes()


def test_record_command_refuses_a_missing_program_and_an_existing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", "none.py"]) == 2
    assert "[record] a Python program is needed: got none.py" in capsys.readouterr().err
    Path("program.py").write_text("print(1)")
    Path("program.sgrec").write_text("mine")
    assert main(["record", "program.py"]) == 2
    assert "[record_run] a record must be a new file" in capsys.readouterr().err
    assert Path("program.sgrec").read_text() == "mine"
    with pytest.warns(UserWarning, match="no step was recorded"):
        assert main(["record", "--overwrite", "program.py"]) == 0
    assert main(["record", "--overwrite", "--detail", "-1", "program.py"]) == 2
    assert "argument --detail: [record_run] detail must be" in capsys.readouterr().err
