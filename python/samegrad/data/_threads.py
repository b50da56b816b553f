"""Number of threads that run a dataset's function."""

from __future__ import annotations

import os

_LONG_SECONDS = 0.5e-3  # of a block of elements that is worth a second thread
_WINDOW = 8  # blocks of elements
_WINDOW_SECONDS = 0.2
_GAIN = 0.8


def threads_of(calls: int) -> int:
    """Return the number of threads; calls < 0: as many as there are cores, at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(calls, cores or 1) if calls >= 0 else min(8, cores or 1))


class Threads:
    """Controller of the number of threads, by their measured gain.

    Python's threads hand one lock to and fro, which takes some ten microseconds each time. Blocks
    that are made quickly are made in less time by the consumer itself. Others are tried with all
    threads, which stay if that is faster. Functions that keep the lock get one thread.

    Args:
        most: How many there may be.
        tuned: Whether fewer may be better; else there are always `most`.

    Attributes:
        now: How many there should be. 0: the consumer makes the elements.
    """

    def __init__(self, most: int, tuned: bool) -> None:
        self.most, self._tuned = most, tuned
        self.now = 0 if tuned else most
        self._seconds: list[float] = []
        self._alone = 0.0  # seconds of an element by one thread
        self._passed, self._patience = 0, 4  # windows before another trial

    def note(self, seconds: float, size: int = 1) -> None:
        """One thread has taken so long for a block of elements."""
        if not self._tuned:
            return
        self._seconds.append(seconds / size)
        if len(self._seconds) < _WINDOW and sum(self._seconds) < _WINDOW_SECONDS:
            return
        # Interrupted ones, and the first ones, take longer than they do otherwise.
        usual = sorted(self._seconds)[len(self._seconds) // 4]
        self._seconds.clear()
        is_long = usual * size > _LONG_SECONDS
        fewer = 1 if is_long else 0
        if self.now <= 1:
            self._passed -= 1
            is_tried = is_long and self._passed < 0
            self._alone, self.now = usual, self.most if is_tried else fewer
        elif not is_long or usual / self.now > _GAIN * self._alone:
            self.now = fewer
            self._passed = self._patience
            self._patience *= 2
