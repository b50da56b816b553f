"""A pytest plugin: the tests in Keras's wheel run on samegrad.

    PYTHONPATH=tests/keras python -m pytest -p plugin -p no:cacheprovider \\
        -o python_files=*_test.py $(python -m plugin ops/core_test.py)

The wheel has its tests but not the conftest that they import; what they take from it is here.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest


def _skip_if_backend(backend: str, reason: str) -> Any:
    import keras

    return pytest.mark.skipif(keras.config.backend() == backend, reason=reason)


def folder() -> Path:
    """Where the tests lie."""
    spec = importlib.util.find_spec("keras")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "src"


def pytest_configure(config: Any) -> None:
    """Registers the backend before anything of Keras is imported."""
    from samegrad._keras import register

    register.load()
    conftest = types.ModuleType("conftest")
    conftest.skip_if_backend = _skip_if_backend  # type: ignore[attr-defined]
    sys.modules["conftest"] = conftest
    for mark in ("requires_trainable_backend", "multi_device"):
        config.addinivalue_line("markers", f"{mark}: of Keras's tests")


if __name__ == "__main__":
    print(*(folder() / name for name in sys.argv[1:]))
