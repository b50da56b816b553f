"""Choice of the backend at the first import of Keras.

`import samegrad` puts a finder into `sys.meta_path`. It loads nothing until a program imports
Keras, and it leaves the import alone where the user chose another backend, or where only tools of
samegrad are loaded: the doctor, the pytest plugin, `samegrad.testing`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

NAME = "samegrad"
# Keras writes this name into a new keras.json, so there it is not a choice.
_DEFAULT = "tensorflow"


class KerasFinder:
    """Prepare samegrad as the backend when Keras is imported; find nothing itself.

    Attributes:
        stands_for_tensorflow: Whether `import tensorflow` gives samegrad in this process.
    """

    stands_for_tensorflow = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Register samegrad's changes of Keras before other finders find it."""
        if fullname == "keras" and self._is_wanted():
            importlib.import_module("samegrad._keras.register").prepare()

    def _is_wanted(self) -> bool:
        backend, _ = chosen_backend()
        if self.stands_for_tensorflow:
            return backend in (None, NAME, _DEFAULT)
        if backend is not None:
            return backend == NAME
        return "samegrad._core" in sys.modules or _is_imported_by_a_program()


finder = KerasFinder()


def install() -> None:
    """Put the finder before those of other packages."""
    if finder not in sys.meta_path:
        sys.meta_path.insert(0, finder)


def chosen_backend() -> tuple[str | None, str]:
    """Return the backend that the user chose for Keras and the place of the choice.

    Example:
        >>> from unittest import mock
        >>> with mock.patch.dict("os.environ", KERAS_BACKEND="jax"):
        ...     chosen_backend()
        ('jax', 'KERAS_BACKEND')
    """
    named = os.environ.get("KERAS_BACKEND")
    if named:
        return named, "KERAS_BACKEND"
    import json  # not with every import of samegrad

    file = os.path.join(_folder(), "keras.json")
    try:
        with open(file, encoding="utf-8") as opened:
            backend = json.load(opened).get("backend")
    except (OSError, ValueError, AttributeError):
        return None, file
    return (backend if isinstance(backend, str) and backend != _DEFAULT else None), file


def _folder() -> str:
    """Return the folder of Keras's settings, as Keras finds it."""
    home = os.path.expanduser("~")
    usual = os.path.join(home if os.access(home, os.W_OK) else "/tmp", ".keras")
    return os.environ.get("KERAS_HOME") or usual


def _is_imported_by_a_program() -> bool:
    """Tell whether code outside of samegrad has the package under a name.

    `import samegrad.testing` binds the name `samegrad` as well, so that name alone counts only
    while `samegrad.testing` is not loaded.
    """
    package, tools = sys.modules[NAME], "samegrad.testing" in sys.modules
    return any(
        value is package and not (tools and name == NAME)
        for space in _namespaces()
        for name, value in list(space.items())
    )


def _namespaces() -> Iterator[Mapping[str, Any]]:
    """Yield the variables of the callers and of all modules, without samegrad's own."""
    frame = sys._getframe(1)
    while frame is not None:
        if not _is_internal(frame.f_globals.get("__name__")):
            yield frame.f_globals
            yield frame.f_locals
        frame = frame.f_back  # type: ignore[assignment]
    for name, module in list(sys.modules.items()):
        if not _is_internal(name):
            yield getattr(module, "__dict__", {})


def _is_internal(module: Any) -> bool:
    return str(module).partition(".")[0] in (NAME, "importlib")


__all__ = ["KerasFinder", "chosen_backend", "finder", "install"]
