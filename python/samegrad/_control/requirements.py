"""Conditions that a step must meet: looked at when it is over, since steps run without Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._context import state as _context
from samegrad._control.carried_values import as_predicate
from samegrad._tensor.tensor import Tensor


class Requirement:
    """A condition of a traced program, and the error if a step does not meet it.

    Whether it was met is kept in a variable, so that it may stand inside branches and loops and
    may differ between replicas.
    """

    def __init__(self, message: str, error: type[Exception], replicas: int) -> None:
        self._message, self._error, self._line = message, error, _core.user_line()
        with _context.init_scope():
            self._start = [Tensor(np.array(True)) for _ in range(replicas)]
            self._met = _core.StateVariable("requirement", self._start)

    def add(self, condition: Any) -> None:
        """Make the requirement part of the step that is being traced."""
        met = _core.ops.logical_and(
            _core.read_variable(self._met), as_predicate("assert", condition)
        )
        _core.write_variable(self._met, met)

    def take_error(self) -> Exception | None:
        """Return the error if a step did not meet it, once."""
        met = [bool(component) for component in self._met.components()]
        if all(met):
            return None
        self._met.set(self._start)
        where = ""
        if len(met) > 1:
            where = f"on replica {', '.join(str(i) for i, good in enumerate(met) if not good)}, "
        return self._error(
            f"{self._message} ({where}during the last step){_core.in_user_code(self._line)}"
        )


def add_requirement(condition: Any, message: str, error: type[Exception]) -> None:
    """Every step of the program that is being traced must meet the condition."""
    requirements = _context.current().requirements
    key = (_core.user_line(), message)  # the body of a loop is traced more than once
    if key not in requirements:
        requirements[key] = Requirement(message, error, _core.current_trace().replicas)
    requirements[key].add(condition)


def check_all(requirements: list[Requirement]) -> None:
    """Raise the first error of a step that did not meet a requirement."""
    errors = [error for r in requirements if (error := r.take_error()) is not None]
    if errors:
        raise errors[0]
