"""The user's line, for warnings and for the engine's `user_line`."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import warnings

import numpy as np


def _folders() -> tuple[str, ...]:
    """Return the folders between user code and an op: samegrad, NumPy, Keras and its helpers."""
    specs = (importlib.util.find_spec(name) for name in ("keras", "optree"))
    found = (spec.origin for spec in specs if spec is not None and spec.origin is not None)
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packages = (own, *(os.path.dirname(os.path.abspath(file)) for file in (np.__file__, *found)))
    return (*(package + os.sep for package in packages), contextlib.__file__, functools.__file__)


# Those nearer to the engine than the user's program.
PACKAGES = _folders()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside of PACKAGES."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
