"""Compare what processes read where each takes its rows of the same global batches."""

from __future__ import annotations

from samegrad import _core


def check_same_data(call: str, description: list[tuple[str, str]]) -> None:
    """Compare a dataset with those of the other processes, which all come here.

    Args:
        call: The public function, for messages.
        description: Names and values of what decides its elements and their order; empty where
            that cannot be known.

    Raises:
        ValueError: They differ, on all processes.
    """
    facts = [(f"dataset: {name}", value) for name, value in description]
    _core.world_agree([("call", call), *facts])


__all__ = ["check_same_data"]
