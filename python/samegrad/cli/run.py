"""`samegrad run PROGRAM.py`: run a TensorFlow program with samegrad in TensorFlow's place."""

from __future__ import annotations

import functools
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, TracebackType
from typing import Any

from samegrad.cli._program import become_main, read_program
from samegrad.tensorflow import install_as_tensorflow

RUNS_IN_JOBS = True  # all ranks print, and the others wait for one that fails
BAD_INPUT = (RuntimeError,)


def run(program: str, arguments: Sequence[str] = (), module: bool = False) -> Callable[[], int]:
    """Put samegrad into TensorFlow's place, and return the program.

    Args:
        program: Path of the program, or name of the module.
        arguments: The arguments of the program.
        module: Run a module by its name, as `python -m` does.

    Returns:
        A function that runs the program. Its errors and exits are those of the process.

    Raises:
        CommandError: The program cannot be read.
        RuntimeError: TensorFlow is loaded already.
    """
    source = None if module else read_program(program, "run")
    install_as_tensorflow()
    return functools.partial(_execute, program, source, arguments)


def _execute(program: str, source: bytes | None, arguments: Sequence[str]) -> int:
    """Run a program as the process's own: its errors reach Python itself."""
    try:
        if source is None:
            _prepare_for_module(arguments)
            runpy._run_module_as_main(program)  # type: ignore[attr-defined]  # as `python -m` does
        else:
            main = become_main(program, arguments)
            path = os.path.abspath(program)
            exec(compile(source, path, "exec", dont_inherit=True), vars(main))
    except (Exception, KeyboardInterrupt):
        sys.excepthook = functools.partial(_show, sys.excepthook)
        raise
    return 0


def _prepare_for_module(arguments: Sequence[str]) -> None:
    """Set `__main__`, `sys.argv` and `sys.path` as `python -m` does before it finds the module."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__.update(__annotations__={}, __builtins__=__builtins__)
    sys.argv = ["-m", *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()


def _show(
    hook: Callable[..., Any], kind: Any, error: BaseException, trace: TracebackType | None
) -> None:
    """Show an error without the frames of samegrad's command."""
    outer = trace
    while outer is not None and outer.tb_frame.f_code is not _execute.__code__:
        outer = outer.tb_next
    inner = trace if outer is None else outer.tb_next
    hook(kind, error.with_traceback(inner), inner)
