"""Structures on which tf.nest is compared with TensorFlow's; only NumPy and Python are needed."""

from __future__ import annotations

import collections
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import numpy as np

Point = namedtuple("Point", "x y")
Empty = namedtuple("Empty", "")
Twin = namedtuple("Point", "x y")
Other = namedtuple("Point", "x z")


@dataclass
class Record:
    a: int
    b: int


class Attrs:
    """As the package attrs makes classes."""

    __attrs_attrs__ = (types.SimpleNamespace(name="b"), types.SimpleNamespace(name="a"))

    def __init__(self, b, a):
        self.b, self.a = b, a

    def __repr__(self):
        return f"Attrs({self.b!r}, {self.a!r})"


class OwnList(list):
    pass


class OwnTuple(tuple):
    __slots__ = ()


class OwnDict(dict):
    pass


class Row(collections.abc.Sequence):
    """A sequence that is not a list."""

    def __init__(self, parts):
        self.parts = list(parts)

    def __getitem__(self, place):
        return self.parts[place]

    def __len__(self):
        return len(self.parts)

    def __repr__(self):
        return f"Row({self.parts!r})"


class Table(collections.abc.Mapping):
    """A mapping that is not a dict."""

    def __init__(self, parts=()):
        self.parts = dict(parts)

    def __getitem__(self, key):
        return self.parts[key]

    def __len__(self):
        return len(self.parts)

    def __iter__(self):
        return iter(self.parts)

    def __repr__(self):
        return f"Table({self.parts!r})"


PAIR = {"b": 1, "a": 2}
STRUCTURES = {
    "nested lists": [1, [2, (3,)]],
    "empty list": [],
    "empty tuple": (),
    "empty dict": {},
    "empty structures inside": [[], (), {}, 1],
    "None": None,
    "None inside": [None, {"a": None}],
    "dict": PAIR,
    "OrderedDict": OrderedDict(PAIR),
    "defaultdict": defaultdict(list, PAIR),
    "numbers as keys": {2: 1, 1: 0},
    "tuples as keys": {(2, 1): 1, (1, 2): 0},
    "keys of several types": {1: 2, "a": 3},
    "named tuple": Point(1, [2]),
    "empty named tuple": Empty(),
    "dataclass": Record(1, 2),
    "attrs": Attrs(1, [2]),
    "string": "abc",
    "bytes": b"ab",
    "set": {1},
    "range": range(3),
    "deque": deque([1, 2]),
    "array": np.arange(2),
    "list of a subclass": OwnList([1]),
    "tuple of a subclass": OwnTuple((1, 2)),
    "dict of a subclass": OwnDict(PAIR),
    "UserDict": collections.UserDict(PAIR),
    "keys": PAIR.keys(),
    "values": PAIR.values(),
    "items": PAIR.items(),
    "sequence": Row([1, 2]),
    "mapping": Table(PAIR),
}
PAIRS = {
    "list and tuple": ([1], (1,)),
    "list and leaf": ([1], 1),
    "other leaves": ([1], [2]),
    "list and deeper list": ([[1]], [1]),
    "other lengths": ([1, 2], [1]),
    "dict and OrderedDict": ({"a": 1}, OrderedDict(a=1)),
    "dict and defaultdict": ({"a": 1}, defaultdict(int, a=1)),
    "dict and mapping": ({"a": 1}, Table({"a": 1})),
    "other keys": ({"a": 1}, {"b": 1}),
    "other order of keys": (OrderedDict(a=1, b=2), OrderedDict(b=10, a=20)),
    "named tuple and tuple": (Point(1, 2), (1, 2)),
    "named tuple and list": (Point(1, 2), [1, 2]),
    "named tuples of one form": (Point(1, 2), Twin(1, 2)),
    "named tuples of other fields": (Point(1, 2), Other(1, 2)),
    "empty list and tuple": ([], ()),
    "empty list and dict": ([], {}),
    "two times None": (None, None),
    "None and a number": ([None], [1]),
    "list of a subclass and list": (OwnList([1]), [1]),
    "tuple of a subclass and tuple": (OwnTuple((1,)), (1,)),
    "array and list": (np.arange(2), [1, 2]),
    "strings": ("a", "b"),
}
PACKS = {
    "too few": ([1, 2], [1]),
    "too many": ([1], [1, 2]),
    "leaf": (1, [5]),
    "no list": ([1], 5),
    "string": ([1], "5"),
    "tuple": ({"b": 0, "a": (0, 0)}, (1, 2, 3)),
    "nothing": ([], []),
}


def told(call):
    """What a call gives, as text: the result, or the class of the error."""
    try:
        return repr(call())
    except Exception as error:
        return type(error).__name__


def record(nest):
    """All results of tf.nest."""
    found = {}
    for name, value in STRUCTURES.items():
        found[f"is_nested: {name}"] = told(lambda value=value: nest.is_nested(value))
        found[f"flatten: {name}"] = told(lambda value=value: nest.flatten(value))
        found[f"map_structure: {name}"] = told(
            lambda value=value: nest.map_structure(lambda leaf: ("leaf", leaf), value)
        )
        found[f"pack_sequence_as: {name}"] = told(
            lambda value=value: nest.pack_sequence_as(value, range(len(nest.flatten(value))))
        )
    for name, (a, b) in PAIRS.items():
        for check in (True, False):
            found[f"same, check_types={check}: {name}"] = told(
                lambda a=a, b=b, check=check: nest.assert_same_structure(a, b, check_types=check)
            )
            found[f"map of two, check_types={check}: {name}"] = told(
                lambda a=a, b=b, check=check: nest.map_structure(
                    lambda x, y: (x, y), a, b, check_types=check
                )
            )
    for name, (structure, leaves) in PACKS.items():
        found[f"pack: {name}"] = told(
            lambda structure=structure, leaves=leaves: nest.pack_sequence_as(structure, leaves)
        )
    found["map of nothing"] = told(lambda: nest.map_structure(len))
    found["map of no function"] = told(lambda: nest.map_structure(1, [1]))
    found["map with another option"] = told(lambda: nest.map_structure(abs, [1], other=1))
    return found
