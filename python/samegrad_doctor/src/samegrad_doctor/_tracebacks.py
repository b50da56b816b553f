"""Tracebacks of user code: frames of the doctor are left out."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def keep_user_frames(error: BaseException) -> None:
    """Leave frames of the doctor out of the error's traceback, and out of those of its causes.

    Args:
        error: The error that is being handled; a bare `raise` has to follow.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        cause.with_traceback(_filtered(cause.__traceback__))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def user_frames_only(function: _Function) -> _Function:
    """Return the function as an entry point: its errors show frames of user code."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            keep_user_frames(error)
            raise

    return call  # type: ignore[return-value]


def _filtered(trace: types.TracebackType | None) -> types.TracebackType | None:
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            kept.append(trace)
        trace = trace.tb_next
    found = None
    for entry in reversed(kept):
        found = types.TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found
