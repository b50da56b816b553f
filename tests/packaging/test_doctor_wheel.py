"""The doctor's own wheel: NumPy only, and the verdicts of samegrad.testing."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import numpy as np

batch = np.random.default_rng(0).normal(size=(12, 20))
lengths = np.arange(1.0, 13.0)


def step(shares):
    return sum(share.mean(axis=0) for share in shares)


def even(shares):
    assert len({len(share) for share in shares}) == 1
    return np.concatenate(shares).mean(axis=0)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The wheel, built and unpacked."""
    folder = tmp_path_factory.mktemp("doctor")
    build = [sys.executable, str(ROOT / "python" / "doctor" / "build_doctor.py"), str(folder)]
    name = subprocess.run(build, capture_output=True, text=True, check=True).stdout.strip()
    place = folder / "site"
    with zipfile.ZipFile(folder / name) as archive:
        archive.extractall(place)
    (place / "program.py").write_text(PROGRAM)
    return place


def run(place: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip


def test_it_brings_neither_samegrad_nor_a_framework(installed: pathlib.Path) -> None:
    code = (
        "import sys, samegrad_doctor, samegrad_doctor.adapters, samegrad_doctor.cli;"
        "print(*sys.modules)"
    )
    loaded = run(installed, "-c", code).stdout.split()
    assert "samegrad_doctor.adapters" in loaded
    assert not {"samegrad", "torch", "jax", "tensorflow", "keras"} & set(loaded)


def test_its_command_has_the_options_of_the_function(installed: pathlib.Path) -> None:
    code = "import sys; from samegrad_doctor.cli import main; sys.exit(main(sys.argv[1:]))"
    wrong = run(installed, "-c", code, "check", "program.py::step", "--framework", "pytorch",
                "--examples", "7", "--no-empty-share")  # fmt: skip
    assert wrong.returncode == 1 and "cause: mean per replica, then sum" in wrong.stdout, wrong
    assert "torch.distributed.all_reduce" in wrong.stdout
    assert run(installed, "-c", code, "check", "program.py::even", "--even").returncode == 0
    missing = run(installed, "-c", code, "check", "program.py::nothing")
    assert missing.returncode == 2 and "has no 'nothing'" in missing.stderr


def test_no_module_imports_samegrad_at_its_top(installed: pathlib.Path) -> None:
    wanted = re.compile(r"^\s*(?:from|import) samegrad(?:\.|\s)", re.MULTILINE)
    found = [path for path in installed.rglob("*.py") if wanted.search(path.read_text())]
    assert not found


def test_the_record_tells_every_file(installed: pathlib.Path) -> None:
    (record,) = installed.glob("*.dist-info/RECORD")
    told = {line.split(",")[0] for line in record.read_text().splitlines()}
    files = {str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file()}
    assert told == {f for f in files if f != "program.py" and "__pycache__" not in f}
    (metadata,) = installed.glob("*.dist-info/METADATA")
    assert "Requires-Dist: numpy" in metadata.read_text()
