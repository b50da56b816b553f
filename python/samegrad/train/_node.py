"""Nodes of a checkpoint's tree of values."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy.typing as npt

Leaf: TypeAlias = "npt.NDArray[Any] | bool | int | float | str | None"


class Node:
    """One name of a restored checkpoint: its value, and the names below it.

    Attributes:
        key: The way from the root.
        value: The stored leaf, if `has_value`.
        children: The nodes below by name. An object stored once but reached by several ways is
            one node with several parents.
    """

    __slots__ = ("__weakref__", "_receivers", "children", "has_value", "key", "value")

    def __init__(self, key: str) -> None:
        self.key = key
        self.has_value = False
        self.value: Leaf = None
        self.children: dict[str, Node] = {}
        # Weak references, so that the variables of a failed trace can go; the next ones then get
        # the value again. Several, because what was one object may be restored into two.
        self._receivers: list[Callable[[], object | None]] = []

    @property
    def after_others(self) -> bool:
        """Tell if the parts of its object can be paired only once all other objects are."""
        return False

    def pairs(
        self, item: object, state: Mapping[str, Any]
    ) -> Iterator[tuple[str, Any, Node | None]]:
        """Yield name and value of each part of an object, and the node below, if it is stored.

        Args:
            item: The object.
            state: Its parts by name.
        """
        for name, part in state.items():
            yield name, part, self if name == "" else self.children.get(escape(name))

    def value_for(self, present: Leaf) -> Leaf:
        """Return the value in the type of the leaf that it is to replace, if that loses nothing."""
        return self.value

    def is_given_to(self, receiver: object) -> bool:
        """Tell if this object has received the value already."""
        return any(reference() is receiver for reference in self._receivers)

    def give_to(self, receiver: object) -> None:
        """Note an object that has received the value."""
        try:
            self._receivers.append(weakref.ref(receiver))
        except TypeError:  # its class has no room for weak references
            self._receivers.append(lambda: receiver)

    def unused(self) -> list[str]:
        """Keys at and below this node whose value nobody has got."""
        return [node.key for node in self._walk() if node.has_value and not node._is_given()]

    def used(self) -> list[str]:
        """Keys at and below this node whose value some object has got."""
        return [node.key for node in self._walk() if node.has_value and node._is_given()]

    def _is_given(self) -> bool:
        return any(reference() is not None for reference in self._receivers)

    def take_back(self, receivers: list[Callable[[], object | None]]) -> None:
        """Set the objects that have received the value."""
        self._receivers = receivers

    def receivers(self) -> list[Callable[[], object | None]]:
        """References to those who have got the value."""
        return list(self._receivers)

    def _walk(self) -> Iterator[Node]:
        seen: set[int] = set()
        ahead = [self]
        while ahead:
            node = ahead.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                ahead.extend(reversed(node.children.values()))


def escape(name: str) -> str:
    """The name without the character that parts keys."""
    return name.replace("%", "%25").replace("/", "%2F")


__all__ = ["Leaf", "Node", "escape"]
