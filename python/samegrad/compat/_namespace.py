"""Modules of version 1: samegrad's names, with the order of arguments that version 1 has."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from samegrad._base.tracebacks import user_frames_only
from samegrad._surface.boundary import guarded
from samegrad._surface.missing_names import look_up, message, names_of
from samegrad.compat._orders import MOVED, ORDERS, OTHER

_ROOT = "samegrad.compat.v1"
# Modules whose functions may have other arguments, and those of version 1 alone.
_MODULES = frozenset({
    "audio", "autograph", "bitwise", "config", "data", "debugging", "distribute", "dtypes",
    "errors", "experimental", "gfile", "image", "io", "linalg", "logging", "lookup", "math", "nn",
    "queue", "ragged", "random", "saved_model", "sets", "signal", "sparse", "strings", "summary",
    "train",
})  # fmt: skip
# Modules in which a function has the order of arguments of its name at the root.
_LIKE_ROOT = frozenset({"", "debugging", "linalg", "math", "nn"})


class Namespace(types.ModuleType):
    """A module whose names are looked up when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(_names(self._path()))
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = _resolved(self, name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted(_names(self._path()))

    def _path(self) -> str:
        return self.__name__.removeprefix(_ROOT).removeprefix(".")


# What modules of version 1 have themselves, by their paths.
_own: dict[str, dict[str, Any]] = {}
# Packages that TensorFlow wraps, and the names of version 1 for their modules.
_ABSL = {"app": "absl.app", "flags": "absl.flags"}


def add_own(path: str, found: Mapping[str, Any]) -> None:
    """Add functions and values that a module of version 1 has itself.

    Args:
        path: The module, "" for the root.
        found: The functions and values by their names.
    """
    home = ".".join([_ROOT, path]).rstrip(".")
    own = _own.setdefault(path, {})
    own.update({name: guarded(home, name, value) for name, value in found.items()})


def _submodule(path: str) -> Namespace:
    """Return a module of version 1, registered for `import`."""
    name = f"{_ROOT}.{path}"
    if name not in sys.modules:
        sys.modules[name] = Namespace(name, f"`tf.compat.v1.{path}`.")
    return sys.modules[name]  # type: ignore[return-value]


def _names(path: str) -> set[str]:
    home, rest = look_up(path)
    found = set() if rest else set(names_of(home))
    prefix = f"{path}." if path else ""
    found |= {key.removeprefix(prefix) for key in (*ORDERS, *MOVED) if _is_in(key, prefix)}
    found |= _own.get(path, {}).keys() | (_MODULES | _ABSL.keys() if not path else set())
    return {name for name in found if f"{prefix}{name}" not in OTHER}


def _is_in(key: str, prefix: str) -> bool:
    plain = "." not in key.removeprefix(prefix)
    return key.startswith(prefix) and plain and not look_up(MOVED.get(key, key))[1]


@user_frames_only
def _resolved(module: Namespace, name: str) -> Any:
    path = module._path()
    dotted = f"{path}.{name}" if path else name
    if not path and name in _MODULES:
        return _submodule(name)
    if name not in _names(path):
        hint = f"; version 1 has other arguments: use samegrad.{dotted}."
        text = message(module.__name__, name)
        if dotted in OTHER:
            text = f"module {module.__name__!r} has no attribute {name!r}{hint}"
        raise AttributeError(text, name=None, obj=module)
    if name in _own.get(path, {}):
        return _own[path][name]
    if not path and name in _ABSL:
        return importlib.import_module(_ABSL[name])
    target = MOVED.get(dotted, dotted)
    value = look_up(target)[0]
    order = ORDERS.get(dotted) or (ORDERS.get(name) if path in _LIKE_ROOT else None)
    order = order or (ORDERS.get(target) if target != dotted else None)
    return with_order(value, dotted, order) if order else value


def with_order(function: Callable[..., Any], name: str, order: str) -> Callable[..., Any]:
    """Return a function that takes the arguments of version 1.

    Args:
        function: The function of version 2.
        name: The name in version 1, for messages.
        order: The arguments of version 1, as `ORDERS` has them.

    Example:
        >>> subtract = with_order(lambda a, b: a - b, "subtract", "b -data a c:a")
        >>> subtract(1, None, 5), subtract(1, c=4)
        (4, 3)
    """
    parts = [part.lstrip("-").partition(":") for part in order.split()]
    names = [old for old, _, _ in parts]
    renamed = {old: new or old for old, _, new in parts}
    ignored = {part[1:] for part in order.split() if part.startswith("-")}

    @functools.wraps(function)
    def adapted(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(names):
            raise TypeError(
                f"[compat.v1.{name}] at most {len(names)} arguments are taken: got {len(args)}."
            )
        given: dict[str, Any] = {}
        for old, value in (*zip(names, args, strict=False), *kwargs.items()):
            new = renamed.get(old, old)
            if old in ignored or value is None:
                continue
            if new in given:
                raise TypeError(
                    f"[compat.v1.{name}] an argument is given once: got {new!r} twice, also by its "
                    f"older name {old!r}."
                )
            given[new] = value
        return function(**given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(old, kind, default=None) for old in names]
    adapted.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return adapted


__all__ = ["Namespace", "add_own", "with_order"]
