"""Two epochs of the tutorial's CNN on Fashion-MNIST, on many shapes of a job: one set of bits.

    python tests/distributed/real_data.py [--python OTHER/bin/python ...] [--limit EXAMPLES]

Loss and a hash of all weights are logged after every step; the logs must be equal byte for byte:
one replica, 8 replicas as 1x8, 2x4, 4x2 and 8x1 processes x replicas, and 3 processes of 1 replica.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from launch import Mpi

TIME = 3600  # seconds for one job


def log_of(command: list[str], folder: Path, replicas: int, batch: int, more: list[str]) -> bytes:
    """The log of a run with these replicas, each of which has such a share of a batch."""
    log = folder / "log"
    words = [
        *command, "-m", "samegrad", "fashion-mnist", "--epochs", "2", "--fingerprint",
        "--replicas", str(replicas), "--batch-size", str(batch), "--log", str(log),
        "--checkpoint-dir", str(folder / "checkpoints"), *more,
    ]  # fmt: skip
    environment = {**os.environ, "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    if len(command) > 1:  # the processes share the cores
        environment["SAMEGRAD_NUM_THREADS"] = "1"
    subprocess.run(words, check=True, timeout=TIME, env=environment, stdout=subprocess.DEVNULL)
    return log.read_bytes()


def launched(mpi: Mpi, processes: int) -> list[str]:
    """The beginning of a command that runs on so many processes."""
    options = ["--allow-run-as-root", "--oversubscribe"] if mpi.is_open else []
    return [str(mpi.launcher), *options, "-n", str(processes), mpi.python]


def compare(mpi: Mpi, limit: list[str]) -> bool:
    """Whether all jobs of an MPI have the logs of one process."""
    alone, good = [mpi.python], True
    for replicas, batch, sizes in ((8, 64, (2, 4, 8)), (3, 64, (3,))):
        counts = (1, 8) if replicas == 8 else (1,)
        jobs = [(alone, count, replicas * batch // count) for count in counts]
        jobs += [(launched(mpi, size), replicas, batch) for size in sizes]
        first = b""
        for command, count, share in jobs:
            begin = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                log = log_of(command, Path(folder), count, share, limit)
            first = first or log
            processes = int(command[-2]) if len(command) > 1 else 1
            digest = hashlib.sha256(log).hexdigest()[:16]
            same = "" if log == first else "  DIFFERS"
            print(
                f"{mpi.python}: {processes} processes, {count} replicas: "
                f"log {digest}, {time.monotonic() - begin:.0f} s{same}", flush=True,
            )  # fmt: skip
            good = good and log == first
    return good


def main() -> int:
    """Exit status 1 where a log differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--limit", help="of the examples, to try it out")
    options = parser.parse_args()
    limit = ["--limit", options.limit] if options.limit else []
    results = [compare(Mpi(python), limit) for python in options.python]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
