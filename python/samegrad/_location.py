"""Where in the user's program an operation is written, for messages."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def user_line() -> str:
    """The innermost line outside this package, e.g. ``"train.py:31"``.

    Example:
        >>> user_line().endswith(":1")
        True
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            break
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
