"""Exceptions at chosen bytecodes, and signals at random times."""

from __future__ import annotations

import ctypes
import dis
import enum
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import samegrad

NO_INSTRUCTIONS = "this Python shows traces no instructions"  # some releases of 3.13
_PACKAGE = os.path.dirname(samegrad.__file__)
# `inspect` makes errors of its own of what is raised in it.
_LEFT_OUT = (
    *(os.path.join(os.path.dirname(__file__), n) for n in ("inject.py", "long_interrupts")),
    inspect.__file__,
    enum.__file__,
)


_PUSH, _POP = dis.opmap["PUSH_EXC_INFO"], dis.opmap["POP_EXCEPT"]


def is_at_handler_border(frame: Any) -> bool:
    """Return True if the frame is about to begin or to end an exception handler.

    CPython checks no signal there: what a trace raises at such an instruction leaves the handled
    exception as the thread's, and later errors of the thread have it as their context.
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] in (_PUSH, _POP) or _POP in code[at + 2 : at + 3]


class _Injector:
    """Counts the instructions that run, in the program and below; raises before one of them."""

    def __init__(self, at: int, error: type[BaseException]) -> None:
        self.count, self.raised = 0, False
        self._at, self._error = at, error
        self.where = ""

    def of_call(self, frame: Any, event: str, argument: Any) -> Any:
        """What sys.settrace wants."""
        if frame.f_code.co_filename.startswith(_LEFT_OUT):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self._of_frame

    def _of_frame(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.count += 1
            if self._is_due() and not is_at_handler_border(frame):
                self.raised = True
                code = frame.f_code
                self.where = f"{os.path.relpath(code.co_filename, _PACKAGE)}:{frame.f_lineno}"
                raise self._error("injected")
        return self._of_frame

    def _is_due(self) -> bool:
        return not self.raised and 0 < self._at <= self.count


def run_injected(
    function: Callable[[], object], at: int, error: type[BaseException] = KeyboardInterrupt
) -> tuple[_Injector, BaseException | None]:
    """Calls the function, with an exception before its instruction number `at`, in whatever module.

    Args:
        function: What is called.
        at: From 1; 0 for no exception.
        error: Which.

    Returns:
        What was counted, and what the call raised.
    """
    injector = _Injector(at, error)
    raised: BaseException | None = None
    handled = sys.exc_info()[1]
    sys.settrace(injector.of_call)
    try:
        function()
    except BaseException as caught:  # whatever arrives is looked at
        raised = caught
    finally:
        sys.settrace(None)
    assert sys.exc_info()[1] is handled, f"an exception is still handled after {injector.where}"
    return injector, raised


def count_instructions(function: Callable[[], object]) -> int:
    """How many instructions the call runs."""
    injector, raised = run_injected(function, 0)
    if raised is not None:
        raise raised
    return injector.count


run_injected(lambda: None, 0)  # CPython 3.12 shows instructions from the second trace on


def run_signalled(function: Callable[[], object], delay: float) -> BaseException | None:
    """Calls the function, and waits until a signal comes, `delay` seconds from now."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    lost: list[BaseException] = []
    # The interpreter drops what is raised in a destructor of Python's own library.
    sys.unraisablehook = lambda seen: lost.append(seen.exc_value or KeyboardInterrupt())
    try:
        signal.setitimer(signal.ITIMER_REAL, delay)
        function()
        end = time.monotonic() + delay + 5.0
        while time.monotonic() < end:
            if lost:
                raise lost[0]
            time.sleep(0.0005)
        raise AssertionError("the signal was lost")
    except BaseException as caught:
        return caught
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = sys.__unraisablehook__


def build_starver(folder: Path) -> Path:
    """A library which, preloaded, lets chosen allocations of the engine fail."""
    library = folder / "starve.so"
    source = Path(__file__).with_name("starve.cpp")
    command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", source, "-o", library, "-ldl"]
    subprocess.run([str(part) for part in command], check=True)
    return library


def run_starved(function: Callable[[], object], at: int) -> tuple[int, bool, BaseException | None]:
    """Calls the function; its allocation number `at` fails, in whatever thread; 0 for none.

    Returns:
        How many allocations there were, whether one failed, and what the call raised.
    """
    library = ctypes.CDLL(None)
    library.starve_arm(ctypes.c_long(at))
    raised: BaseException | None = None
    try:
        function()
    except BaseException as caught:
        raised = caught
    seen = library.starve_disarm()
    return seen, bool(library.starve_failed()), raised
