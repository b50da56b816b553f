"""What this build is made of."""

from __future__ import annotations

import platform

import numpy as np

from samegrad import _core
from samegrad.distribute._job import library_name


def sysconfig() -> dict[str, str]:
    """The instruction-set variant in use and all versions.

    Example:
        >>> sysconfig()["samegrad"] == _core.__version__
        True
    """
    return {
        "samegrad": _core.__version__,
        "isa": _core.isa(),
        "isa_supported": ", ".join(_core.isa_supported()),
        "threads": str(_core.thread_count()),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "mpi": library_name(),
        **_core.build_info(),
    }
