"""Nested structures: lists, tuples, named tuples and dicts, as tf.nest sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from samegrad._base.tree import flatten, is_nested
from samegrad._base.tree import map_structure as _map
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """The structure with each leaf replaced by func(leaf, leaves of the other structures).

    Args:
        func: Takes a leaf of each structure.
        *structure: One or more, of the same structure.
        **kwargs: `check_types` and `expand_composites`, ignored.

    Raises:
        ValueError: No structure is given, or they differ.

    Example:
        >>> map_structure(lambda a, b: a + b, {"x": (1, 2)}, {"x": (10, 20)})
        {'x': (11, 22)}
    """
    if not structure:
        raise ValueError("[nest.map_structure] at least one structure is needed: got none.")
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    return _map(func, *structure)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Checks that two structures are nested alike.

    Raises:
        ValueError: They are not.

    Example:
        >>> assert_same_structure([1, {"a": 2}], [3, {"a": 4}])
    """
    if _shape_of(nest1) != _shape_of(nest2):
        raise ValueError(
            f"[nest.assert_same_structure] structures must agree: got {nest1!r} and {nest2!r}."
        )


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """The structure with its leaves replaced by those of a list, in the order of `flatten`.

    Raises:
        ValueError: There are more or fewer than the structure has leaves.

    Example:
        >>> pack_sequence_as({"b": 0, "a": 0}, [1, 2])
        {'b': 2, 'a': 1}
    """
    leaves = list(flat_sequence)
    count = len(flatten(structure))
    if len(leaves) != count:
        raise ValueError(
            f"[nest.pack_sequence_as] the structure has {count} leaves: got {len(leaves)}."
        )
    each: Iterator[Any] = iter(leaves)
    return _map(lambda _: next(each), structure)


def _shape_of(structure: Any) -> Any:
    if not is_nested(structure):
        return None
    if isinstance(structure, Mapping):
        return {key: _shape_of(part) for key, part in structure.items()}
    return [_shape_of(part) for part in structure]


__all__ = [
    "assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
