"""The one walk over nested structures: lists, tuples, dicts, with anything at the leaves.

What is a structure differs by place: tf.nest goes into more types than arguments of functions have
structure, and datasets take lists for tensors. The walk is the same (`Walk`): dicts in the order of
their sorted keys, None is a leaf, and what is rebuilt has the type that it had.

Written by hand: optree, Keras's choice, takes 0.1 s to import, also where no engine is wanted
(`samegrad.testing`); it keeps other orders (OrderedDict by insertion) and knows no rule by place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from typing import Any

from samegrad._base.shown import shown

_KINDS = (list, tuple, Mapping)
MAX_AXES = 64  # of NumPy's arrays
_ROWS = (list, tuple)  # of these types, most structures need no look at the abstract classes


class Walk:
    """Functions over structures of one kind.

    Args:
        nested: Whether a value is a structure rather than a leaf.
        any_keys: Whether dicts whose keys cannot be sorted are walked in their own order; else
            they are refused.
    """

    def __init__(self, nested: Callable[[Any], bool], any_keys: bool = False) -> None:
        self.is_nested = nested
        self._any_keys = any_keys

    def keys(self, structure: Mapping[Any, Any]) -> list[Any]:
        """Return the keys of a dict in the order of the walk.

        Raises:
            TypeError: They cannot be sorted.
        """
        try:
            return sorted(structure)
        except TypeError as error:
            if self._any_keys:
                return list(structure)
            raise TypeError(
                f"[nest] the keys of a dict must have an order: got {shown(list(structure))}; use "
                "keys of one type."
            ) from error

    def parts(self, structure: Any) -> list[Any]:
        """Return the direct children of a structure."""
        if type(structure) in _ROWS:
            return list(structure)
        if structure is None:  # of an element of a dataset
            return []
        if isinstance(structure, Mapping):
            return [structure[key] for key in self.keys(structure)]
        if isinstance(structure, tuple):  # whatever its class makes of iteration
            return [*tuple.__iter__(structure)]
        fields = getattr(type(structure), "__attrs_attrs__", None)
        if fields is not None:
            return [getattr(structure, field.name) for field in fields]
        return list(structure)

    def flatten(self, structure: Any) -> list[Any]:
        """Return the leaves from left to right; dicts in the order of their sorted keys.

        Example:
            >>> flatten({"b": 1, "a": (2, [3])})
            [2, 3, 1]
        """
        if not self.is_nested(structure):
            return [structure]
        return [leaf for part in self.parts(structure) for leaf in self.flatten(part)]

    def map_structure(self, function: Callable[..., Any], structure: Any, *others: Any) -> Any:
        """Return the structure with each leaf replaced by function(leaf, leaves of the others).

        Example:
            >>> map_structure(lambda x: x + 1, {"a": (1, 2)})
            {'a': (2, 3)}
        """
        if not self.is_nested(structure):
            return function(structure, *others)
        if type(structure) not in _ROWS and isinstance(structure, Mapping):
            keys = self.keys(structure)
            columns = [[each[key] for key in keys] for each in (structure, *others)]
        else:
            columns = [self.parts(each) for each in (structure, *others)]
        groups = zip(*columns, strict=True)
        return self.rebuilt(structure, [self.map_structure(function, *group) for group in groups])

    def fill(self, structure: Any, leaves: Iterable[Any]) -> Any:
        """Return the structure with other leaves, in the order of `flatten`.

        Example:
            >>> Walk(is_nested).fill({"b": 0, "a": [0]}, [1, 2])
            {'b': 2, 'a': [1]}
        """
        remaining: Iterator[Any] = iter(leaves)
        return self.map_structure(lambda _: next(remaining), structure)

    def rebuilt(self, structure: Any, parts: list[Any]) -> Any:
        """Return a structure of the type of another one, of other parts."""
        if type(structure) in _ROWS:
            return type(structure)(parts)
        if structure is None:
            return None
        if isinstance(structure, Mapping):
            return self._rebuilt_dict(
                structure, dict(zip(self.keys(structure), parts, strict=True))
            )
        kind = type(structure)
        if isinstance(structure, range | MappingView):
            return parts
        if hasattr(structure, "_fields") or hasattr(kind, "__attrs_attrs__"):
            return kind(*parts)
        return kind(parts)

    def _rebuilt_dict(self, structure: Mapping[Any, Any], values: dict[Any, Any]) -> Any:
        ordered = {key: values[key] for key in structure}
        if type(structure) is dict:
            return ordered
        if isinstance(structure, defaultdict):
            return defaultdict(structure.default_factory, ordered)
        try:
            return type(structure)(ordered)  # type: ignore[call-arg]
        except Exception:  # whatever such a class wants
            return ordered

    def same_structure(self, a: Any, b: Any) -> bool:
        """Tell whether two values differ in their leaves only: dicts of any types are alike.

        Example:
            >>> Walk(is_nested).same_structure([1, {"a": 2}], [3, {"a": 4}])
            True
        """
        if not self.is_nested(a) or not self.is_nested(b):
            return not self.is_nested(a) and not self.is_nested(b)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            alike = self.keys(a) == self.keys(b)
        else:
            alike = type(a) is type(b)
        own, other = self.parts(a), self.parts(b)
        return alike and len(own) == len(other) and all(map(self.same_structure, own, other))


def is_nested(value: Any) -> bool:
    """Tell whether the engine reads an argument or a result as a structure rather than a leaf.

    Example:
        >>> is_nested([1]), is_nested({}), is_nested("text"), is_nested(None)
        (True, True, False, False)
    """
    return isinstance(value, _KINDS)


def is_one_value(value: Any) -> bool:
    """Tell whether a tuple is one value to user code: a complex tensor, which is two real ones."""
    return getattr(type(value), "_is_one_value", False)


def is_leaf(value: Any) -> bool:
    """Return whether a tuple stands for one tensor: the shape of a tensor does."""
    return getattr(type(value), "_is_leaf", False)


def is_structure(value: Any) -> bool:
    """Tell whether tf.nest enters the value: any sequence but strings, and attrs classes.

    Example:
        >>> is_structure(range(2)), is_structure({"a": 1}.values()), is_structure({1, 2})
        (True, True, False)
    """
    if is_one_value(value) or is_leaf(value):
        return False
    if isinstance(value, (*_KINDS, MappingView)) or hasattr(type(value), "__attrs_attrs__"):
        return True
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def is_element(value: Any) -> bool:
    """Tell whether an element of a dataset is a structure: lists are leaves that stand for tensors.

    None is a structure without leaves.

    Example:
        >>> is_element((1, 2)), is_element([1, 2]), is_element(None)
        (True, False, True)
    """
    return value is None or (isinstance(value, tuple | Mapping) and not is_leaf(value))


# Of arguments and results of functions.
_values = Walk(is_nested)
flatten, map_structure = _values.flatten, _values.map_structure

# What the program has in its variables may be a dict with any keys.
variables = Walk(is_nested, any_keys=True)
elements = Walk(is_element, any_keys=True)
structures = Walk(is_structure)
# As `variables`, but what is one value to the program is a leaf.
values = Walk(lambda value: is_nested(value) and not is_one_value(value), any_keys=True)

__all__ = [
    "Walk", "elements", "flatten", "is_element", "is_leaf", "is_nested", "is_one_value",
    "is_structure", "map_structure", "structures", "values", "variables",
]  # fmt: skip


def first_leaf(value: Any) -> Any:
    """Return the first leaf of a (nested) list; the search ends at the largest number of axes.

    Example:
        >>> first_leaf([[1, 2], [3]])
        1
    """
    for _ in range(MAX_AXES + 1):
        if not isinstance(value, list | tuple) or is_one_value(value) or not value:
            break
        value = value[0]
    return value
