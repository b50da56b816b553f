"""Which variables and layers an object holds in its attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


# Of these nothing is a part.
_ATOMS = frozenset({str, int, float, bool, type(None)})


def leaves(value: Any, kind: type[T]) -> list[T]:
    """The objects of a class in nested lists, tuples and dicts.

    Example:
        >>> leaves({"a": [1, "x"], "b": 2}, int)
        [1, 2]
    """
    found: list[T] = []
    _collect(value, kind, found)
    return found


def _collect(value: Any, kind: type[T], found: list[T]) -> None:
    if isinstance(value, kind):
        found.append(value)
    elif type(value) in _ATOMS:
        return
    elif isinstance(value, Mapping):
        for part in value.values():
            _collect(part, kind, found)
    elif isinstance(value, list | tuple):
        for part in value:
            _collect(part, kind, found)


def unique(items: Iterable[T]) -> list[T]:
    """The objects in order, each once.

    Example:
        >>> unique([True, True, False])
        [True, False]
    """
    return list({id(item): item for item in items}.values())


def trackable_parts(value: Any, kinds: tuple[type, ...]) -> Any:
    """The value with only the objects of some classes left, in dicts; None if there are none.

    Example:
        >>> trackable_parts([1, {"a": "x", "b": 2}], (str,))
        {'1': {'a': 'x'}}
    """
    if isinstance(value, kinds):
        return value
    if isinstance(value, list | tuple):
        items: Iterable[tuple[Any, Any]] = enumerate(value)
    elif isinstance(value, Mapping):
        items = value.items()
    else:
        return None
    parts = {str(name): trackable_parts(part, kinds) for name, part in items}
    return {name: part for name, part in parts.items() if part is not None} or None
