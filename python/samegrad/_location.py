"""Where the user's program begins: for warnings, and for the engine's `user_line`."""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

# NumPy asks for numbers on the user's behalf.
PACKAGES = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, np.__file__)
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the innermost line outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGES[0]):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
