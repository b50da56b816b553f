"""What the launchers of processes say in the variables of the environment."""

from __future__ import annotations

import os
from typing import NamedTuple

# Those of how many processes there are and which one this is, and whose they are. A launcher's own
# come before those of Slurm, under which it may run.
_VARIABLES = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "Open MPI's mpirun"),
    ("PMI_SIZE", "PMI_RANK", "mpirun"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun"),
)
_HINTS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


class Launch(NamedTuple):
    """How this process was started.

    Attributes:
        size: How many processes there are; 1 if no launcher says it.
        rank: Of this one, from 0.
        launcher: Who says it; empty if nobody does.
    """

    size: int = 1
    rank: int = 0
    launcher: str = ""


def launched() -> Launch:
    """What the first launcher says of which there are variables."""
    for count, number, launcher in _VARIABLES:
        size, rank = os.environ.get(count, ""), os.environ.get(number, "")
        if size.isdigit():
            return Launch(int(size), int(rank) if rank.isdigit() else 0, launcher)
    return Launch()


def may_be_launched() -> bool:
    """Whether there is a sign of a launcher, though it may not say how many processes there are."""
    return any(name in os.environ for name in _HINTS)


__all__ = ["Launch", "launched", "may_be_launched"]
