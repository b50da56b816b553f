"""The package samegrad-doctor: NumPy only, and without samegrad."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import samegrad_doctor

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
    """A folder with the package alone, and with a user's program."""
    place = tmp_path_factory.mktemp("doctor") / "site"
    ignored = shutil.ignore_patterns("__pycache__")
    source = pathlib.Path(samegrad_doctor.__file__).parent
    shutil.copytree(source, place / "samegrad_doctor", ignore=ignored)
    (place / "program.py").write_text(PROGRAM)
    return place


def read_me(number: int) -> str:
    """One of the Python programs that the README shows."""
    text = (ROOT / "python" / "samegrad_doctor" / "README.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)[number]


@pytest.fixture
def user(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the README's script, and with what asks about it."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    (tmp_path / "train.py").write_text(read_me(1))
    (tmp_path / "ask.py").write_text(read_me(2))
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
    assert len([line for line in read_me(2).splitlines() if line.strip()]) <= 8
    said = run(installed, "ask.py", folder=user)
    assert "cause: mean of the replicas' means" in said.stdout, said
    assert "torch.distributed.get_world_size() / count" in said.stdout
    (user / "even.py").write_text(read_me(2).replace("[:12]))", "[:12], equal_shards=True))"))
    said = run(installed, "even.py", folder=user)
    assert said.stdout.startswith("correct"), said
    assert "correct while all shards are equal" in said.stdout


@pytest.mark.parametrize("page", ["README.md", "python/samegrad_doctor/README.md"])
def test_page_shows_the_diagnosis_of_its_step(
    installed: pathlib.Path, tmp_path: pathlib.Path, page: str
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    text = (ROOT / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    ((code, output),) = [block for block in blocks if "samegrad_doctor" in block[0]]
    assert len([line for line in code.splitlines() if line.strip()]) <= 8
    (tmp_path / "step.py").write_text(code)
    assert run(installed, "step.py", folder=tmp_path).stdout == output


def test_fix_of_the_readme_makes_the_step_correct(
    installed: pathlib.Path, user: pathlib.Path
) -> None:
    text = (ROOT / "python" / "samegrad_doctor" / "README.md").read_text()
    lines = re.findall(r"^\+(    .*)$", text, re.MULTILINE)
    script = (user / "train.py").read_text().partition("def train_loss")[0] + "\n".join(
        ["def train_loss(model, batch):", *lines]
    )
    (user / "train.py").write_text(script)
    assert run(installed, "ask.py", folder=user).stdout.startswith("correct")


def test_processes_of_a_step_in_a_file_import_what_stands_beside_it(
    installed: pathlib.Path, user: pathlib.Path
) -> None:
    line = "step, batch = ddp_step(build), load_train_objs()[0][:12]\n"
    (user / "steps.py").write_text(read_me(2).partition("if __name__")[0] + line)
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


def test_two_wheels_share_no_file() -> None:
    """Compare the files of both, where they are installed from wheels."""
    files = {}
    for name in ("samegrad", "samegrad-doctor"):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name} was not installed from a wheel")
        files[name] = {str(file) for file in distribution.files or () if ".." not in file.parts}
    if not all(files.values()):
        pytest.skip("samegrad was not installed from a wheel")
    assert not files["samegrad"] & files["samegrad-doctor"]
    own = {name.partition("/")[0] for name in files["samegrad-doctor"]}
    assert own == {"samegrad_doctor", f"samegrad_doctor-{samegrad_doctor.__version__}.dist-info"}
    source = pathlib.Path(samegrad_doctor.__file__).parent
    modules = {f"samegrad_doctor/{path.relative_to(source)}" for path in source.rglob("*.py")}
    assert modules <= files["samegrad-doctor"] and "samegrad_doctor/py.typed" in files[name]
    assert importlib.metadata.requires("samegrad-doctor")[0] == "numpy>=1.24"


WITHOUT = """
import sys
sys.modules["samegrad_doctor"] = None
from samegrad.cli import main
import samegrad as tf
import samegrad.testing as testing
import numpy as np
tf.testing.assert_same_bits({"a": np.ones(2)}, {"a": np.ones(2)})
for name in ("diagnose", "adapters", "strategies"):
    try:
        getattr(tf.testing, name)
    except ImportError as error:
        assert "pip install ./python/samegrad_doctor" in str(error), error
        continue
    raise AssertionError(name)
assert main(["fingerprint", "/nowhere"]) == main(["doctor", "a.py::b"]) == 2
"""


def test_samegrad_alone_names_the_command_that_installs_the_doctor() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (_, said) = done.stderr.splitlines()
    assert said.startswith("samegrad: error: ") and "python/samegrad_doctor" in said


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
