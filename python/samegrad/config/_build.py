"""Versions and variants of this build."""

from __future__ import annotations

import platform

import numpy as np

from samegrad import _core
from samegrad.distribute._job import library_name


def sysconfig() -> dict[str, str]:
    """Return the instruction-set variant in use and all versions.

    "jpeg" and "png" name the decoder of such files: the libraries that the engine was built with,
    or Pillow, which gives the same pixels in more time.

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
        **{what: version or "Pillow" for what, version in _core.build_info().items()},
    }
