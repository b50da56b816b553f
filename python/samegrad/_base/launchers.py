"""Environment variables of process launchers."""

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
    """Launch of this process.

    Args:
        size: The number of processes; 1 without a launcher.
        rank: The rank of this process, from 0.
        launcher: The name of the launcher; empty without one.

    Attributes:
        size: How many processes there are; 1 if no launcher says it.
        rank: Of this one, from 0.
        launcher: Who says it; empty if nobody does.
    """

    size: int = 1
    rank: int = 0
    launcher: str = ""


def launched() -> Launch:
    """Return what the first launcher with variables tells."""
    for count, number, launcher in _VARIABLES:
        size, rank = os.environ.get(count, ""), os.environ.get(number, "")
        if size.isdigit():
            return Launch(int(size), int(rank) if rank.isdigit() else 0, launcher)
    return Launch()


def may_be_launched() -> bool:
    """Tell whether a launcher left a sign, though it may not tell the number of processes."""
    return any(name in os.environ for name in _HINTS)


__all__ = ["Launch", "launched", "may_be_launched"]
