"""Inject an exception at each instruction of two functions; none may stay the handled one."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from inject import NO_INSTRUCTIONS, count_instructions, run_injected


def _handles(iterator: Any) -> Any:
    for _ in range(2):
        try:
            next(iterator)
        except StopIteration as error:
            error.add_note("seen")
            continue
    with contextlib.suppress(StopIteration):
        next(iterator)
    try:
        next(iterator)
    except StopIteration:
        return [iterator]
    return None


def _handles_and_returns_nothing() -> None:
    try:
        next(iter(()))
    except StopIteration:
        return


def main() -> None:
    """Raise AssertionError if an exception is still handled."""
    for call in (lambda: _handles(iter(())), _handles_and_returns_nothing):
        if not (total := count_instructions(call)):
            sys.exit(NO_INSTRUCTIONS)
        for at in range(1, total + 1):
            run_injected(call, at)
            assert sys.exc_info()[1] is None


if __name__ == "__main__":
    main()
