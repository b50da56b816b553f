"""Ctrl-C and SIGTERM as requests to stop after the current step."""

from __future__ import annotations

import contextlib
import os
import signal
from types import FrameType, TracebackType
from typing import Any

from samegrad._base.launchers import launched


class StopSignal:
    """Context manager: the first Ctrl-C or SIGTERM requests a stop, a second Ctrl-C interrupts.

    SIGTERM never interrupts: schedulers send it before they kill, some of them several times.

    Attributes:
        signal: The number of the signal that was received, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    @property
    def is_set(self) -> bool:
        """Return True if a stop was requested."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """Return the exit code of a process that a signal ends, as shells define it."""
        return 0 if self.signal is None else 128 + self.signal

    def __enter__(self) -> StopSignal:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.is_set and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not self.is_set:
            self.signal = number
            if launched().rank == 0:
                # Not print: the signal may arrive while the stream is being written to.
                with contextlib.suppress(OSError):
                    os.write(2, b"\nStopping after this step; Ctrl-C again stops at once.\n")
