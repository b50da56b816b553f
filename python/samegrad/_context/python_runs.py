"""Fallback to Python for functions that need values, which no step has."""

from __future__ import annotations

from typing import Any, NoReturn

from samegrad import _core
from samegrad._context import state as _context
from samegrad._context.weak import WeakIds

_keep_programs: WeakIds[None] = WeakIds()


def forgets_programs(function: Any) -> None:
    """Register a function that keeps programs, and forgets them by `forget_programs()`."""
    _keep_programs.set(function, None)


def forget_programs() -> None:
    """Let all functions forget their programs, which are traced anew."""
    for function in _keep_programs.living():
        function._forget_programs()


class NeedsPython(BaseException):
    """Leaves a trace that reached data, strings, or a size that follows from values.

    It does not derive from Exception, so that handlers of user code let it pass.

    Args:
        why: The reason, for `explain`.
        line: The line of user code, as "train.py:31"; empty if no line is the reason.
    """

    fixed = False  # whatever the numbers of examples are

    def __init__(self, why: str, line: str = "") -> None:
        super().__init__(why)
        self.why, self.line = why, line

    def without_frames(self) -> NeedsPython:
        """Return the reason alone, which keeps no frame of the trace alive."""
        self.__context__ = None
        return self.with_traceback(None)


def may_leave() -> bool:
    """Tell whether Python can run what is being traced: a function, or a step of one replica."""
    if not _core.tracing():
        return False
    if _context.inside_run():
        return _context.replica_count() == 1
    return _context.current().tracing_function


def leave_trace(refusal: str) -> None:
    """Leave a trace before what only Python can do; do nothing in eager code.

    Args:
        refusal: What the error says where Python cannot run the function: inside `Strategy.run`.

    Raises:
        NeedsPython: A function is being traced, or a step of one replica; Python runs it then.
        RuntimeError: A step of several replicas, or a trace of samegrad's own.
    """
    if _core.tracing():
        need_python(refusal, RuntimeError)


def need_python(refusal: str, kind: type[Exception]) -> NoReturn:
    """Leave a trace that lacks a value; raise an error of the class `kind` where it must not.

    Example:
        >>> need_python("[where] the number of indices is unknown", TypeError)
        Traceback (most recent call last):
        TypeError: [where] the number of indices is unknown
    """
    if may_leave():
        raise NeedsPython(refusal, _core.user_line())
    raise kind(refusal)
