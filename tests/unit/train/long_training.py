"""One long training that is killed now and then, beside one that nobody touches.

    python long_training.py --minutes 720 --save-s 60 --kill-s 600

Both save a checkpoint every `--save-s` seconds. When the time is up, both go on to one common
step. There they have to have the same weights, slots and order of data. The untouched one has to
have kept its memory. It is a process of its own, because it forks.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random

from long_kills import Training, state

import samegrad as tf

FOREVER = 1 << 62  # no training comes to this step
MOST_GROWTH = 8 << 20  # bytes that a process may grow by after the first tenth of its checkpoints


@dataclass
class Outcome:
    """What came of it.

    Attributes:
        kills: How often the disturbed training was killed.
        step: The step at which both were compared.
        saves: Checkpoints of the untouched training.
        resident: Its memory in bytes after a tenth of them, and at most from there on.
    """

    kills: int
    step: int
    saves: int
    resident: tuple[int, int]


def resident_bytes() -> int:
    """This process's memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def start(folder: Path, replicas: int, save_s: float, last: int, end: float) -> int:
    """Forks a training that ends at a step or a time, and logs its checkpoints."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
        saved_at = time.monotonic()

        def saves() -> bool:
            return time.monotonic() - saved_at >= save_s

        folder.mkdir(exist_ok=True)
        with Path(folder, "log").open("a") as log:
            for step in Training(replicas).train(folder, last, saves):
                saved_at = time.monotonic()
                print(step, resident_bytes(), file=log, flush=True)
                if saved_at >= end:
                    break
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


def finish(process: int) -> None:
    _, status = os.waitpid(process, 0)
    assert status == 0, status


def logged(folder: Path) -> list[tuple[int, int]]:
    """The step and memory at each checkpoint that there was time for."""
    log = Path(folder, "log")
    lines = log.read_text().splitlines() if log.exists() else []
    return [(int(step), int(size)) for step, size in map(str.split, lines)]


def run(parent: Path, minutes: float, save_s: float, kill_s: float, seed: int) -> Outcome:
    """Trains both, compares them, and returns what came of it."""
    random = Random(seed)
    whole, disturbed = parent / "whole", parent / "disturbed"
    end = time.monotonic() + 60 * minutes
    untouched = start(whole, 1, save_s, FOREVER, end)
    kills = 0
    while (left := end - time.monotonic()) > 0:
        process = start(disturbed, random.choice((1, 2, 3, 4)), save_s, FOREVER, end + 2 * save_s)
        time.sleep(min(left, kill_s * random.uniform(0.5, 1.5)))
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        assert os.WIFSIGNALED(status), status  # it did not end by itself before
        kills += 1
    finish(untouched)
    log = logged(whole)
    last = 1 + max(step for step, _ in log + logged(disturbed))
    for folder, replicas in ((whole, 1), (disturbed, 3)):
        finish(start(folder, replicas, save_s, last, end + FOREVER))
    assert state(whole) == state(disturbed)
    early = log[len(log) // 10][1]
    most = max(size for _, size in log[len(log) // 10 :])
    assert most - early <= MOST_GROWTH, (early, most)
    return Outcome(kills, last, len(log), (early, most))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=720)
    parser.add_argument("--save-s", type=float, default=60)
    parser.add_argument("--kill-s", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        print(run(Path(parent), given.minutes, given.save_s, given.kill_s, given.seed))
