"""What type checkers and editors know of tf.keras and of samegrad's root."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import samegrad as tf
from samegrad._keras.stubs import stubs

FOLDER = Path(tf.__file__).parent / "keras"


def test_the_stubs_are_those_of_today() -> None:
    found = {str(path.relative_to(FOLDER)): path.read_text() for path in FOLDER.rglob("*.pyi")}
    assert found == stubs(), "refresh: python -m samegrad._keras.stubs python/samegrad/keras"


def test_a_wrong_name_is_an_error_of_the_type_checker(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import samegrad as tf\n"
        "from samegrad.keras.layers import Dense\n"
        "reveal_type(tf.function(abs))\n"
        "tf.keras.layers.Dens(3)\n"
        "tf.nn.relux(1.0)\n"
        "Dense(3)\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-incremental", program.name]
    command += ["--python-executable", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert lines[:3] == [
        'note: Revealed type is "samegrad._function.function.Function"',
        'error: Module has no attribute "Dens"; maybe "Dense"?  [attr-defined]',
        'error: Module has no attribute "relux"; maybe "relu", "crelu", or "relu6"?  '
        "[attr-defined]",
    ]
