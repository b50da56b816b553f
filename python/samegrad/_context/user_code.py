"""Functions of the program that samegrad calls while it traces: a layer's `call`, a step."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._base.user_files import PACKAGE, is_user_file
from samegrad._context import state as _context

Key = tuple[str, types.CodeType]  # code objects of different files may be equal
Converter = Callable[[Any], Any]

REASONS: dict[Key, str] = {}  # why functions could not be rewritten: `samegrad.autograph` says so
_converters: list[Converter] = []


def set_converter(convert: Converter) -> None:
    """Set the converter of control flow; `samegrad.autograph`, a higher layer, calls it."""
    _converters[:] = [convert]


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its control flow rewritten, where that is done to its caller.

    Example:
        >>> converted(len) is len
        True
    """
    if not (_context.current().converting and _core.tracing()):
        return function
    rewritten: Callable[..., Any] = _converters[0](function)
    return rewritten


def call_converted(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call the function with its control flow rewritten, and all that it calls likewise."""
    with _context.changed(converting=True):
        return converted(function)(*args, **kwargs)


def key_of(code: types.CodeType) -> Key:
    """Return the dictionary key of a code object."""
    return code.co_filename, code


def is_user_code(code: types.CodeType) -> bool:
    """Tell whether code belongs to the user, not to samegrad, Python or an installed library."""
    return is_user_file(code.co_filename)


def why_unchanged() -> str:
    """Return the reason for Python's control flow at the user's innermost line."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if frame is None:
        return "there is no function around it"
    code = frame.f_code
    if not _context.current().converting:
        return (
            "it becomes part of the step inside samegrad.function only (without autograph=False "
            "and do_not_convert), not in a bare strategy.run"
        )
    if key_of(code) in REASONS:
        return f"{code.co_name} could not be rewritten: {REASONS[key_of(code)]}"
    if not is_user_code(code):
        return f"{code.co_name} belongs to an installed library"
    return (
        f"{code.co_name} was not called by rewritten code, or this is a comprehension, whose "
        "conditions stay Python's"
    )
