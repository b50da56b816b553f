"""Registration of samegrad as a backend of Keras.

Keras has no way to register a backend: the names of its own are in its source. So the modules
that choose one are served from here while Keras is imported: some whole (`served/`), some with the
few lines changed that `patches` lists. No file of Keras is changed.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from samegrad._base.keras_finder import chosen_backend
from samegrad._base.user_files import add_library
from samegrad._keras.line_tables import LineNumbers
from samegrad._keras.patches import PATCHES
from samegrad._keras.patching import patched

# Patches name the lines of one minor version.
VERSION = "3.15"
_SERVED = {
    "keras.src.backend": "backend.py",
    "keras.src.backend.tensorflow": "tensorflow.py",
    "keras.src.callbacks.backup_and_restore": "backup_and_restore.py",
    "keras.src.optimizers.optimizer": "optimizer.py",
    "keras.src.trainers.data_adapters.tf_dataset_adapter": "data_adapter.py",
}
_HERE = Path(__file__).parent
_lock = threading.RLock()
_FIRST = "import samegrad before keras"


class _PatchedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of Keras with its patches; tracebacks show the lines of Keras's file.

    Python keeps the bytecode, under a name that tells the patches, in the folder where it keeps
    that of this package.
    """

    def source_to_code(  # type: ignore[override]
        self, data: bytes, path: str, *, _optimization: int = -1
    ) -> CodeType:
        file = importlib.util.decode_source(data)
        source = patched(self.name, file, PATCHES[self.name])
        code = compile(source.text, path, "exec", dont_inherit=True, optimize=_optimization)
        assert isinstance(code, CodeType)
        return LineNumbers(source, file).moved(code)

    def get_data(self, path: str) -> bytes:
        return super().get_data(self._place(path))

    def set_data(self, path: str, data: Any, **mode: Any) -> None:
        super().set_data(self._place(path), data, **mode)

    def _place(self, path: str) -> str:
        if not path.endswith(tuple(importlib.machinery.BYTECODE_SUFFIXES)):
            return path
        folder = os.path.dirname(importlib.util.cache_from_source(__file__))
        _, _, kind = os.path.basename(path).partition(".")  # "cpython-311.pyc"
        rules = _rules() + repr(PATCHES[self.name]).encode()
        name = f"{self.name}.{importlib.util.source_hash(rules).hex()}.{kind}"
        return os.path.join(folder, name)


@functools.cache
def _rules() -> bytes:
    """The sources of what applies patches."""
    return b"".join((_HERE / name).read_bytes() for name in ("patching.py", "line_tables.py"))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of Keras that samegrad serves or patches."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname in _SERVED:
            return _served(fullname, path)
        if fullname not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        loader = _PatchedLoader(fullname, spec.origin)
        places = spec.submodule_search_locations
        return importlib.util.spec_from_file_location(
            fullname, spec.origin, loader=loader, submodule_search_locations=places
        )


def _served(fullname: str, path: Any) -> Any:
    original = importlib.machinery.PathFinder.find_spec(fullname, path)
    alias = fullname == "keras.src.backend.tensorflow"  # Its own modules need TensorFlow.
    places = None if original is None or alias else original.submodule_search_locations
    return importlib.util.spec_from_file_location(
        fullname,
        _HERE / "served" / _SERVED[fullname],
        submodule_search_locations=None if places is None else list(places),
    )


def _check_version() -> None:
    try:
        version = importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError as error:
        raise ImportError(
            f"[samegrad.keras] Keras {VERSION} is needed: got none; pip install "
            f"'keras~={VERSION}.0'."
        ) from error
    if version.split(".")[:2] != VERSION.split("."):
        raise ImportError(
            f"[samegrad.keras] Keras {VERSION} is needed: got {version}; pip install "
            f"'keras~={VERSION}.0'."
        )


def load() -> ModuleType:
    """Keras on samegrad's engine.

    Raises:
        ImportError: Keras is not installed, or is another minor version.
        RuntimeError: Keras was imported before, with another backend.

    Example:
        >>> load().config.backend()
        'samegrad'
    """
    prepare()
    with _without_collections():
        return importlib.import_module("keras")


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Collect no garbage: an import makes much that stays, which each collection goes through."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def prepare() -> None:
    """Let the next import of Keras take samegrad as its backend.

    Raises:
        ImportError: Keras is not installed, or is another minor version.
        RuntimeError: Keras was imported before, with another backend.
    """
    with _lock:
        if any(isinstance(finder, _Finder) for finder in sys.meta_path):
            return
        _check_free()
        _check_version()
        # Of patched functions the file has other lines: none may be rewritten from its source.
        found = importlib.machinery.PathFinder.find_spec("keras")
        if found is not None and found.origin is not None:
            add_library(os.path.dirname(found.origin))
        sys.meta_path.insert(0, _Finder())


def _check_free() -> None:
    if "keras" not in sys.modules:  # of an import that failed, modules without patches are left
        for name in [name for name in sys.modules if name.startswith("keras.")]:
            del sys.modules[name]
        return
    config = sys.modules.get("keras.src.backend.config")
    used = "another backend" if config is None else repr(config.backend())
    backend, place = chosen_backend()
    remedy = f"{'unset' if place.isupper() else 'change'} {place}" if backend else _FIRST
    raise RuntimeError(
        f"[samegrad.keras] Keras runs on one backend per process: got it imported with {used} "
        f"before; {remedy}, or set KERAS_BACKEND=samegrad."
    )
