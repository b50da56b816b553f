"""Programs of users, run as Python runs them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from types import ModuleType

from samegrad.cli._errors import CommandError


def read_program(program: str, op_name: str) -> bytes:
    """Return the source of a program.

    Raises:
        CommandError: It cannot be read.
    """
    try:
        with io.open_code(os.path.abspath(program)) as file:
            return file.read()
    except OSError as error:
        raise CommandError(
            f"[{op_name}] a Python program is needed: got {program} ({error.strerror})."
        ) from error


def become_main(program: str, arguments: Sequence[str]) -> ModuleType:
    """Set `__main__`, `sys.argv` and `sys.path` as Python does for a program; return `__main__`."""
    path = os.path.abspath(program)
    main = ModuleType("__main__")
    main.__dict__.update(
        __annotations__={},
        __builtins__=__builtins__,
        __cached__=None,
        __file__=path,
        __loader__=SourceFileLoader("__main__", path),
    )
    sys.modules["__main__"] = main
    sys.argv = [program, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    return main
