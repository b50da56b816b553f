"""Nested structures: lists, tuples, named tuples and dicts with anything at the leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from samegrad._shown import shown


def is_nested(value: Any) -> bool:
    """Whether the value is a structure rather than a leaf."""
    return isinstance(value, list | tuple | Mapping) and not getattr(value, "_is_leaf", False)


def sorted_keys(structure: Mapping[Any, Any]) -> list[Any]:
    """The keys of a dict in their order.

    Raises:
        TypeError: They have none.
    """
    try:
        return sorted(structure)
    except TypeError as error:
        raise TypeError(
            f"[nest] the keys of a dict must have an order: got {shown(list(structure))}; use keys "
            "of one type."
        ) from error


def flatten(structure: Any) -> list[Any]:
    """The leaves from left to right; dicts in the order of their sorted keys.

    Example:
        >>> flatten({"b": 1, "a": (2, [3])})
        [2, 3, 1]
    """
    if not is_nested(structure):
        return [structure]
    if isinstance(structure, Mapping):
        parts = [structure[key] for key in sorted_keys(structure)]
    else:
        parts = list(structure)
    return [leaf for part in parts for leaf in flatten(part)]


def map_structure(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """The structure with each leaf replaced by function(leaf, leaves of the others).

    Example:
        >>> map_structure(lambda x: x + 1, {"a": (1, 2)})
        {'a': (2, 3)}
    """
    if not is_nested(structure):
        return function(structure, *others)
    if isinstance(structure, Mapping):
        done = {
            key: map_structure(function, structure[key], *(other[key] for other in others))
            for key in sorted_keys(structure)
        }
        return {key: done[key] for key in structure}
    parts = [map_structure(function, *group) for group in zip(structure, *others, strict=True)]
    if hasattr(structure, "_fields"):
        return type(structure)(*parts)
    return type(structure)(parts)
