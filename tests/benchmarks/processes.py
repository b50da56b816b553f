"""samegrad on several processes beside PyTorch on gloo, and beside itself in one process.

    python tests/benchmarks/processes.py --peer-python PEERS/bin/python [--pairs 5]
    python tests/benchmarks/processes.py --only cnn --pairs 9

The two sides of a pair are whole jobs that run by turns. Rank 0 of a job tells its figures; its
processes share the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from workloads import GIVEN

PEERS = Path(__file__).resolve().parent / "peers.py"


@dataclass(frozen=True)
class Match:
    """Who runs against whom: arguments of peers.py, and how many processes ours has.

    Attributes:
        goal: The least factor by which ours is to be faster.
    """

    workload: str
    processes: int
    replicas: int
    other: str
    goal: float
    batch: int | None = None

    def arguments(self, backend: str) -> list[str]:
        batch = [] if self.batch is None else ["--batch", str(self.batch)]
        steps = ["2", "10"] if self.workload in GIVEN else ["8", "60"]  # warm up, then timed
        replicas = ["--replicas", str(self.replicas)]
        return [self.workload, backend, *replicas, *batch, "--steps", *steps]


MATCHES = {
    "given-50-2": Match("given_50", 2, 2, "ddp", 2.5),
    "given-50-4": Match("given_50", 4, 4, "ddp", 2.5),
    "given-25-8": Match("given_25", 8, 8, "ddp", 2.5),
    "cnn": Match("cnn", 2, 2, "samegrad", 0.9, batch=64),
    "cnn-ddp": Match("cnn", 2, 2, "ddp", 1, batch=64),
}


def launcher(python: str, processes: int) -> list[str]:
    """The mpiexec of a Python's environment."""
    found = Path(python).parent / "mpiexec"
    if not found.exists():
        sys.exit(f"processes.py: {found} does not exist: pip install 'samegrad[mpi]'")
    is_open = (found.parent / "ompi_info").exists()
    options = ["--allow-run-as-root", "--oversubscribe"] if is_open else []
    return [str(found), *options, "-n", str(processes)]


def run(command: Sequence[str]) -> dict[str, Any]:
    """The conditions of one job, and the figures of its last turn."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"processes.py: {' '.join(command)} failed:\n{done.stderr}")
    conditions, *_, last = map(json.loads, done.stdout.splitlines())
    return {**conditions, **last}


def sides_of(match: Match, python: str, peer_python: str) -> dict[str, list[str]]:
    """The command of each side."""
    one = ["--threads", str(match.processes)] if match.other == "samegrad" else []
    theirs = python if match.other == "samegrad" else peer_python
    ours = [*launcher(python, match.processes), python, str(PEERS), *match.arguments("mpi")]
    return {"ours": ours, "other": [theirs, str(PEERS), *match.arguments(match.other), *one]}


def summarize(ours: list[float], other: list[float], goal: float) -> dict[str, Any]:
    """Milliseconds of a step: medians, best, and the median of the factors of the pairs.

    Args:
        ours: Of each pair.
        other: Of each pair.
        goal: The least factor.
    """
    factor = median(b / a for a, b in zip(ours, other, strict=True))
    return {
        "ours_ms": round(median(ours), 2),
        "other_ms": round(median(other), 2),
        "ours_best_ms": round(min(ours), 2),
        "other_best_ms": round(min(other), 2),
        "factor": round(factor, 3),
        "goal": goal,
        "pairs": len(ours),
    }


def measure(match: Match, options: argparse.Namespace) -> dict[str, Any]:
    """Runs the pairs; who is first changes from pair to pair."""
    sides = sides_of(match, options.python, options.peer_python)
    found: dict[str, list[float]] = {side: [] for side in sides}
    figure = "cpu_ms" if options.cpu else "step_ms"
    for pair in range(options.pairs):
        for side in list(sides) if pair % 2 else list(sides)[::-1]:
            found[side].append(float(run(sides[side])[figure]))
        print(*(f"{side} {times[-1]:.2f} ms" for side, times in found.items()), file=sys.stderr)
    return summarize(found["ours"], found["other"], match.goal)


def main() -> int:
    """Prints a line of JSON per match."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default=sys.executable, help="has PyTorch")
    parser.add_argument("--python", default=sys.executable, help="has samegrad and mpi4py")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=MATCHES, default=list(MATCHES))
    parser.add_argument("--cpu", action="store_true", help="CPU time of rank 0: busy machines")
    options = parser.parse_args()
    os.environ["PYTHONUNBUFFERED"] = "1"
    for name in options.only:
        print(json.dumps({"match": name, **measure(MATCHES[name], options)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
