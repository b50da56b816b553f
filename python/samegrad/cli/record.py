"""`samegrad record PROGRAM.py`: run a program and record its steps."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import samegrad as tf
from samegrad.cli._program import become_main, read_program

RUNS_IN_JOBS = True  # all ranks print, and the others wait for one that fails
BAD_INPUT = (ValueError, tf.errors.FailedPreconditionError)


def run(
    program: str,
    arguments: Sequence[str] = (),
    output: str | None = None,
    detail: int | None = None,
    overwrite: bool = False,
) -> int:
    """Run a program as Python does, and record its steps.

    Args:
        program: Path of the program.
        arguments: The arguments of the program.
        output: Path of the new file; None: the name of the program with the ending ".sgrec".
        detail: The number of the step that is recorded with all its operations.
        overwrite: Replace files that exist.

    Returns:
        0, or 1 if the program raised an exception.

    Raises:
        CommandError: The program cannot be read.
        OSError: The file cannot be written.
        SystemExit: The program raised it.
    """
    path, source = os.path.abspath(program), read_program(program, "record")
    raised: BaseException | None = None
    try:
        with (
            tf.record_run(output or f"{Path(program).stem}.sgrec", detail, overwrite=overwrite),
            _as_main(program, arguments) as main,
        ):
            try:
                exec(compile(source, path, "exec", dont_inherit=True), vars(main))
            except BaseException as error:
                raised = error
                raise
    except Exception as error:
        if error is not raised:
            raise
        _show(error, path)
        return 1
    return 0


@contextlib.contextmanager
def _as_main(program: str, arguments: Sequence[str]) -> Iterator[ModuleType]:
    """Run a program inside as the main one."""
    before = sys.modules["__main__"], sys.argv, sys.path[0]
    try:
        yield become_main(program, arguments)
    finally:
        sys.modules["__main__"], sys.argv, sys.path[0] = before


def _show(error: Exception, path: str) -> None:
    """Print a traceback that begins in the program, by the hook of the process."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != path:
        frames = frames.tb_next
    sys.excepthook(type(error), error.with_traceback(frames), frames)
