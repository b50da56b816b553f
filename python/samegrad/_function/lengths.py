"""Sizes that one trace leaves open: `reduce_retracing`, and the traces that serve other lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samegrad import _core
from samegrad._base.tree import flatten

if TYPE_CHECKING:
    from samegrad._function.trace import TracedProgram

# Traces of one function that differ in what they took for granted of lengths.
_KEPT_TRACES = 32
_EVERY_AXIS = 0xFFFFFFFF


class RelaxedShapes:
    """Sizes of the arguments that changed from call to call: from then on they are lengths.

    Example:
        >>> import numpy as np
        >>> shapes = RelaxedShapes()
        >>> [shapes.lengths((np.zeros((2, n)),), {}) for n in (3, 3, 4, 3)]
        [[], [], [2], [2]]
    """

    def __init__(self) -> None:
        self._first: dict[Any, bytes] = {}
        self._lengths: dict[Any, list[int]] = {}

    def lengths(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int]:
        """Per array of a call, bits of the axes whose sizes have changed; empty: none has."""
        most = [_EVERY_AXIS] * len(flatten((args, kwargs)))
        call = _core.Arguments(args, kwargs, most)
        first = self._first.setdefault(call.key, call.lengths)
        known = self._lengths.get(call.key, [])
        if first == call.lengths:
            return known
        axes = known or [0] * len(most)
        for place, (array, axis) in enumerate(call.open):
            if first[8 * place : 8 * place + 8] != call.lengths[8 * place : 8 * place + 8]:
                axes[array] |= 1 << axis
        self._lengths[call.key] = axes
        return axes


class LengthTraces:
    """The traces of a function that serve several lengths, by all else that tells calls apart."""

    def __init__(self) -> None:
        self._traces: dict[Any, list[TracedProgram]] = {}

    def add(self, key: Any, program: TracedProgram) -> None:
        """Keep a trace; the one that was used longest ago goes when there are too many."""
        traces = self._traces.setdefault(key, [])
        traces.insert(0, program)
        del traces[_KEPT_TRACES:]
        if len(self._traces) > _KEPT_TRACES:
            self._traces.pop(next(iter(self._traces)))

    def program(self, key: Any, arguments: _core.Arguments) -> TracedProgram | None:
        """The program of one of the traces for the arguments; None: none serves their lengths."""
        traces = self._traces.get(key, [])
        for place, trace in enumerate(traces):
            made = trace.with_lengths(arguments)
            if made is not None:
                traces.insert(0, traces.pop(place))
                return made
        return None
