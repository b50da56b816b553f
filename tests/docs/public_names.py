"""Enumerate the documented objects behind samegrad's public names."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import types
from collections.abc import Iterator
from typing import Any

PACKAGE = "samegrad"


@dataclasses.dataclass(frozen=True)
class PublicName:
    """One public function, method, property or class of samegrad.

    Attributes:
        name: dotted path by which users reach it, as `tf.nn.relu`.
        kind: "function", "method", "property" or "class".
        value: the object itself, unwrapped.
        path: source file; empty for objects of the C++ module.
        line: line of its definition.
    """

    name: str
    kind: str
    value: Any
    path: str
    line: int

    @property
    def docstring(self) -> str:
        """The docstring without its indentation; empty if it has none."""
        return inspect.cleandoc(self.value.__doc__ or "")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that a docstring must explain."""
        if self.kind not in ("function", "method"):
            return ()
        try:
            names = tuple(inspect.signature(self.value).parameters)
        except (TypeError, ValueError):
            return ()
        names = tuple(name for name in names if name not in ("self", "cls"))
        return tuple(name for name in names if not name.startswith("_") and name != "name")

    @property
    def returns_a_value(self) -> bool:
        """Tell whether the annotation of the result is something other than None."""
        annotation = getattr(self.value, "__annotations__", {}).get("return")
        return annotation not in (None, "None", "NoReturn", type(None))


def public_names() -> list[PublicName]:
    """Return all public functions, classes and members, each object once."""
    found: dict[int, PublicName] = {}
    for module in public_modules():
        for name in sorted(module.__all__):
            for public in names_of(f"{module.__name__}.{name}", getattr(module, name)):
                found.setdefault(id(public.value), public)
    return sorted(found.values(), key=lambda public: public.name)


def public_modules() -> list[types.ModuleType]:
    """Return samegrad and its public modules, in breadth-first order."""
    found, waiting = [], [importlib.import_module(PACKAGE)]
    while waiting:
        module = waiting.pop(0)
        if module in found:
            continue
        found.append(module)
        for name in module.__all__:
            value = getattr(module, name)
            own = isinstance(value, types.ModuleType) and is_ours(value.__name__)
            if own and hasattr(value, "__all__"):
                waiting.append(value)
    return found


def is_ours(module: str | None) -> bool:
    """Tell whether a module is of samegrad."""
    return (module or "").split(".")[0] == PACKAGE


def names_of(path: str, value: Any) -> Iterator[PublicName]:
    """Return the class and its members, the function, or nothing for other values."""
    if inspect.isclass(value):
        if is_ours(value.__module__):
            yield _located(path, "class", value)
            yield from _members(path, value)
    elif callable(value) and is_ours(getattr(value, "__module__", None)):
        yield _located(path, "function", inspect.unwrap(value))


def _members(path: str, owner: type) -> Iterator[PublicName]:
    for base in owner.__mro__:
        if not is_ours(base.__module__):
            continue
        for name, member in vars(base).items():
            if name.startswith("_"):
                continue
            if isinstance(member, property):
                if member.fget is not None:
                    public = _located(f"{path}.{name}", "property", member.fget)
                    yield dataclasses.replace(public, value=member)
            elif isinstance(member, classmethod | staticmethod):
                yield _located(f"{path}.{name}", "method", inspect.unwrap(member.__func__))
            elif inspect.isroutine(member):
                yield _located(f"{path}.{name}", "method", inspect.unwrap(member))


def _located(path: str, kind: str, value: Any) -> PublicName:
    try:
        file, line = inspect.getsourcefile(value) or "", inspect.getsourcelines(value)[1]
    except (OSError, TypeError):
        file, line = "", 0
    return PublicName(path, kind, value, file, line)
