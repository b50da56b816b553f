"""What no step can do, as it needs values: the function around it is run by Python then."""

from __future__ import annotations

from samegrad import _core
from samegrad._context import state as _context


class ReadsData(BaseException):
    """Leaves a trace that came to data or text.

    It is no Exception, so that the program's handlers let it pass.
    """

    fixed = False  # whatever the numbers of examples are


def leave_trace(refusal: str) -> None:
    """Called before what only Python can do; nothing happens in eager code.

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
