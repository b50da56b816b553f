"""Objects noted by identity, which forget themselves without Python code."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class WeakIds(Generic[T]):
    """Values by the identity of objects that it does not keep alive.

    The collections of `weakref` run Python code as an object goes, and what a signal raises there
    is lost: Python prints it, and the program goes on. Here a built-in method runs.

    Example:
        >>> class Part: pass
        >>> part, numbers = Part(), WeakIds()
        >>> numbers.set(part, 3)
        >>> numbers.get(part)
        3
        >>> del part
        >>> len(numbers)
        0
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[Any], T]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, thing: object) -> T | None:
        """Return the value of an object; None if it has none."""
        entry = self._entries.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def set(self, thing: object, value: T) -> None:
        """Note the value of an object.

        Raises:
            TypeError: Its class has no weak references.
        """
        # The reference is the default of `pop`, where the entry is gone.
        forget = partial(self._entries.pop, id(thing))
        self._entries[id(thing)] = (weakref.ref(thing, forget), value)

    def living(self) -> list[Any]:
        """Return the objects."""
        things = [reference() for reference, _ in list(self._entries.values())]
        return [thing for thing in things if thing is not None]
