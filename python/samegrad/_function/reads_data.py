"""Functions that read data: their loop is Python's, and what they run on replicas is compiled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from samegrad._context.python_runs import NeedsPython, leave_trace

_KEPT = 32


def note_read(who: str) -> None:
    """Called wherever data is read: a trace would hold its first batch forever.

    Raises:
        NeedsPython: A function is being traced; it is run by Python then.
        RuntimeError: Data is read inside `Strategy.run`.
    """
    leave_trace(
        f"[{who}] data is read outside strategy.run, once for all replicas: get the batch there "
        "and give it to strategy.run in args."
    )


class CompiledRuns:
    """Cache of replica functions of a function that reads data, by function and signature.

    Functions defined anew in each call are the same if their code and what they use is the same.
    """

    def __init__(self) -> None:
        self._runs: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()

    def of(self, strategy: Any, fn: Any, make: Callable[[], Any]) -> Any:
        """Return the compiled form of fn under a strategy."""
        used = _used(fn)
        key = (id(strategy), *map(id, used))
        if key not in self._runs:
            # What is used is held, so that its identity stays its own.
            self._runs[key] = (make(), (strategy, used))
            if len(self._runs) > _KEPT:
                self._runs.popitem(last=False)
        self._runs.move_to_end(key)
        return self._runs[key][0]


def _used(fn: Any) -> tuple[Any, ...]:
    """Return the objects that decide what a function does."""
    owner = getattr(fn, "__self__", None)
    plain = getattr(fn, "__func__", fn)
    code = getattr(plain, "__code__", None)
    if code is None:
        return (fn,)
    cells = [cell.cell_contents for cell in plain.__closure__ or () if _filled(cell)]
    return (
        code,
        owner,
        *cells,
        *(plain.__defaults__ or ()),
        *(plain.__kwdefaults__ or {}).values(),
    )


def _filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


__all__ = ["CompiledRuns", "NeedsPython", "note_read"]
