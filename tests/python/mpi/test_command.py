"""`samegrad fashion-mnist` under a launcher, and the job script that starts it again."""

import os
import signal
import subprocess
import time
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
SMALL = ["--limit", "64", "--batch-size", "8", "--replicas", "4", "--epochs", "3", "--fingerprint"]


def start(mpi, ranks, folder, *more):
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
    }
    return subprocess.Popen(
        ["bash", str(SCRIPT), "fashion-mnist", *SMALL, "--log", str(folder / "log"), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder,
        start_new_session=True,
    )  # fmt: skip


def end(process):
    try:
        return process.communicate(timeout=LIMIT)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_killed_job_is_started_again_and_ends_with_the_log_of_one_process(mpi, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = start(mpi, 1, tmp_path / "one")
    out, err = end(one)
    assert one.returncode == 0, out + err
    assert out.count("Accuracy after restoring") == 1
    two = start(mpi, 2, tmp_path / "two", "--steps", 3)  # saves, and stops
    out, err = end(two)
    assert out.count("Stopped after step 3") == 1, out + err
    lost = start(mpi, 4, tmp_path / "two")
    try:
        while lost.poll() is None and (tmp_path / "two" / "log").read_text().count("\n") < 5:
            time.sleep(0.05)
        children = subprocess.run(
            ["pgrep", "-g", str(lost.pid), "-f", "-m samegrad"],
            capture_output=True, text=True, check=False,
        ).stdout.split()  # fmt: skip
        for child in children[-1:]:
            os.kill(int(child), signal.SIGKILL)
    finally:
        out, err = end(lost)
    again = start(mpi, 2, tmp_path / "two")
    out, err = end(again)
    assert again.returncode == 0, out + err
    logs = [(tmp_path / name / "log").read_bytes() for name in ("one", "two")]
    assert logs[0] == logs[1]
