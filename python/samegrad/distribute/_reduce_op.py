"""Reductions of replicas' values."""

from __future__ import annotations

from samegrad._base.enums import Choice
from samegrad._base.shown import shown


class ReduceOp(Choice):
    """The reductions over replicas."""

    SUM = "SUM"
    MEAN = "MEAN"


def reduce_name(op: ReduceOp | str) -> str:
    """``"sum"`` or ``"mean"``.

    Raises:
        ValueError: Another reduction.
    """
    name = op.value if isinstance(op, ReduceOp) else str(op)
    if name.upper() not in ReduceOp.__members__:
        raise ValueError(f"[reduce] the reductions are SUM and MEAN: got {shown(op)}.")
    return name.lower()
