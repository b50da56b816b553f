"""MPI jobs for `assert_replica_invariant`: started by one process, which reads their results."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from samegrad._base.launchers import launched
from samegrad.testing._program_file import load_module, named_in
from samegrad.testing._training import OP, Array, Division, Program, TrainingError

_LIMIT = 600.0  # seconds of a job
_LINES = 8  # of a failed job's errors
States = list[dict[str, Array]]


def why_no_job(program: Program) -> str:
    """Return why no job can run a program; "" if it can."""
    if launched().size > 1:
        return f"this job has {launched().size} processes"
    if error := _error_of_mpi():
        return f"there is no MPI ({error}): pip install 'samegrad[mpi]', or load the site's MPI"
    if _launcher() is None:
        return "there is no mpiexec: pip install 'samegrad[mpi]', or load the site's MPI"
    try:
        _portable(program)
    except TrainingError as error:
        return str(error)
    return ""


def run_job(program: Program, divisions: Sequence[Division]) -> list[States]:
    """Train a program on the processes of one job; return the states of each division.

    Raises:
        TrainingError: The job failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder, "request"), Path(folder, "answer")
        request.write_bytes(pickle.dumps((_portable(program), list(divisions))))
        command = [
            str(_launcher()), "-n", str(divisions[0].processes),
            sys.executable, "-m", "samegrad.testing._jobs", str(request), str(answer),
        ]  # fmt: skip
        code, errors = _run(command)
        if code or not answer.exists():
            last = "\n".join(f"  {line}" for line in errors.splitlines()[-_LINES:])
            raise TrainingError(f"the job ended with status {code}:\n{last}")
        found: list[States] = pickle.loads(answer.read_bytes())
        return found


@functools.cache
def _error_of_mpi() -> str:
    """Return why another process cannot load MPI; "" if it can."""
    load = "import mpi4py; mpi4py.rc.initialize = False; import mpi4py.MPI"
    done = subprocess.run(
        [sys.executable, "-c", load], capture_output=True, text=True, errors="replace", check=False
    )
    said = [line for line in done.stderr.splitlines() if re.match(r"\w+Error: ", line)]
    return "".join(said[:1]) or "it ended by itself" if done.returncode else ""


def _launcher() -> str | None:
    beside = Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _run(command: list[str]) -> tuple[int, str]:
    paths = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),  # what this process imports, the others can
        # Open MPI: more processes than cores.
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    job = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True, env=environment,
    )  # fmt: skip
    try:
        text, _ = job.communicate(timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return 1, f"it did not end within {_LIMIT:g} s"
    finally:
        if job.poll() is None:  # also after Ctrl-C
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    return job.returncode, text


def _portable(program: Program) -> bytes:
    """Return the program for other processes, with the name of its function in place of it.

    Raises:
        TrainingError: The function is not at the top level of a file, or the data cannot be sent.
    """
    try:
        return pickle.dumps(replace(program, make=_name_of(program.make)))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise TrainingError(f"the data cannot be sent to other processes: {error}") from error


class _Named:
    """A function of a file, by its name.

    Args:
        path: The file.
        name: The function's name, with those of its classes.
    """

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name

    def __call__(self) -> Any:
        return named_in(load_module(Path(self.path), OP), self.name, OP)()


def _name_of(function: Any) -> Any:
    name = getattr(function, "__qualname__", "")
    try:
        path = inspect.getsourcefile(function)
    except TypeError:
        path = None
    if not name or "<" in name or path is None or not Path(path).is_file():
        raise TrainingError(
            "make must be a function at the top level of a file, which other processes can import"
        )
    return _Named(str(Path(path).resolve()), name)


def _work(request: str, answer: str) -> None:
    """Train the divisions of a request, as one process of a job."""
    from samegrad.distribute import mpi

    content, divisions = pickle.loads(Path(request).read_bytes())
    program: Program = pickle.loads(content)
    found = [program.states(division) for division in divisions]
    if mpi.rank() == 0:
        Path(answer).write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    from samegrad.testing import _jobs  # the module whose classes are pickled

    _jobs._work(*sys.argv[1:])
