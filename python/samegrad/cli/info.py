"""`samegrad info`: facts about the installation and the machine, for bug reports."""

from __future__ import annotations

import importlib
import importlib.metadata
import json as json_format
import os
import platform
from typing import Any

import samegrad as tf
from samegrad import _core
from samegrad._base.launchers import launched
from samegrad._base.machine import processor
from samegrad._base.numerics import numerics

_PACKAGES = ("keras", "numpy", "mpi4py")
_VARIABLES = ("SAMEGRAD_", "KERAS_", "OMP_NUM_THREADS")


def run(json: bool) -> int:
    """Print the facts.

    Args:
        json: Print a JSON object instead of lines.

    Returns:
        The exit code 0.

    Example:
        >>> run(json=False)  # doctest: +ELLIPSIS
        samegrad:        ...
        0
    """
    found = facts()
    if json:
        print(json_format.dumps(found, indent=2))
        return 0
    for name, value in found.items():
        shown = ", ".join(f"{k}={v}" for k, v in value.items()) if name == "environment" else value
        print(f"{name.replace('_', ' ')}:".ljust(16), shown if shown != "" else "none")
    return 0


def facts() -> dict[str, Any]:
    """Return versions, machine, MPI and environment variables.

    Example:
        >>> facts()["samegrad"] == tf.version.VERSION
        True
    """
    system = tf.sysconfig()
    launch = launched()
    return {
        "samegrad": system["samegrad"],
        **numerics(),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        **{name: _version(name) for name in _PACKAGES},
        "platform": platform.platform(),
        "cpu": processor(),
        "isa": system["isa"],
        "isa_supported": system["isa_supported"],
        "threads": _core.thread_count(),
        "mpi": _mpi(),
        "launcher": f"{launch.launcher}, {launch.size} processes" if launch.launcher else "none",
        "jpeg": system["jpeg"],
        "png": system["png"],
        "environment": {
            name: value for name, value in sorted(os.environ.items()) if name.startswith(_VARIABLES)
        },
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _mpi() -> str:
    """Return the version of the MPI library, without initializing it, or why none is loaded."""
    try:
        rc = importlib.import_module("mpi4py").rc
        before, rc.initialize = rc.initialize, False
        try:
            library = importlib.import_module("mpi4py.MPI").Get_library_version()
        finally:
            rc.initialize = before
    except (ImportError, RuntimeError) as error:
        return f"none: {str(error).partition(chr(10))[0]}"
    return str(library).splitlines()[0].strip()
