"""Training commands in an MPI job: the strategy, and decisions that all ranks share."""

from __future__ import annotations

from typing import Any

from samegrad.cli._stop import StopSignal
from samegrad.distribute import mpi
from samegrad.distribute._multi_worker import MultiWorkerMirroredStrategy


def strategy_of(replicas: int) -> Any:
    """Return a strategy whose replicas are distributed over the ranks of the job.

    Args:
        replicas: The number of replicas of all ranks together.

    Raises:
        ImportError: Several ranks were started, and mpi4py is not installed.
        ValueError: There are more ranks than replicas, or a number is invalid.
    """
    return MultiWorkerMirroredStrategy(total_replicas=replicas)


def is_first() -> bool:
    """Return True on the rank that writes logs and plots."""
    return mpi.rank() == 0


def shall_stop(stop: StopSignal) -> bool:
    """Return True on all ranks if one of them was asked to stop, after the same step."""
    return mpi.any_process(stop.is_set)
