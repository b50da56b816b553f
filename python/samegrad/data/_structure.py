"""Nested tuples and dicts of values, and what is known of the values before they are there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from samegrad._base.dtypes import as_dtype
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


def signature_of(types: Structure, shapes: Structure, signature: Structure) -> Structure:
    """What a generator's elements are, in the newer spelling or the older one.

    Args:
        types: None, or dtypes in the structure of an element.
        shapes: None, or a shape for each of the types.
        signature: None, or TensorSpecs in the structure of an element.

    Returns:
        TensorSpecs, dtypes where shapes are not given, None if it is neither of the two.
    """
    if types is None and shapes is None:
        given = leaves_of(signature)
        return signature if all(isinstance(leaf, TensorSpec) for leaf in given) else None
    if types is None or signature is not None:
        return None
    return map_leaves(as_dtype, types) if shapes is None else _with_shapes(types, shapes)


def _with_shapes(types: Structure, shapes: Structure) -> Structure:
    """The specs of dtypes and shapes, which may be tuples themselves."""
    if not is_element(types):
        return TensorSpec(shapes, as_dtype(types))
    names = list(types) if isinstance(types, dict) else range(len(types))
    if not is_element(shapes) or len(shapes) != len(types):
        raise TypeError(
            f"[Dataset.from_generator] output_shapes must have the structure of output_types "
            f"{types!r}: got {shapes!r}."
        )
    parts = [_with_shapes(types[name], shapes[name]) for name in names]
    return dict(zip(names, parts, strict=True)) if isinstance(types, dict) else tuple(parts)
