"""Return of the C library's free heap memory to the system after tracing.

glibc keeps free pages between used ones, and a program's first run takes its memory elsewhere.
Without this, both count in the peak memory of the process.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

_PAUSE = 1.0  # seconds; walking a large heap takes milliseconds

# musl has none, nor have other systems.
_trim: Callable[[int], Any] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
_last = -_PAUSE


def give_back() -> None:
    """Give free pages back, at most once a second.

    Example:
        >>> give_back()
    """
    global _last
    now = time.monotonic()
    if _trim is None or now - _last < _PAUSE:
        return
    _last = now
    _trim(0)
