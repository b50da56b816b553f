"""Where in the user's program an operation is written, for messages."""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

# NumPy asks for numbers on the user's behalf.
_PACKAGES = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, np.__file__)
)


def user_line() -> str:
    """The innermost line outside this package and NumPy, e.g. ``"train.py:31"``.

    Example:
        >>> user_line().endswith(":1")
        True
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        if frame.f_back is None:
            break
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the innermost line outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES[0]):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
