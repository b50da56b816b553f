"""A training over replicas and threads under ThreadSanitizer (the quick run; see .ci/sanitize)."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_a_training_over_replicas_and_threads_has_no_race(tmp_path: pathlib.Path) -> None:
    probe = tmp_path / "probe.cpp"
    probe.write_text("int main() {}")
    compiler = os.environ.get("CXX", "c++")
    command = [compiler, "-fsanitize=thread", str(probe), "-o", str(tmp_path / "probe")]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{compiler} comes without ThreadSanitizer")
    if subprocess.run([tmp_path / "probe"], capture_output=True, check=False).returncode != 0:
        pytest.skip("ThreadSanitizer does not run here (address space randomisation)")
    bin_folder = str(pathlib.Path(sys.executable).parent)
    environment = os.environ | {
        "PYTHON": sys.executable,
        "SAMEGRAD_SANITIZE_BUILD": str(tmp_path / "build"),
        "PATH": bin_folder + os.pathsep + os.environ["PATH"],
    }
    done = subprocess.run(
        [ROOT / ".ci" / "sanitize", "tsan", "--quick"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    assert "clean: tsan" in done.stdout
