"""Nested structures: lists, tuples, named tuples and dicts, as tf.nest sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from samegrad._base.shown import shown as _shown
from samegrad._base.tree import structures as _structures
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of


def is_nested(seq: Any) -> bool:
    """Return whether a value is a list, a tuple, a dict, or another sequence but a string.

    Example:
        >>> is_nested([]), is_nested({"a": 1}.values()), is_nested("abc"), is_nested(None)
        (True, True, False, False)
    """
    return _structures.is_nested(seq)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves from left to right; dicts in the order of their sorted keys, None is a leaf.

    Args:
        structure: A structure, or a leaf.
        expand_composites: Ignored.

    Raises:
        TypeError: The keys of a dict cannot be sorted.

    Example:
        >>> flatten({"b": 1, "a": (2, [3, None])})
        [2, 3, None, 1]
    """
    return _structures.flatten(structure)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """The first structure with each leaf replaced by func(leaf, leaves of the other structures).

    Args:
        func: Takes a leaf of each structure.
        *structure: One or more, of the same structure.
        **kwargs: `check_types`, as `assert_same_structure` has it, and `expand_composites`,
            ignored.

    Raises:
        TypeError: Structures differ in their types, or func cannot be called.
        ValueError: No structure is given, they differ otherwise, or another option is given.

    Example:
        >>> map_structure(lambda a, b: a + b, {"x": (1, 2)}, {"x": (10, 20)})
        {'x': (11, 22)}
    """
    if not callable(func):
        raise TypeError(f"[nest.map_structure] func must be a function: got {_shown(func)}.")
    if not structure:
        raise ValueError("[nest.map_structure] at least one structure is needed: got none.")
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", None)
    if kwargs:
        raise ValueError(
            "[nest.map_structure] options are check_types and expand_composites: got "
            f"{', '.join(kwargs)}."
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    leaves = zip(*map(_structures.flatten, structure), strict=True)
    return _structures.fill(structure[0], [func(*each) for each in leaves])


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Checks that two structures are nested alike.

    Args:
        nest1: A structure.
        nest2: Another one.
        check_types: Whether they must have the same types and keys, too. Dicts of all types are
            alike, and so are lists, and named tuples of one name and the same fields.
        expand_composites: Ignored.

    Raises:
        TypeError: Their types differ.
        ValueError: They differ otherwise.

    Example:
        >>> assert_same_structure([1, {"a": 2}], [3, {"a": 4}])
        >>> assert_same_structure([1], (2,), check_types=False)
    """
    error = _difference(nest1, nest2, check_types)
    if error is not None:
        raise error(
            "[nest.assert_same_structure] structures must agree: got "
            f"{_shown(nest1)} and {_shown(nest2)}."
        )


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """The structure with its leaves replaced by those of a list, in the order of `flatten`.

    Args:
        structure: A structure, or a leaf.
        flat_sequence: The leaves.
        expand_composites: Ignored.

    Raises:
        TypeError: `flat_sequence` is no list of leaves.
        ValueError: There are more or fewer than the structure has leaves.

    Example:
        >>> pack_sequence_as({"b": 0, "a": 0}, [1, 2])
        {'b': 2, 'a': 1}
    """
    if not _structures.is_nested(flat_sequence):
        raise TypeError(
            f"[nest.pack_sequence_as] a list of leaves is needed: got {_shown(flat_sequence)}."
        )
    leaves = list(flat_sequence)
    count = len(_structures.flatten(structure))
    if len(leaves) != count:
        raise ValueError(
            f"[nest.pack_sequence_as] the structure has {count} leaves: got {len(leaves)}."
        )
    return _structures.fill(structure, leaves)


def _difference(a: Any, b: Any, check_types: bool) -> type[Exception] | None:
    """The error of two structures that are not alike."""
    nested = _structures.is_nested(a)
    if nested != _structures.is_nested(b):
        return ValueError
    if not nested:
        return None
    if check_types:
        if not _same_type(a, b):
            return TypeError
        if isinstance(a, Mapping) and _structures.keys(a) != _structures.keys(b):
            return ValueError
    own, other = _structures.parts(a), _structures.parts(b)
    if len(own) != len(other):
        return ValueError
    errors = (_difference(x, y, check_types) for x, y in zip(own, other, strict=True))
    return next((error for error in errors if error is not None), None)


def _same_type(a: Any, b: Any) -> bool:
    if type(a) is type(b):
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        fields = [getattr(each, "_fields", None) for each in (a, b)]
        return fields[0] is not None and fields[0] == fields[1] and _name_of(a) == _name_of(b)
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (list, Mapping))


def _name_of(value: Any) -> str:
    return type(value).__name__


__all__ = [
    "assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
