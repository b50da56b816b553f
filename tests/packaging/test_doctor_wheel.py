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


def read_me(number: int) -> str:
    """One of the Python programs that the README shows."""
    text = (ROOT / "python" / "doctor" / "README.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)[number]


@pytest.fixture
def user(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the README's script, and with what asks about it."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (tmp_path / "train.py").write_text(read_me(0))
    (tmp_path / "ask.py").write_text(read_me(1))
    return tmp_path


def run(
    place: pathlib.Path, *arguments: str, folder: pathlib.Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Python with the unpacked wheel, in a user's folder or in the wheel's own."""
    environment = {**os.environ, "PYTHONPATH": str(place)}
    environment |= {} if folder else {"PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder or place, env=environment, capture_output=True,
        text=True, check=False, timeout=120,
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
                "--max-examples", "7", "--no-empty-shard")  # fmt: skip
    assert wrong.returncode == 1 and "cause: mean per replica, then sum" in wrong.stdout, wrong
    assert "torch.distributed.all_reduce" in wrong.stdout
    assert run(installed, "-c", code, "check", "program.py::even", "--equal-shards").returncode == 0
    missing = run(installed, "-c", code, "check", "program.py::nothing")
    assert missing.returncode == 2 and "has no 'nothing'" in missing.stderr


def test_the_readmes_lines_ask_about_a_ddp_script(
    installed: pathlib.Path, user: pathlib.Path
) -> None:
    assert len([line for line in read_me(1).splitlines() if line.strip()]) <= 8
    said = run(installed, "ask.py", folder=user)
    assert "cause: mean of the replicas' means" in said.stdout, said
    assert "torch.distributed.get_world_size() / count" in said.stdout
    (user / "even.py").write_text(read_me(1).replace("[:12]))", "[:12], equal_shards=True))"))
    said = run(installed, "even.py", folder=user)
    assert said.stdout.startswith("correct"), said
    assert "correct while all shards are equal" in said.stdout


def test_first_page_shows_the_diagnosis_of_its_step(
    installed: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    ((code, output),) = [block for block in blocks if "samegrad_doctor" in block[0]]
    assert len([line for line in code.splitlines() if line.strip()]) <= 8
    (tmp_path / "step.py").write_text(code)
    assert run(installed, "step.py", folder=tmp_path).stdout == output


def test_the_readmes_ranks_one_after_the_other_are_judged(
    installed: pathlib.Path, user: pathlib.Path
) -> None:
    (user / "simulated.py").write_text(read_me(2))
    said = run(installed, "simulated.py", folder=user)
    assert "cause: mean of the replicas' means" in said.stdout, said
    assert "reported loss" not in said.stdout  # a loss for backward is not a report


def test_processes_of_a_step_in_a_file_import_what_stands_beside_it(
    installed: pathlib.Path, user: pathlib.Path
) -> None:
    line = "step, batch = ddp_step(build), load_train_objs()[0][:12]\n"
    (user / "steps.py").write_text(read_me(1).partition("if __name__")[0] + line)
    elsewhere = user / "elsewhere"
    elsewhere.mkdir()
    code = "import sys; from samegrad_doctor.cli import main; sys.exit(main(sys.argv[1:]))"
    command = ("-c", code, "check", "../steps.py::step")
    said = run(installed, *command, folder=elsewhere)
    assert said.returncode == 1 and "cause: mean of the replicas' means" in said.stdout, said
    said = run(installed, *command, "--equal-shards", folder=elsewhere)
    assert said.returncode == 0, said


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


def test_error_of_a_step_shows_user_frames_alone(installed: pathlib.Path) -> None:
    (installed / "wrong.py").write_text(
        "import numpy as np\nimport samegrad_doctor\n\n"
        "def step(shares):\n    return {}['key']\n\n"
        "samegrad_doctor.diagnose(step, np.ones((4, 3)))\n"
    )
    done = subprocess.run(
        [sys.executable, "wrong.py"], cwd=installed, capture_output=True, text=True, check=False
    )
    assert "in step" in done.stderr and "KeyError: 'key'" in done.stderr
    frames = re.findall(r'File "([^"]*)"', done.stderr)
    assert len(frames) == 2 and all(name.endswith("wrong.py") for name in frames), done.stderr
