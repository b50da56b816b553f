"""A command that several processes of an MPI job run together: the first one speaks for all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from samegrad.cli._stop import StopSignal
from samegrad.distribute import mpi
from samegrad.distribute._multi_worker import MultiWorkerMirroredStrategy


def strategy_of(replicas: int, split: str | None) -> Any:
    """That of as many replicas, which the processes of the job share.

    Args:
        replicas: Of all processes.
        split: How a batch is shared out; None: in chunks.

    Raises:
        ImportError: Several processes were started, and there is no mpi4py.
        ValueError: There are more processes than replicas, or wrong numbers.
    """
    return MultiWorkerMirroredStrategy(total_replicas=replicas, split=split or "chunks")


def is_first() -> bool:
    """Whether this process writes what all say and draw alike: logs, pictures, lines."""
    return mpi.rank() == 0


@contextlib.contextmanager
def only_first_speaks() -> Iterator[None]:
    """What the other processes print, which is the same, goes nowhere."""
    if is_first():
        yield
        return
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        yield


def shall_stop(stop: StopSignal) -> bool:
    """Whether one of the processes was asked to: all stop after the same step."""
    return mpi.any_process(stop.is_set)
