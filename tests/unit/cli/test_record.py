"""`samegrad record` runs a program as Python does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
