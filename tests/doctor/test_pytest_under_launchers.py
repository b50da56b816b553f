"""What pytest does where a launcher's variables say that there are other processes."""

import os
import subprocess
import sys

import pytest

LIMIT = 120  # seconds
TEST = """
import samegrad as tf

def test_adds():
    assert float(tf.constant(1.0) + 1.0) == 2.0
"""


def run_pytest(folder, *options, rank=0):
    (folder / "test_program.py").write_text(TEST)
    # By its module, and not once more by its entry point where samegrad is installed.
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:samegrad", "-p", "samegrad._pytest_plugin"]
    words += options
    variables = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": str(rank)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, str(folder)],
        capture_output=True, text=True, check=False, timeout=LIMIT, cwd=folder,
        env={**os.environ, **variables},
    )  # fmt: skip


def test_workers_of_xdist_are_no_ranks(tmp_path):
    pytest.importorskip("xdist")
    ended = run_pytest(tmp_path, "-n", "1")
    assert ended.returncode == 0 and "1 passed" in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.parametrize("rank", [0, 1])
def test_a_job_that_cannot_be_joined_is_said(tmp_path, rank):
    """Whether there is no MPI, or one that knows of no other process."""
    ended = run_pytest(tmp_path, rank=rank)
    text = ended.stdout + ended.stderr
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR, text
    assert "[MultiWorkerMirroredStrategy] Open MPI's mpirun has started 2 processes" in text
    assert "INTERNALERROR" not in text
