"""Kills a random rank at a random moment, again and again.

    python tests/distributed/soak.py --kills 200 [--seed 1] [--width 4000] [--python PYTHON]

Each job has to end within a time limit, leave no process behind, and go on from its last checkpoint
with another number of processes, to the weights of a job that nobody disturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from launch import LIMIT, Mpi, Running, run_alone

TOTAL = 8  # replicas
PROCESSES = (2, 3, 4, 5)
STEPS = 40
IN_TIME = 60  # seconds from a kill to the end of the job; a hang would take far longer
STARTS = 20  # so many times as long as undisturbed a job may take until it saves
KILLS_OF_A_RUN = 4  # then it may go on to its end
EARLY = 0.25  # of the kills come while the job starts, the others while it steps and saves


@dataclass
class Told:
    """What came of it.

    Attributes:
        kills: Jobs that lost a rank.
        early: Of these, those that had not saved anything yet.
        ends: Runs that came to their end, all with the weights of an undisturbed one.
        slowest_s: From a kill to the end of its job, at most.
        sizes: How many jobs had so many processes.
    """

    kills: int = 0
    early: int = 0
    ends: int = 0
    slowest_s: float = 0.0
    sizes: Counter[int] = field(default_factory=Counter)


class Soak:
    """Jobs that lose ranks."""

    def __init__(self, mpi: Mpi, seed: int, steps: int = STEPS) -> None:
        self.mpi, self.steps = mpi, steps
        self.random = random.Random(seed)
        self.told = Told()
        os.environ["SAMEGRAD_TEST_STEPS"] = str(steps)
        with tempfile.TemporaryDirectory() as folder:
            self.weights = run_alone("resume.py", folder, TOTAL).out
        assert self.weights.startswith("weights")
        self.starting = 0.0
        self.starting, self.stepping = self._undisturbed()

    def _undisturbed(self) -> tuple[float, float]:
        """Seconds up to the first checkpoint and from there on, of a job that nobody disturbs."""
        with tempfile.TemporaryDirectory() as folder:
            begin = time.monotonic()
            job = self._start(Path(folder), 4)
            self._wait_for_save(Path(folder), job)
            saved = time.monotonic()
            self._check_end(job.end(), 4)
        return saved - begin, time.monotonic() - saved

    def _wait_for_save(self, folder: Path, job: Running) -> None:
        """Until the job saves, or ends.

        It imports and traces before it saves, which took a minute where the machine had no time
        for it: only what takes far longer than when nobody disturbed it hangs.
        """
        before = _last_save(folder)
        longest = max(LIMIT, STARTS * self.starting)
        limit = time.monotonic() + longest
        while _last_save(folder) == before and job.process.poll() is None:
            assert time.monotonic() < limit, f"the job has saved nothing for {longest:.0f} s"
            time.sleep(0.01)

    def run(self, kills: int) -> Told:
        """Kills so many ranks."""
        while self.told.kills < kills:
            with tempfile.TemporaryDirectory() as folder:
                self._run(Path(folder), min(kills - self.told.kills, KILLS_OF_A_RUN))
        return self.told

    def _run(self, folder: Path, kills: int) -> None:
        """A run that loses so many ranks, and comes to its end with the same weights."""
        size = 0
        for _ in range(kills):
            size = self._another(size)
            if not self._lose_one(folder, size):
                return
        size = self._another(size)
        self._check_end(self._start(folder, size).end(), size)
        self.told.ends += 1

    def _another(self, size: int) -> int:
        return self.random.choice([n for n in PROCESSES if n != size])

    def _start(self, folder: Path, size: int) -> Running:
        pids = folder / "pids"
        pids.mkdir(exist_ok=True)
        for old in pids.iterdir():
            old.unlink()
        self.told.sizes[size] += 1
        return Running(
            self.mpi, size, "resume.py", folder / "checkpoints", TOTAL, SAMEGRAD_TEST_PIDS=pids
        )

    def _lose_one(self, folder: Path, size: int) -> bool:
        """Whether the job lost a rank; else it had come to its end."""
        job = self._start(folder, size)
        if self.random.random() < EARLY:
            time.sleep(self.random.random() * self.starting)
        else:
            self._wait_for_save(folder, job)
            time.sleep(self.random.random() * self.stepping)
        pids = self._pids(folder, size)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.random.choice(pids), signal.SIGKILL)
        begin = time.monotonic()
        ended = job.end(IN_TIME)
        if ended.code == 0:
            self.stepping *= 0.9  # few steps were left, or the machine is less busy now
            self._check_end(ended, size)
            self.told.ends += 1
            return False
        self.told.slowest_s = max(self.told.slowest_s, time.monotonic() - begin)
        self.told.kills += 1
        self.told.early += not _last_save(folder)
        self._check_gone(pids)
        return True

    @staticmethod
    def _pids(folder: Path, size: int) -> list[int]:
        """Of the ranks, as soon as all have been started."""
        limit = time.monotonic() + IN_TIME
        while len(found := [int(path.name) for path in (folder / "pids").iterdir()]) < size:
            assert time.monotonic() < limit, f"{len(found)} of {size} ranks have begun"
            time.sleep(0.01)
        return found

    @staticmethod
    def _check_gone(pids: list[int]) -> None:
        limit = time.monotonic() + IN_TIME
        while left := [pid for pid in pids if _is_alive(pid)]:
            assert time.monotonic() < limit, f"the job has ended without its ranks {left}"
            time.sleep(0.05)

    def _check_end(self, ended: object, size: int) -> None:
        code, out = getattr(ended, "code", 1), getattr(ended, "out", "")
        assert code == 0, f"{size} ranks: {getattr(ended, 'text', '')}"
        assert out == self.weights * size, f"{size} ranks: {out}; one process: {self.weights}"


def _last_save(folder: Path) -> int:
    """When the folder of checkpoints was changed last; 0: there is none."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / "checkpoints").stat().st_mtime_ns
    return 0


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def main() -> int:
    """Prints what came of it as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--width", type=int, default=0, help="4000: weights in common memory")
    parser.add_argument("--python", default=sys.executable, help="has mpi4py, beside its mpiexec")
    options = parser.parse_args()
    os.environ["SAMEGRAD_TEST_WIDTH"] = str(options.width)
    if options.width:  # updates block by block, however few examples there are
        os.environ["SAMEGRAD_THRESHOLDS"] = "joined_examples=1"
    soak = Soak(Mpi(options.python), options.seed)
    while soak.told.kills < options.kills:
        soak.run(min(options.kills, soak.told.kills + 20))
        print(json.dumps(soak.told.__dict__), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
