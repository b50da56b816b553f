"""Maps of names: a pattern of a model's path to the name that another framework gives it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from samegrad._base.shown import shown

_PLACEHOLDER = re.compile(r"\{(?P<name>[a-z]\w*)(?P<shift>[+-]\d+)?\}")
_PIECE = re.compile(r"\[(\d+)\]")


class NameMap:
    """Function from paths to names, by the first pattern that matches.

    Args:
        op_name: Name of the public function, for messages.
        names: Name by pattern.

    Example:
        >>> NameMap("f", {"block{i}.{part}": "layer.{i-1}.{part}"})("block2.conv.weight")
        ('layer.1.conv.weight', None)
        >>> NameMap("f", {"query": "qkv[0]"})("query.bias")
        ('qkv.bias', 0)
    """

    def __init__(self, op_name: str, names: Mapping[str, str] | None) -> None:
        self._op_name = op_name
        if names is not None and not isinstance(names, Mapping):
            raise TypeError(
                f"[{op_name}] names must be a dict of str to str: got {shown(names)}; give the "
                "name by the pattern of a path."
            )
        self._rules = [
            (key, self._compiled(key, value), value) for key, value in (names or {}).items()
        ]
        self._used: set[str] = set()

    def __call__(self, path: str) -> tuple[str, int | None]:
        """Return the name, and the position of this array in it if it holds several."""
        for key, pattern, template in self._rules:
            if match := pattern.match(path):
                self._used.add(key)
                name = self._filled(template, match) + path[match.end() :]
                piece = _PIECE.search(name)
                return _PIECE.sub("", name, count=1), int(piece[1]) if piece else None
        return path, None

    def unused(self) -> list[str]:
        """Return the patterns that have matched no path so far."""
        return [key for key, _, _ in self._rules if key not in self._used]

    def _compiled(self, key: str, value: str) -> re.Pattern[str]:
        for one in (key, value):
            if not isinstance(one, str) or re.search(r"[{}]", _PLACEHOLDER.sub("", one)):
                raise self._error(one, "str with placeholders {name}")
        known = {match["name"] for match in _PLACEHOLDER.finditer(key)}
        unknown = {match["name"] for match in _PLACEHOLDER.finditer(value)} - known
        if unknown:
            raise self._error(value, f"made of the placeholders of {key!r}")
        return pattern_of(key, self._op_name)

    def _filled(self, template: str, match: re.Match[str]) -> str:
        def value(found: re.Match[str]) -> str:
            piece = match[found["name"]]
            if not found["shift"]:
                return piece
            if not piece.isdecimal():
                raise self._error(template, f"about a number: {piece!r} is not one")
            return str(int(piece) + int(found["shift"]))

        return _PLACEHOLDER.sub(value, template)

    def _error(self, value: object, rule: str) -> ValueError:
        return ValueError(
            f"[{self._op_name}] a pattern of names must be {rule}: got {shown(value)}; write "
            "{'encoder.{i}.query': 'layer.{i}.attention.query'}, say."
        )


def pattern_of(key: str, op_name: str) -> re.Pattern[str]:
    """Compile a pattern, which matches a path or its beginning up to a dot.

    A placeholder stands for characters other than dots. A second one of a name repeats the first.

    Raises:
        ValueError: A placeholder has a shift.

    Example:
        >>> bool(pattern_of("a.{i}", "f").match("a.1.b")), pattern_of("a", "f").match("ab")
        (True, None)
    """
    body, end, seen = "", 0, set()
    for match in _PLACEHOLDER.finditer(key):
        if match["shift"]:
            raise ValueError(
                f"[{op_name}] a pattern must have placeholders without a shift: got {shown(key)}; "
                "shift the number in the name, as in {'block{i}': 'layer.{i-1}'}."
            )
        body += re.escape(key[end : match.start()])
        name = match["name"]
        body += f"(?P={name})" if name in seen else f"(?P<{name}>[^.]+?)"
        seen.add(name)
        end = match.end()
    return re.compile(body + re.escape(key[end:]) + r"(?=\.|\Z)")


def matches_any(name: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Tell whether a pattern matches the name."""
    return any(pattern.match(name) for pattern in patterns)


__all__ = ["NameMap", "matches_any", "pattern_of"]
