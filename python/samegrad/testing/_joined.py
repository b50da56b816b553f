"""The MPI job of this process, for checks that all its processes make together.

The engine is loaded only where a launcher has started several processes.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from samegrad._base.launchers import launched

_ENGINE = "samegrad.distribute._job"


def join() -> None:
    """Join the job in which this process was started, if there is one.

    Raises:
        ImportError: There is no MPI for it.
        RuntimeError: The loaded MPI is not the launcher's.
    """
    if launched().size > 1:
        importlib.import_module(_ENGINE).join()


def current() -> Any:
    """Return the job that this process has joined, or None."""
    engine: Any = sys.modules.get(_ENGINE)
    return None if engine is None else engine.current()


def met(name: str, value: Any) -> list[Any]:
    """Return the values of all processes, and wait for them."""
    job = current()
    if job is None or job.size == 1:
        return [value]
    found: list[Any] = sys.modules[_ENGINE].met(name, value)
    return found


__all__ = ["current", "join", "met"]
