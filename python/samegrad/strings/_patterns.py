"""Regular expressions as TensorFlow reads them (RE2), by Python's `re`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError

# The POSIX classes of RE2, inside brackets.
_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_POSIX = re.compile(r"\[:(\w+):\]")
_Rewriter = Callable[[re.Match[str]], str]


@functools.lru_cache(maxsize=256)
def compiled(pattern: str, who: str) -> re.Pattern[str]:
    r"""Compile an RE2 pattern for `re`: ASCII classes, and `$` is the end of the string.

    Args:
        pattern: A pattern of RE2.
        who: The name of the op, for messages.

    Raises:
        InvalidArgumentError: The pattern is malformed, or `re` lacks a part of it: Unicode classes
            (\pL).

    Example:
        >>> compiled("[[:punct:]]+$", "tf.strings.regex_replace").sub("", "a.b!?")
        'a.b'
    """
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, KeyError) as error:
        raise InvalidArgumentError(
            f"[{who}] pattern must be a regular expression: got {shown(pattern)} ({error})."
        ) from None


def _translated(pattern: str) -> str:
    """Translate a pattern to Python's syntax."""
    made: list[str] = []
    place = 0
    multiline = re.search(r"\(\?[is]*m", pattern) is not None
    while place < len(pattern):
        if pattern[place] == "[":
            part, place = _class_at(pattern, place + 1)
        elif pattern[place] == "\\":
            part = _escape_at(pattern, place)
            place += 2
            part = r"\Z" if part == r"\z" else part
        else:
            part = r"\Z" if pattern[place] == "$" and not multiline else pattern[place]
            place += 1
        made.append(part)
    return "".join(made)


def _escape_at(pattern: str, place: int) -> str:
    part = pattern[place : place + 2]
    if part in (r"\p", r"\P"):
        raise KeyError(f"{part} names a class of Unicode, which is not supported; write a range")
    return part


def _class_at(pattern: str, place: int) -> tuple[str, int]:
    """Return the class in brackets whose inside begins at a place, and where it ends."""
    made = ["["]
    if pattern.startswith("^", place):
        made.append("^")
        place += 1
    first = place
    while place < len(pattern) and (pattern[place] != "]" or place == first):
        posix = _POSIX.match(pattern, place)
        if posix:
            part, place = _CLASSES[posix[1]], posix.end()
        elif pattern[place] == "\\":
            part = _escape_at(pattern, place)
            place += 2
        else:  # Python warns of brackets in brackets
            part = f"\\{pattern[place]}" if pattern[place] in "[]&~|" else pattern[place]
            place += 1
        made.append(part)
    return "".join([*made, "]" if place < len(pattern) else ""]), place + 1


def replaced(pattern: re.Pattern[str], rewrite: _Rewriter, text: str, once: bool) -> str:
    """Replace matches as RE2's GlobalReplace does.

    An empty match right after another match does not count.
    """
    last = -1

    def made(match: re.Match[str]) -> str:
        nonlocal last
        start, end = match.span()
        if start == end == last:
            return ""
        last = end
        return rewrite(match)

    return pattern.sub(made, text, int(once))


def rewriter(rewrite: str, groups: int, who: str) -> _Rewriter:
    r"""Return a function that expands \1 to \9 as groups, \0 as the whole match, \\ as a backslash.

    Raises:
        InvalidArgumentError: There is no such group, or another character after a backslash.
    """
    parts = re.split(r"\\(.?)", rewrite, flags=re.DOTALL)
    for escape in parts[1::2]:
        if escape != "\\" and not (escape.isdigit() and int(escape) <= groups):
            raise InvalidArgumentError(
                f"[{who}] rewrite has \\0 to \\{groups}, the groups of the pattern, and \\\\ for a "
                f"backslash: got {shown(rewrite)}."
            )

    def made(match: re.Match[str]) -> str:
        text = [parts[0]]
        for escape, plain in zip(parts[1::2], parts[2::2], strict=True):
            text += ["\\" if escape == "\\" else match[int(escape)] or "", plain]
        return "".join(text)

    return made
