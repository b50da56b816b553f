"""What no step can do, as it needs values: the function around it is run by Python then."""

from __future__ import annotations

from samegrad import _core
from samegrad._context import state as _context


class ReadsData(BaseException):
    """Leaves a trace that came to data or text.

    It is no Exception, so that the program's handlers let it pass.
    """

    fixed = False  # whatever the numbers of examples are


class MakesVariable(ReadsData):
    """Leaves a trace that came to a variable made of values of the step.

    Python runs that one call, and the variable is there when the next one is traced.

    Args:
        refusal: What the error says where a call makes such a variable again.
    """

    def __init__(self, refusal: str) -> None:
        super().__init__()
        self.refusal = refusal


def leave_to_make_a_variable(refusal: str) -> None:
    """Called before a variable is made of what a trace computes.

    Raises:
        MakesVariable: A function is being traced.
        ValueError: Inside `Strategy.run`, or in a trace of samegrad's own.
    """
    if _context.current().tracing_function and not _context.inside_run():
        raise MakesVariable(refusal)
    raise ValueError(refusal)


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
