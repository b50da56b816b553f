"""Nested tuples and dicts of values, and what is known of the values before they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from samegrad._tensor.spec import TensorSpec

Structure: TypeAlias = Any  # leaves, or tuples and dicts of structures
# Makes an element of its leaves: None for a single leaf, `tuple` itself for a flat tuple.
Packer: TypeAlias = "Callable[[Iterable[Any]], Structure] | None"


def leaves_of(structure: Structure) -> list[Any]:
    """The leaves from left to right. Lists are leaves: they stand for tensors."""
    if isinstance(structure, tuple):
        return [leaf for part in structure for leaf in leaves_of(part)]
    if isinstance(structure, Mapping):
        return [leaf for part in structure.values() for leaf in leaves_of(part)]
    return [structure]


def map_leaves(function: Callable[[Any], Any], structure: Structure) -> Structure:
    """The structure with function(leaf) for every leaf."""
    if isinstance(structure, tuple):
        parts = [map_leaves(function, part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, Mapping):
        return {name: map_leaves(function, part) for name, part in structure.items()}
    return function(structure)


def fill(template: Structure, leaves: Iterable[Any]) -> Structure:
    """The template with these leaves."""
    remaining: Iterator[Any] = iter(leaves)
    return map_leaves(lambda _: next(remaining), template)


def packer_of(template: Structure) -> Packer:
    """What makes an element with the template's structure of its leaves."""
    if not isinstance(template, tuple | Mapping):
        return None
    if type(template) is tuple and not any(isinstance(p, tuple | Mapping) for p in template):
        return tuple
    return lambda leaves: fill(template, leaves)


def with_rows(spec: TensorSpec, rows: int | None) -> TensorSpec:
    """The spec of a batch of such tensors."""
    return TensorSpec((rows, *spec.shape), spec.dtype)
