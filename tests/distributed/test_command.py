"""`samegrad fashion-mnist` under a launcher, and the job script that starts it again."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from launch import LIMIT, every_mpi

import samegrad
from samegrad._keras.datasets import fashion_mnist as dataset

pytestmark = [
    pytest.mark.skipif(
        not dataset._DATASET.system_folders[0].is_dir(),
        reason="the package dataset-fashion-mnist is not installed",
    ),
    pytest.mark.parametrize("mpi", every_mpi()),
]
SCRIPT = Path(samegrad.__file__).parent / "distribute" / "jobs" / "slurm.sh"
SMALL = ["--limit", "24", "--batch-size", "3", "--replicas", "4", "--epochs", "1", "--fingerprint"]


def start(mpi, ranks, folder, *more, **variables):
    """The script with a local launcher and, to start the job again, no scheduler but a line."""
    root = ["--allow-run-as-root", "--oversubscribe"] if mpi.is_open else []
    launch = " ".join([str(mpi.launcher), *root, "-n", str(ranks)])
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    (commands / "samegrad").write_text(f'#!/bin/sh\nexec {mpi.python} -m samegrad "$@"\n')
    (commands / "samegrad").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "SAMEGRAD_NUM_THREADS": "1",
        "LAUNCH": launch,
        "REQUEUE": "echo once more",
        "CHECKPOINTS": str(folder / "checkpoints"),
        **variables,
    }
    command = ["bash", SCRIPT, "fashion-mnist", *SMALL, "--log", folder / "log", *more]
    return subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder,
        start_new_session=True,
    )  # fmt: skip


def end(process):
    try:
        return process.communicate(timeout=LIMIT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_stopped_job_goes_on_with_other_processes_to_the_log_of_one(mpi, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = start(mpi, 1, tmp_path / "one")
    out, err = end(one)
    assert one.returncode == 0, out + err
    assert out.count("Accuracy after restoring") == 1
    two = start(mpi, 2, tmp_path / "two", "--steps", 1)  # saves, and stops
    out, err = end(two)
    assert out.count("Stopped after step 1") == 1, out + err
    assert "  mpiexec -n 2 samegrad fashion-mnist " in out
    again = start(mpi, 3, tmp_path / "two")
    out, err = end(again)
    assert again.returncode == 0, out + err
    assert out.count("Resumed from") == 1
    logs = [(tmp_path / name / "log").read_bytes() for name in ("one", "two")]
    assert logs[0] == logs[1]
    assert logs[0].count(b"\n") == 3  # two steps and an epoch


def test_a_job_that_fails_is_started_again_but_for_wrong_options(mpi, tmp_path):
    failed = start(mpi, 2, tmp_path, "--data-dir", str(tmp_path / "missing"))
    out, err = end(failed)
    assert failed.returncode == 2 and "once more" not in out, out + err
    assert err.count("samegrad: error: ") == err.count("error: argument --data-dir: ") == 1, err
    lost = start(mpi, 2, tmp_path, REQUEUE="echo once more", LAUNCH="false")
    out, err = end(lost)
    assert lost.returncode == 1 and "once more" in out, out + err
