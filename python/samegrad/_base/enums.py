"""Enums whose unknown values are refused by name."""

from __future__ import annotations

import enum
from typing import Any

from samegrad._base.shown import shown


class _ChoiceType(enum.EnumMeta):
    def __call__(cls, *values: Any, **options: Any) -> Any:
        if not cls.__members__:  # Python makes a class
            return super().__call__(*values, **options)
        members: list[Any] = list(cls.__members__.values())
        for member in members if len(values) == 1 and not options else ():
            own = member.value
            if values[0] is member or (isinstance(values[0], type(own)) and values[0] == own):
                return member
        names, given = ", ".join(cls.__members__), ", ".join(map(shown, [*values, *options]))
        raise ValueError(
            f"[{cls.__name__}] one of {names} is needed: got {given or 'nothing'}; name one."
        )


class Choice(enum.Enum, metaclass=_ChoiceType):
    """An Enum that says which members there are when it is asked for another value."""


class IntChoice(enum.IntEnum, metaclass=_ChoiceType):
    """An IntEnum that names its members when it is asked for another value."""


class TextChoice(str, enum.Enum, metaclass=_ChoiceType):
    """The same, of strings."""
