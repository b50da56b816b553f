"""Nested tuples and dicts of values, and what is known of the values before they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from samegrad._base.tree import elements, is_element
from samegrad._tensor.spec import TensorSpec

Structure: TypeAlias = Any  # leaves, or tuples and dicts of structures
# Makes an element of its leaves: None for a single leaf, `tuple` itself for a flat tuple.
Packer: TypeAlias = "Callable[[Iterable[Any]], Structure] | None"


# Lists are leaves: they stand for tensors.
leaves_of, map_leaves, fill = elements.flatten, elements.map_structure, elements.fill


def packer_of(template: Structure) -> Packer:
    """What makes an element with the template's structure of its leaves."""
    if not is_element(template):
        return None
    if type(template) is tuple and not any(map(is_element, template)):
        return tuple
    return lambda leaves: fill(template, leaves)


def with_rows(spec: TensorSpec, rows: int | None) -> TensorSpec:
    """The spec of a batch of such tensors."""
    return TensorSpec((rows, *spec.shape), spec.dtype)
