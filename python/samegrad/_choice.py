"""Enums whose unknown values are refused by name."""

from __future__ import annotations

import enum
from typing import Any

from samegrad._shown import shown


class _ChoiceType(enum.EnumMeta):
    def __call__(cls, value: Any, *args: Any, **options: Any) -> Any:
        if args or options:  # Python makes a class
            return super().__call__(value, *args, **options)
        for member in cls:
            own: Any = member.value  # type: ignore[attr-defined]
            if value is member or (isinstance(value, type(own)) and value == own):
                return member
        names = ", ".join(cls.__members__)
        raise ValueError(f"[{cls.__name__}] there are {names}: got {shown(value)}; name one.")


class Choice(enum.Enum, metaclass=_ChoiceType):
    """An Enum that says which members there are when it is asked for another value."""


class IntChoice(enum.IntEnum, metaclass=_ChoiceType):
    """The same, of whole numbers."""


class TextChoice(str, enum.Enum, metaclass=_ChoiceType):
    """The same, of strings."""
