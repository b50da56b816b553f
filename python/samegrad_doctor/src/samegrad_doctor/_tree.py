"""Nested structures of arrays: lists, tuples and dicts, dicts in the order of their sorted keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def flatten(structure: Any) -> list[Any]:
    """Return the leaves from left to right.

    Example:
        >>> flatten({"b": 1, "a": (2, [3])})
        [2, 3, 1]
    """
    if not isinstance(structure, list | tuple | Mapping):
        return [structure]
    return [leaf for child in _children(structure) for leaf in flatten(child)]


def map_structure(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """Return the structure with each leaf replaced by function(leaf, leaves of the others).

    Example:
        >>> map_structure(lambda x: x + 1, {"a": (1, 2)})
        {'a': (2, 3)}
    """
    if not isinstance(structure, list | tuple | Mapping):
        return function(structure, *others)
    groups = zip(*map(_children, (structure, *others)), strict=True)
    children = [map_structure(function, *group) for group in groups]
    if isinstance(structure, Mapping):
        values = dict(zip(sorted(structure), children, strict=True))
        return {key: values[key] for key in structure}
    kind = type(structure)
    return kind(*children) if hasattr(kind, "_fields") else kind(children)


def _children(structure: Any) -> list[Any]:
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    return list(structure)
