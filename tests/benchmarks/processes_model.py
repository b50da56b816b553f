"""A model of latency and bandwidth for sums over processes: checked here, drawn for 1,024 ranks.

    python tests/benchmarks/processes_model.py                 the table for a network
    python tests/benchmarks/processes_model.py --measure       fits it to 2 to 8 local processes

Messages, bytes and memory of a rank are those of cpp/runtime/world_sums.cpp where sums are sent: a
piece is scattered, each rank adds up its part for all (in the order of the tree), and the parts
come back. The time is Hockney's: latency times messages plus bytes by bandwidth (R. Hockney, "The
communication challenge for MPP", 1994).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from processes import launcher

# As in cpp/runtime/world_sums.cpp.
ONE_ROUND, MESSAGE, LEAST, MOST, SLOTS = 16 << 10, 64 << 10, 1 << 20, 64 << 20, 4
RANKS = (2, 4, 8, 64, 1024)
SIZES = (4 << 10, 256 << 10, 4 << 20, 32 << 20)


@dataclass(frozen=True)
class Cost:
    """What one rank does for a sum.

    Attributes:
        messages: That it sends.
        sent: Bytes that it sends; it receives as many.
        added: Bytes that it reads to add them up.
        memory: Bytes that it takes besides gradients and weights.
    """

    messages: int
    sent: float
    added: float
    memory: float

    def seconds(self, latency: float, bandwidth: float) -> float:
        """The time on a network, in which a rank sends one message after the other.

        Args:
            latency: Seconds of a message.
            bandwidth: Bytes per second of a rank.
        """
        return latency * self.messages + self.sent / bandwidth


def piece_bytes(ranks: int) -> int:
    """What is scattered at a time, at most."""
    return min(max(MESSAGE * ranks, LEAST), MOST)


def cost(size: int, ranks: int, subtrees: int = 1) -> Cost:
    """Of the sum of so many bytes.

    Args:
        size: Bytes of the gradients.
        ranks: At least 2.
        subtrees: Number of subtrees of a rank: 1 to 2 * log2(leaves).
    """
    others = ranks - 1
    if size <= ONE_ROUND:
        # Everyone adds up everything.
        sent = others * size * subtrees
        return Cost(others * subtrees, sent, ranks * size * subtrees, size * (ranks + 1) * subtrees)
    piece = min(piece_bytes(ranks), size)
    pieces = -(-size // piece)
    part = size / ranks
    held = piece * (subtrees + 1) + piece / ranks * others * subtrees
    return Cost(
        messages=pieces * others * (subtrees + 1),
        sent=others * part * (subtrees + 1),
        added=part * ranks * subtrees,
        memory=min(pieces, SLOTS) * held,
    )


def table(size: int, latency: float, bandwidth: float, subtrees: int = 1) -> str:
    """What a rank does, in markdown, from 2 to 1,024 ranks."""
    rows = ["| ranks | messages | MB sent | MB summed | MB of memory | ms |", "|" + " ---: |" * 6]
    for ranks in RANKS:
        found = cost(size, ranks, subtrees)
        rows.append(
            f"| {ranks:,} | {found.messages:,} | {found.sent / 1e6:.1f} | {found.added / 1e6:.1f} "
            f"| {found.memory / 1e6:.1f} | {found.seconds(latency, bandwidth) * 1e3:.1f} |"
        )
    return "\n".join(rows)


def fit(found: list[dict[str, float]], cores: int) -> dict[str, Any]:
    """Latency and bandwidth that explain measured times best, relatively, and how well.

    Ranks that have no core of their own take turns: what all of them do goes through the cores.
    """
    rows = []
    for one in found:
        of_rank = cost(int(one["size"]), int(one["ranks"]))
        turns = max(1.0, one["ranks"] / cores)
        rows.append([1.0, of_rank.messages * turns, (of_rank.sent + of_rank.added) * turns])
    matrix = np.array(rows)
    times = np.array([one["seconds"] for one in found])
    weighted = matrix / times[:, None]
    parameters, *_ = np.linalg.lstsq(weighted, np.ones(len(times)), rcond=None)
    explained = matrix @ parameters
    return {
        "start_us": parameters[0] * 1e6,
        "latency_us": parameters[1] * 1e6,
        "gb_per_s": 1e-9 / parameters[2],
        "median_error": float(np.median(np.abs(explained / times - 1))),
        "measured": [
            {**one, "model": float(value)} for one, value in zip(found, explained, strict=True)
        ],
    }


JOB = """
import json, sys, time
import numpy as np
import samegrad as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
for size in map(int, sys.argv[1:]):
    with strategy.scope():
        each = tf.Variable(np.ones(size // 4, np.float32), synchronization=
            tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.SUM)
        total = tf.Variable(np.zeros(size // 4, np.float32))
    def of_replica():
        context = tf.distribute.get_replica_context()
        total.assign(context.all_reduce("sum", each.read_value()))
    step = tf.function(lambda: strategy.run(of_replica))
    times = []
    for _ in range(12):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    if strategy.cluster_resolver.task_id == 0:
        print(json.dumps({"size": size, "seconds": sorted(times[2:])[2]}), flush=True)
"""


def measure(python: str, ranks: int) -> list[dict[str, float]]:
    """Times of sums that are sent between local processes: of ten, the third best."""
    command = [*launcher(python, ranks), python, "-c", JOB, *map(str, SIZES)]
    environment = {**os.environ, "SAMEGRAD_MPI_SHARED": "0", "SAMEGRAD_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [{"ranks": ranks, **json.loads(line)} for line in done.stdout.splitlines()]


def main() -> int:
    """Prints the table, or what was measured as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=200e6, help="bytes of the gradients")
    parser.add_argument("--latency", type=float, default=2e-6, help="seconds of a message")
    parser.add_argument("--bandwidth", type=float, default=12.5e9, help="bytes/s of a rank")
    parser.add_argument("--subtrees", type=int, default=1, help="of a rank")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--python", default=sys.executable, help="has samegrad and mpi4py")
    options = parser.parse_args()
    if not options.measure:
        print(table(int(options.size), options.latency, options.bandwidth, options.subtrees))
        return 0
    found = [one for ranks in (2, 3, 4, 6, 8) for one in measure(options.python, ranks)]
    print(json.dumps(fit(found, os.cpu_count() or 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
