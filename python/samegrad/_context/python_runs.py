"""Fallback to Python for functions that need values, which no step has."""

from __future__ import annotations

from samegrad import _core
from samegrad._context import state as _context


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
