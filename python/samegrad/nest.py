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

    Args:
        seq: Any value.

    Returns:
        True if it is nested.

    Example:
        >>> is_nested([]), is_nested({"a": 1}.values()), is_nested("abc"), is_nested(None)
        (True, True, False, False)
    """
    return _structures.is_nested(seq)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """List the leaves from left to right; dicts in the order of their sorted keys.

    Args:
        structure: Structure, or a leaf; None is a leaf.
        expand_composites: Ignored.

    Returns:
        List of leaves.

    Raises:
        TypeError: The keys of a dict cannot be sorted.

    Example:
        >>> flatten({"b": 1, "a": (2, [3, None])})
        [2, 3, None, 1]
    """
    return _structures.flatten(structure)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Apply a function to the corresponding leaves of structures.

    Args:
        func: Function of a leaf of each structure.
        *structure: One or more structures, nested alike.
        **kwargs: `check_types`, as for `assert_same_structure`, and `expand_composites`, ignored.

    Returns:
        The first structure with each leaf replaced by the result of func.

    Raises:
        TypeError: Structures differ in their types, or func is not callable.
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
    """Check that two structures are nested alike.

    Args:
        nest1: Structure.
        nest2: Another structure.
        check_types: If True, types and keys must be equal as well. Dicts of all types are alike,
            and so are lists, and named tuples of one name and the same fields.
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
    """Pack a list of leaves, in the order of `flatten`, into a structure.

    Args:
        structure: Structure, or a leaf.
        flat_sequence: Leaves.
        expand_composites: Ignored.

    Returns:
        The structure with its leaves replaced.

    Raises:
        TypeError: `flat_sequence` is not a list of leaves.
        ValueError: The numbers of leaves differ.

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
