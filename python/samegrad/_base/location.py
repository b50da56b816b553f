"""The user's line, for warnings and for the engine's `user_line`."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys
import warnings
from importlib.machinery import PathFinder

import numpy as np

from samegrad._base.user_files import cell_of, shown_line


def _folders() -> tuple[str, ...]:
    """Return the folders between user code and an op: samegrad, NumPy, Keras and its helpers."""
    # Not by `importlib.util.find_spec`, for which samegrad's finder would prepare Keras.
    specs = (PathFinder.find_spec(name) for name in ("keras", "optree"))
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
    name_cells()
    warnings.warn(message, category, stacklevel=level)


def in_user_code(file: str, line: int, function: str) -> str:
    """Return the end of an error's message: the line of user code that made the operation.

    Example:
        >>> print(in_user_code("train.py", 31, "step"))
        <BLANKLINE>
        in user code: File "train.py", line 31, in step
    """
    linecache.checkcache(file)
    source = linecache.getline(file, line).strip()
    place = shown_line(file, line) if cell_of(file) else f'File "{file}", line {line}'
    text = f"\nin user code: {place}, in {function}"
    return f"{text}\n    {source}" if source else text


_format = warnings.formatwarning


@functools.cache  # a formatter that user code sets afterwards may call this one
def _install_cell_names() -> None:
    global _format
    _format, warnings.formatwarning = warnings.formatwarning, _of_cell


def name_cells() -> None:
    """Make a notebook's warnings begin with "Cell In[4], line 2", not with a temporary file."""
    if "IPython" in sys.modules:
        _install_cell_names()


def _of_cell(
    message: Warning | str, category: type[Warning], filename: str, lineno: int,
    line: str | None = None,
) -> str:  # fmt: skip
    text = _format(message, category, filename, lineno, line)
    if cell_of(filename) is None:
        return text
    return text.replace(f"{filename}:{lineno}", shown_line(filename, lineno), 1)
