"""Kill a training command or a fit at random moments, until it has come to its end.

    python tests/distributed/kills.py fit --processes 1 2 4 --kills 100 [--python PYTHON]
    python tests/distributed/kills.py command --processes 1 2 4 --kills 100

A random process of the job gets SIGKILL. The job must end in time and leave no process behind, and
the same command must then continue, to the weights of a job that nobody killed. Files that such a
job cannot read count as a failure. The result is a line of JSON per number of processes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
from launch import PROGRAMS, Mpi

LIMIT = 300  # seconds
REPLICAS = 4
COMMAND = (
    "fashion-mnist --limit 64 --batch-size 2 --replicas 4 --epochs 2 --fingerprint --save-every 4"
)


def words_of(kind: str, mpi: Mpi, processes: int, folder: Path) -> list[str]:
    """Return the command that begins or continues a job."""
    resume = ["--resume"] if (folder / "checkpoint").exists() else []
    program = {
        "fit": [PROGRAMS / "fit_backup.py", folder, REPLICAS],
        "command": [
            PROGRAMS / "command.py", *COMMAND.split(), "--checkpoint-dir", folder, *resume
        ],
    }[kind]  # fmt: skip
    launcher = [mpi.launcher, "-n", processes] if processes > 1 else []
    return [str(word) for word in [*launcher, mpi.python, *program]]


def ranks_of(job: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the processes of a job that run Python."""
    found = [psutil.Process(job.pid), *psutil.Process(job.pid).children(recursive=True)]
    return [each for each in found if _runs_a_program(each)]


def _runs_a_program(process: psutil.Process) -> bool:
    try:
        return PROGRAMS.name in "".join(process.cmdline()[1:2])
    except psutil.NoSuchProcess:  # it has ended; a zombie, too, is none
        return False


@contextlib.contextmanager
def started(words: list[str]) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Yield a job and what it writes to the standard error."""
    with tempfile.TemporaryFile("w+") as errors:
        job = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )
        try:
            yield job, errors
        finally:
            job.kill()
            job.wait()


def ended(job: subprocess.Popen[str], errors: IO[str], limit: float) -> str:
    """Return the fingerprint of a job that nobody kills, unless it takes longer than `limit`."""
    output, _ = job.communicate(timeout=limit)
    if job.returncode:
        errors.seek(0)
        raise SystemExit(f"{job.args}: exit status {job.returncode}\n{errors.read()[-3000:]}")
    return fingerprint(output)


def whole(words: list[str]) -> tuple[str, float]:
    """Return the fingerprint and the seconds of a job that nobody kills."""
    begin = time.monotonic()
    with started(words) as (job, errors):
        return ended(job, errors, LIMIT), time.monotonic() - begin


def fingerprint(output: str) -> str:
    found = {word for word in output.split() if word.startswith("sg1-")}
    assert len(found) == 1, output[-2000:]
    return found.pop()


def lose(words: list[str], later: float, draw: random.Random) -> str | None:
    """Kill a process of a job after some seconds; return the fingerprint if it ended before."""
    with started(words) as (job, errors):
        try:
            return ended(job, errors, later)
        except subprocess.TimeoutExpired:
            ranks = ranks_of(job)
        if not ranks:
            return ended(job, errors, LIMIT)
        with contextlib.suppress(psutil.NoSuchProcess):
            draw.choice(ranks).kill()
        output, _ = job.communicate(timeout=LIMIT)
        _, alive = psutil.wait_procs(ranks, timeout=30)
        assert not alive, alive
        return fingerprint(output) if job.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("fit", "command"))
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--kills", type=int, default=100, help="per number of processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--python", default=sys.executable, help="has mpi4py, beside its mpiexec")
    options = parser.parse_args()
    mpi = Mpi(options.python)
    for processes in options.processes:
        draw = random.Random(f"{options.kind} {processes} {options.seed}")
        kills = ends = 0
        with tempfile.TemporaryDirectory() as parent:
            words = functools.partial(words_of, options.kind, mpi, processes)
            expected, seconds = whole(words(Path(parent, "whole")))
            while kills < options.kills:
                folder = Path(parent, str(ends))
                while (
                    found := lose(words(folder), draw.uniform(0.3, 1.3) * seconds, draw)
                ) is None:
                    kills += 1
                assert found == expected, (options.kind, processes, ends)
                ends += 1
        report = {"kind": options.kind, "processes": processes, "kills": kills, "ends": ends}
        print(json.dumps(report | {"undisturbed_s": round(seconds, 1)}), flush=True)


if __name__ == "__main__":
    main()
