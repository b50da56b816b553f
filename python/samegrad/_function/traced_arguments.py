"""Arguments of a program that is being traced: their values, and more that it finds outside."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from samegrad import _core
from samegrad._context import state as _context
from samegrad._tensor.per_replica import PerReplica, TracedPerReplica, check_parts
from samegrad._tensor.tensor import Tensor

if TYPE_CHECKING:
    from samegrad._autodiff.variable import Variable


class TracedArguments:
    """The arguments of a trace.

    Args:
        trace: Of the engine.
        args: What the function is called with.
        kwargs: The same by name.
        captured: The values per replica that the program found outside; all traces of one program
            add to them.
        note: Called with the tensor of a captured value and its parts.
        look: Whether the program may look at values.
    """

    def __init__(
        self,
        trace: _core.Trace,
        args: Any,
        kwargs: dict[str, Any],
        captured: list[PerReplica],
        note: Callable[[Tensor, PerReplica], None],
        look: bool,
    ) -> None:
        self._trace, self._args, self._kwargs = trace, args, kwargs
        self._captured, self._note, self._look = captured, note, look
        self._entered: list[TracedPerReplica] = []
        # True if the program takes parts of known sizes at places that follow from values.
        self.takes_parts = False
        # Variables that were created while the program was traced, by name.
        self.made: list[tuple[str, weakref.ref[Variable]]] = []
        if look:
            trace.let_evaluate(self._values())

    def _values(self) -> _core.Arguments:
        given = _core.Arguments(self._args, self._kwargs)
        return with_captured(given, self._captured[: len(self._entered)])

    def capture(self, value: PerReplica) -> TracedPerReplica:
        """Return what stands for a value that the program found outside: one more argument."""
        if not any(known is value for known in self._captured):
            check_parts(value._all_parts)
            self._captured.append(value)
        self.enter_captured()
        return next(
            entered
            for known, entered in zip(self._captured, self._entered, strict=True)
            if known is value
        )

    def enter_captured(self) -> None:
        """Make arguments of the captured values that this trace has not used."""
        for value in self._captured[len(self._entered) :]:
            # Another batch may have as many examples now, and others in the next call.
            whole = self._trace.argument(value._all_parts, own_symbol=True)
            self._note(whole, value)
            self._entered.append(TracedPerReplica(whole))
            if self._look:
                self._trace.let_evaluate(self._values())

    def initial_value(self, tensor: Tensor) -> Tensor:
        """Return what a tensor of the trace is on the first replica, for a variable to begin with.

        Raises:
            ValueError: It belongs to a branch or loop, or depends on arguments without values.
        """
        if _context.inside_run():
            tensor = _core.ops.collective_broadcast(tensor)
        given = _context.current().arguments_given
        return self._trace.initial_value(tensor, self._values(), given)


def with_captured(arguments: _core.Arguments, captured: list[PerReplica]) -> _core.Arguments:
    """Return the arguments of a call, followed by the values that its program found outside."""
    if not captured:
        return arguments
    return arguments.followed_by(_core.Arguments((tuple(captured),), {}))
