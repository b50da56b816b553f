"""Agreement of the traces of one function for replicas with different numbers of examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad import _core
from samegrad._tensor.tensor import Tensor, convert_to_tensor


class Agreement:
    """Gradients of the first trace: where a later trace has none, the gradient is zero.

    The first trace is that of the replicas with the most examples. A replica without any computes
    no loss from the variables, yet takes part in the all-reduce of their gradients.
    """

    def __init__(self) -> None:
        self._traces = 0
        self._connected: dict[str, list[bool]] = {}

    def begin_trace(self) -> None:
        """The first or another trace begins."""
        self._traces += 1

    def gradients(self, found: Sequence[Any], sources: Sequence[Any]) -> list[Any]:
        """The gradients that a tape found, None where nothing connects, as all traces have them."""
        line = _core.user_line()
        known = self._connected.get(line, [])
        if self._traces == 1:
            before = known if len(known) == len(found) else [False] * len(found)
            self._connected[line] = [
                was or g is not None for was, g in zip(before, found, strict=True)
            ]
            return list(found)
        if len(known) != len(found):
            return list(found)
        return [
            zeros(source) if g is None and connected else g
            for g, source, connected in zip(found, sources, known, strict=True)
        ]


def zeros(source: Any) -> Tensor:
    """Return zeros in the shape of a source of gradients."""
    made: Tensor = _core.ops.full_like(convert_to_tensor(source), value=0.0)
    return made
