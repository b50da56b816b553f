"""Facts about the machine that bits may depend on."""

from __future__ import annotations

import platform


def processor() -> str:
    """Return the model of the processor.

    Example:
        >>> bool(processor())
        True
    """
    try:
        with open("/proc/cpuinfo") as file:
            models = (line.partition(":")[2].strip() for line in file if line[:10] == "model name")
            return next(models, platform.machine())
    except OSError:
        return platform.machine()
