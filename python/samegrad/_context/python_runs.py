"""Fallback to Python for functions that need values, which no step has."""

from __future__ import annotations

import weakref
from typing import Any

from samegrad import _core
from samegrad._context import state as _context

_forget: weakref.WeakSet[Any] = weakref.WeakSet()


def forgets_programs(function: Any) -> None:
    """Register a function that keeps programs, and forgets them by `forget_programs()`."""
    _forget.add(function)


def forget_programs() -> None:
    """Let all functions forget their programs, which are traced anew."""
    for function in list(_forget):
        function._forget_programs()


class ReadsData(BaseException):
    """Leaves a trace that reached data or strings.

    It does not derive from Exception, so that handlers of user code let it pass.
    """

    fixed = False  # whatever the numbers of examples are


def leave_trace(refusal: str) -> None:
    """Leave a trace before what only Python can do; do nothing in eager code.

    Args:
        refusal: What the error says where Python cannot run the function: inside `Strategy.run`.

    Raises:
        ReadsData: A function is being traced; it is run by Python then.
        RuntimeError: Inside `Strategy.run`, or in a trace of samegrad's own.
    """
    if not _core.tracing():
        return
    if _context.current().tracing_function and not _context.inside_run():
        raise ReadsData
    raise RuntimeError(refusal)
