"""The public modules samegrad.keras.…: each has the names of Keras's module and samegrad's own."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from samegrad._keras import register
from samegrad._keras.additions import ADDITIONS, SERIALIZED
from samegrad._keras.older.refusals import refusing
from samegrad._surface.missing_names import getattr_of

_ROOT = "samegrad.keras"
# Keras's names, and its names for older programs.
_PLACES = ("keras", "keras._tf_keras.keras")
# Keras's inner life.
_PRIVATE = frozenset({"src", "api"})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds samegrad.keras.… where Keras has a public module of that name."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not fullname.startswith(f"{_ROOT}.") or not _sources(fullname):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        fill(module.__name__)


def fill(name: str) -> None:
    """Give a module of samegrad.keras its names.

    Args:
        name: Of the module, which is being imported.

    Raises:
        ImportError: Keras is not installed, or is another minor version.
        RuntimeError: Keras was imported before, with another backend.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        register.load()
        sys.meta_path.insert(0, _Finder())  # before folders, which hold stubs alone
    module = sys.modules[name]
    names: dict[str, Any] = {}
    below = set()
    for source in _sources(name):
        for key, value in _public(importlib.import_module(source)).items():
            if isinstance(value, ModuleType):
                below.add(key)
            else:
                names[key] = value
    module.__dict__.update(names)
    module.__dict__["__all__"] = listed = sorted({*names, *below})
    module.__dict__["__dir__"] = lambda: listed
    if name == _ROOT:
        for added in SERIALIZED:
            importlib.import_module(added)
        module.__dict__["__version__"] = importlib.import_module("keras").__version__
    module.__dict__["__getattr__"] = refusing(name, getattr_of(name))


def _sources(name: str) -> list[str]:
    """The modules whose names it has; of two with one name, the later wins."""
    end = name.removeprefix(_ROOT)
    found = [place + end for place in _PLACES if _exists(place + end)]
    return [*found, *ADDITIONS.get(end[1:], ())]


def _public(module: ModuleType) -> dict[str, Any]:
    listed = getattr(module, "__all__", None) or [
        key for key in vars(module) if not key.startswith("_") and key not in _PRIVATE
    ]
    return {key: getattr(module, key) for key in listed}


def _exists(name: str) -> bool:
    if not _PRIVATE.isdisjoint(name.split(".")[1:3]) or "._" in name.replace("._tf_keras", ""):
        return False
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
