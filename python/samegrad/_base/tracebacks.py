"""Tracebacks of user code: frames of samegrad, of Keras and of what they call are left out.

An entry point of the public surface filters in its handler and ends it with a bare `raise`, which
adds no frame. Frames of user code are never left out, and the error stays the same object.
"""

from __future__ import annotations

import builtins
import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from samegrad._base.user_files import PACKAGE

_Function = TypeVar("_Function", bound=Callable[..., Any])
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
# Libraries that samegrad and Keras call: their frames are left out where no user code called them.
_CALLED = ("numpy", "optree", "h5py", "ml_dtypes")
# IPython calls this attribute of an error to show it; pytest's plug-in looks for it.
COMPACT = "_render_traceback_"
_GROUP: Any = getattr(builtins, "BaseExceptionGroup", ())  # Python 3.10 has none


class _Settings:
    filtering = True


def enable_traceback_filtering() -> None:
    """Leave frames of samegrad and Keras out of tracebacks, as at the start.

    Example:
        >>> enable_traceback_filtering()
        >>> is_traceback_filtering_enabled()
        True
    """
    _Settings.filtering = True


def disable_traceback_filtering() -> None:
    """Show all frames in tracebacks from now on, those of samegrad and Keras as well.

    An error that was raised in terms of your call then shows its first cause. A report of a bug
    needs both. `keras.config.disable_traceback_filtering` does the same.

    Example:
        >>> disable_traceback_filtering()
        >>> is_traceback_filtering_enabled()
        False
        >>> enable_traceback_filtering()
    """
    _Settings.filtering = False


def is_traceback_filtering_enabled() -> bool:
    """Return whether frames of samegrad and Keras are left out of tracebacks.

    Returns:
        True unless `disable_traceback_filtering` was called last.

    Example:
        >>> is_traceback_filtering_enabled()
        True
    """
    return _Settings.filtering


def keep_user_frames(error: BaseException) -> None:
    """Leave internal frames out of the error's traceback, and out of those of its causes.

    Args:
        error: The error that is being handled; a bare `raise` has to follow.
    """
    if _Settings.filtering:
        _filter_chain(error)


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


class _Raising:
    """Inside, an entry point raises an error in the place of the one that it handles."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            return
        first = error.__traceback__
        if first and first.tb_next and first.tb_next.tb_frame is first.tb_frame:
            error.with_traceback(first.tb_next)  # the same error again
        keep_user_frames(error)


raising = _Raising()


class _Folders:
    """Folders of internal code.

    Attributes:
        own: Folders of samegrad, its doctor and Keras.
        called: Those of libraries that they call.
    """

    def __init__(self) -> None:
        self.own = (PACKAGE, *_folders_of("keras", "samegrad_doctor"))
        self.called = (*_folders_of(*_CALLED), "<frozen")

    def is_called(self, file: str) -> bool:
        """Return whether a file belongs to a library that samegrad and Keras call."""
        return file.startswith(self.called) or (
            file.startswith(_STANDARD_LIBRARY) and not any(part in file for part in _INSTALLED)
        )


def _folders_of(*packages: str) -> list[str]:
    files = [getattr(sys.modules.get(name), "__file__", None) for name in packages]
    return [os.path.dirname(file) + os.sep for file in files if file]


def _filter_chain(error: BaseException) -> None:
    folders, pending, done = _Folders(), [error], set[int]()
    causes = []
    while pending:
        error = pending.pop()
        if id(error) in done:
            continue
        done.add(id(error))
        trace, inside, called = _filtered(error.__traceback__, folders)
        error.with_traceback(trace)  # attributes of a frozen class cannot be set
        if called and ("IPython" in sys.modules or "pytest" in sys.modules):
            vars(error)[COMPACT] = _render_in_ipython
        inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if inner is not None:
            pending.append(inner)
            causes += [(error, inner)] if inside else []
        if isinstance(error, _GROUP):
            pending += error.exceptions
    for error, inner in causes:
        if inner.__traceback__ is None:  # it tells nothing about user code
            error.__cause__ = None  # which also suppresses the context


def _filtered(
    trace: types.TracebackType | None, folders: _Folders
) -> tuple[types.TracebackType | None, bool, bool]:
    """Return the user's frames, whether internal code raised, and whether it called user code."""
    kept: list[types.TracebackType] = []
    inside, called = True, False
    while trace is not None:
        code = trace.tb_frame.f_code
        file = code.co_filename
        if file.startswith(folders.own) or (inside and folders.is_called(file)):
            inside = True
        else:
            if inside and kept and _is_block(code, kept[-1].tb_frame.f_code):
                kept.pop()
            kept.append(trace)
            called, inside = called or inside, False
        trace = trace.tb_next
    found = None
    for entry in reversed(kept):
        found = types.TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found, inside, called


def _is_block(code: types.CodeType, outer: types.CodeType) -> bool:
    """Return whether AutoGraph made the code of a block of the outer function."""
    names = [getattr(each, "co_qualname", "") for each in (code, outer)]  # Python 3.10 has none
    return bool(names[0]) and names[0] == names[1] and code in outer.co_consts


def _render_in_ipython() -> list[str]:
    """Return what IPython shows: a line of each frame, unless another mode was chosen."""
    renderer: Any = sys.modules["IPython"].get_ipython().InteractiveTB
    error, mode = sys.last_value, renderer.mode
    try:
        if _Settings.filtering and mode == "Context":  # the mode at the start
            renderer.set_mode("Plain")
        trace = error.__traceback__ if error else None
        lines: list[str] = renderer.structured_traceback(type(error), error, trace)
    finally:
        renderer.set_mode(mode)
    return lines
