"""The message in which TensorFlow stores the graph of a checkpoint's objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from samegrad.train._protobuf import BYTES, VARINT, fields

_MOST_OBJECTS = 60_000
_MOST_NAMES = 400_000
_VALUE = b"VARIABLE_VALUE"


@dataclass
class StoredObject:
    """One object of a checkpoint.

    Attributes:
        key: Key of its value, or None.
        children: Numbers of the objects that it holds, by name.
        slots: Numbers of slot variables, by their name and the number of their variable.
    """

    key: str | None = None
    children: dict[str, int] = field(default_factory=dict)
    slots: dict[tuple[str, int], int] = field(default_factory=dict)


def parse_graph(content: memoryview) -> list[StoredObject]:
    """Parse a TrackableObjectGraph; the first object is the root.

    Raises:
        ValueError: It is not one, or refers to an object that it does not have.
    """
    found: list[StoredObject] = []
    names = 0
    for _, value in fields(content, {1: BYTES}):
        node = _node_of(value)
        found.append(node)
        names += len(node.children) + len(node.slots)
        if len(found) > _MOST_OBJECTS or names > _MOST_NAMES:
            raise ValueError(f"it has more than {_MOST_OBJECTS} objects or {_MOST_NAMES} names")
    used = {n for node in found for n in node.children.values()}
    used |= {n for node in found for (_, variable), n in node.slots.items()}
    used |= {variable for node in found for _, variable in node.slots}
    if not found or (used and max(used) >= len(found)):
        raise ValueError(f"it has {len(found)} objects and names number {max(used, default=0)}")
    return found


def _node_of(content: memoryview) -> StoredObject:
    node = StoredObject()
    for number, part in fields(content, {1: BYTES, 2: BYTES, 3: BYTES}):
        if number == 1:
            child = dict(fields(part, {1: VARINT, 2: BYTES}))
            node.children[_text(child.get(2))] = child.get(1, 0)
        elif number == 2:
            attribute = dict(fields(part, {1: BYTES, 3: BYTES}))
            if attribute.get(1, b"") == _VALUE:
                node.key = _text(attribute.get(3))
        else:
            slot = dict(fields(part, {1: VARINT, 2: BYTES, 3: VARINT}))
            node.slots[_text(slot.get(2)), slot.get(1, 0)] = slot.get(3, 0)
    return node


def _text(value: Any) -> str:
    return bytes(value or b"").decode()


__all__ = ["StoredObject", "parse_graph"]
