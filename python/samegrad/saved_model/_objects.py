"""Objects that a saved model holds: those that own variables and functions, found from one root."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from samegrad._autodiff.variable import Variable, unwrapped
from samegrad._base.shown import shown
from samegrad._function.concrete import ConcreteFunction
from samegrad._function.function import BoundFunction, Function
from samegrad.saved_model._loaded import COLLECTIONS, Signatures, is_attribute
from samegrad.train._trackable import is_trackable
from samegrad.train.module import Module

_FUNCTIONS = (Function, BoundFunction, ConcreteFunction)
_DEEPEST = 64


class Entry:
    """Object of a model.

    Attributes:
        kind: "object", "variable", "function", "list", "tuple" or "dict".
        value: The object.
        children: The places of others, by name; of lists by position.
        collections: The places of a layer's variables, by the name of the list.
    """

    def __init__(self, kind: str, value: Any) -> None:
        self.kind, self.value = kind, value
        self.children: dict[str, int] = {}
        self.collections: dict[str, list[int]] = {}


class Objects:
    """All objects below a root, each once.

    Args:
        root: The object that is saved.

    Attributes:
        entries: The objects; the first one is the root.

    Raises:
        ValueError: The root owns neither variables nor functions, or is nested too deep.
    """

    def __init__(self, root: Any) -> None:
        if not _is_object(root) or isinstance(root, Variable):
            raise ValueError(
                "[saved_model.save] Expected an object of type `Trackable`, such as `tf.Module`, "
                f"`tf.train.Checkpoint` or a Keras model, for export: got {shown(root)} of type "
                f"{type(root).__name__}; assign functions and variables to attributes of one."
            )
        self.entries: list[Entry] = []
        self._places: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id comes twice
        self._add(root, 0)

    def place_of(self, value: Any) -> int | None:
        """Return the place of an object; None if it is not below the root."""
        return self._places.get(id(value))

    def functions(self) -> list[Any]:
        """Return the functions among the objects."""
        return [entry.value for entry in self.entries if entry.kind == "function"]

    def _add(self, value: Any, depth: int) -> int | None:
        value = unwrapped(value)
        kind = _kind_of(value)
        if kind is None:
            return None
        if depth > _DEEPEST:
            raise ValueError(
                f"[saved_model.save] objects may hang {_DEEPEST} levels below the root: got more; "
                "keep them in a flat list."
            )
        known = self._places.get(_identity(value))
        if known is not None:
            return known
        if kind in ("list", "tuple", "dict") and not _holds_any(value, 0):
            return None
        place = self._places[_identity(value)] = len(self.entries)
        self._kept.append(value)
        entry = Entry(kind, value)
        self.entries.append(entry)
        for name, part in _children(kind, value):
            found = self._add(part, depth + 1)
            if found is None:
                continue
            if kind == "object" and not is_attribute(name):
                raise ValueError(
                    f"[saved_model.save] a loaded object cannot have an attribute of that name: "
                    f"got {name!r} of {type(value).__name__}; rename it."
                )
            entry.children[name] = found
        if kind == "object" and _is_layer(value):
            for name in COLLECTIONS:
                places = [self._add(variable, depth + 1) for variable in getattr(value, name)]
                entry.collections[name] = [place for place in places if place is not None]
        return place


def _identity(value: Any) -> Any:
    """Return what tells a value from others: of a method, its function and its owner."""
    if isinstance(value, BoundFunction):
        return id(value._function), id(value._owner)
    return id(value)


def _kind_of(value: Any) -> str | None:
    if isinstance(value, Variable):
        return "variable"
    if isinstance(value, _FUNCTIONS) or hasattr(value, "_saved_calls"):
        return "function"
    if isinstance(value, Mapping):
        return None if isinstance(value, Signatures) else "dict"
    if isinstance(value, list | tuple):
        return "list" if isinstance(value, list) else "tuple"
    return "object" if _is_object(value) else None


def _is_object(value: Any) -> bool:
    if isinstance(value, type | Mapping | list | tuple):
        return False
    return is_trackable(value)


def _is_layer(value: Any) -> bool:
    return not isinstance(value, Module) and all(hasattr(value, name) for name in COLLECTIONS)


def _holds_any(value: Any, depth: int) -> bool:
    """Tell whether a container holds what is saved; plain values of Python are not."""
    parts = value.values() if isinstance(value, Mapping) else value
    for part in parts:
        kind = _kind_of(unwrapped(part))
        if kind is None or (kind in ("list", "tuple", "dict") and depth > _DEEPEST):
            continue
        if kind not in ("list", "tuple", "dict") or _holds_any(part, depth + 1):
            return True
    return False


def _children(kind: str, value: Any) -> Iterator[tuple[str, Any]]:
    if kind == "dict":
        for key, part in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"[saved_model.save] the keys of a dict of objects must be strings: got "
                    f"{key!r:.60}; rename it."
                )
            yield key, part
    elif kind in ("list", "tuple"):
        for index, part in enumerate(value):
            if _kind_of(unwrapped(part)) is None:
                raise ValueError(
                    "[saved_model.save] a list of objects holds variables, functions and further "
                    f"objects only: got {shown(part)} at place {index}; keep it elsewhere."
                )
            yield str(index), part
    elif kind == "object":
        yield from _parts(value)


def _parts(owner: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object, and the functions of its class."""
    own = dict(vars(owner)) if hasattr(owner, "__dict__") else {}
    if isinstance(owner, Module):
        found: Mapping[str, Any] = own
    else:
        found = dict(owner._checkpoint_state())
        found |= {name: part for name, part in own.items() if isinstance(part, _FUNCTIONS)}
    for name in sorted(found):
        yield name, found[name]
    for name in sorted(_methods(type(owner), lambda part: isinstance(part, Function))):
        if name not in found:
            yield name, getattr(owner, name)


def _methods(kind: type, wanted: Callable[[Any], bool]) -> set[str]:
    return {name for base in kind.__mro__ for name, part in vars(base).items() if wanted(part)}
