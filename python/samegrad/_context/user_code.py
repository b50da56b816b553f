"""Functions of the program that samegrad calls while it traces: a layer's `call`, a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._context import state as _context


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its control flow rewritten, where that is done to its caller.

    Example:
        >>> converted(len) is len
        True
    """
    if not (_context.current().converting and _core.tracing()):
        return function
    from samegrad.autograph._convert import convert

    rewritten: Callable[..., Any] = convert(function)
    return rewritten


def call_converted(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Calls the function with its control flow rewritten, and all that it calls likewise."""
    with _context.changed(converting=True):
        return converted(function)(*args, **kwargs)
