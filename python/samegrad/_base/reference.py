"""Tensors and variables as keys of dicts and members of sets."""

from __future__ import annotations

from typing import Any


class Reference:
    """Equal to references of the same object only, whatever its elements are."""

    __slots__ = ("_object",)

    def __init__(self, referred: Any) -> None:
        self._object = referred

    def deref(self) -> Any:
        """Return the object itself."""
        return self._object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._object is other._object

    def __hash__(self) -> int:
        return id(self._object)

    def __repr__(self) -> str:
        return f"<Reference of {self._object!r}>"


__all__ = ["Reference"]
