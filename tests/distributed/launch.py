"""Starts the programs beside this file as ranks of an MPI job, each with a hard time limit."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
LIMIT = 240  # seconds; a job that hangs is killed and fails the test


@dataclass(frozen=True)
class Mpi:
    """An interpreter that has mpi4py, beside the launcher of its MPI."""

    python: str

    @property
    def launcher(self):
        return Path(self.python).parent / "mpiexec"

    @property
    def is_open(self):
        return (self.launcher.parent / "ompi_info").exists()


def _interpreters():
    """Where SAMEGRAD_TEST_MPI names some, each with another MPI, those; else this one."""
    given = os.environ.get("SAMEGRAD_TEST_MPI", "")
    return [Mpi(python) for python in (given.split(os.pathsep) if given else [sys.executable])]


def _why_not(mpi):
    if not mpi.launcher.exists():
        return f"{mpi.launcher} does not exist: pip install 'samegrad[mpi]'"
    tried = subprocess.run([mpi.python, "-c", "import mpi4py"], capture_output=True, check=False)
    return "there is no mpi4py: pip install 'samegrad[mpi]'" if tried.returncode else ""


def every_mpi():
    """Parameters of a test that runs with each MPI at hand."""
    return [
        pytest.param(mpi, id="openmpi" if mpi.is_open else "mpich", marks=_marks(mpi))
        for mpi in _interpreters()
    ]


def _marks(mpi):
    why = _why_not(mpi)
    return [pytest.mark.skip(reason=why)] if why else []


@dataclass(frozen=True)
class Ended:
    """How a job ended."""

    code: int
    out: str
    err: str

    @property
    def text(self):
        return self.out + self.err


class Running:
    """A job: a launcher with its ranks, all of which `stop` kills.

    Variables are those of the environment; one that is None is taken out of it.
    """

    def __init__(self, mpi, ranks, program, *args, **variables):
        options = ["--allow-run-as-root", "--oversubscribe"] if mpi.is_open else []
        environment = {
            **os.environ,
            "SAMEGRAD_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            **variables,
        }
        file = program if program == "-m" else PROGRAMS / program
        command = [mpi.launcher, *options, "-n", ranks, mpi.python, file, *args]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, start_new_session=True,
            env={name: str(value) for name, value in environment.items() if value is not None},
        )  # fmt: skip

    def end(self, limit=LIMIT):
        """Waits for it; a job that takes longer fails the test."""
        try:
            out, err = self.process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.stop()
            out, err = self.process.communicate()
            pytest.fail(f"the job hung for {limit} s:\n{out}\n{err}")
        return Ended(self.process.returncode, out, err)

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def run(mpi, ranks, program, *args, limit=LIMIT, **variables):
    """A whole job."""
    return Running(mpi, ranks, program, *args, **variables).end(limit)


@functools.cache
def run_alone(program, *args):
    """The program in one process, without a launcher; once with the same arguments."""
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / program), *map(str, args)],
        capture_output=True, text=True, check=False, timeout=LIMIT,
        env={**os.environ, "SAMEGRAD_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)
