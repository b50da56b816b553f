"""Texts one by one: their letters, parts and patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.host_values import on_host
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.text import Text, of_bytes, text_of
from samegrad.strings._patterns import compiled, replaced, rewriter

_SMALL = bytes.maketrans(bytes(range(65, 91)), bytes(range(97, 123)))
_CAPITAL = bytes.maketrans(bytes(range(97, 123)), bytes(range(65, 91)))
_UNITS = ("BYTE", "UTF8_CHAR")


def _each(values: Any, who: str, function: Callable[[bytes], bytes]) -> Any:
    if isinstance(values, RaggedTensor):
        return values.with_values(_each(values.flat_values, who, function))
    array = text_of(values, who, "input must be strings").encoded
    made = np.empty(array.shape, object)
    made.ravel()[:] = [function(value) for value in array.ravel()]
    return of_bytes(made)


def decoded(value: bytes) -> str:
    """Decode UTF-8; invalid bytes become surrogates, which `encoded` restores."""
    return value.decode("utf-8", "surrogateescape")


def encoded(value: str) -> bytes:
    """Encode a string of `decoded`."""
    return value.encode("utf-8", "surrogateescape")


def _in_encoding(
    encoding: str, who: str, of_ascii: Callable[[bytes], bytes], of_all: Callable[[str], str]
) -> Callable[[bytes], bytes]:
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(f"[{who}] encoding must be '' or 'utf-8': got {encoding!r}.")
    return (lambda x: encoded(of_all(decoded(x)))) if encoding else of_ascii


@on_host()
def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Convert strings to lower case.

    Args:
        input: Strings of any shape.
        encoding: "": only the letters A to Z; "utf-8": the letters of all alphabets.
        name: Ignored.

    Returns:
        Strings of the shape of `input`.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.lower(["The CAT"]).numpy()
        array([b'the cat'], dtype=object)
    """
    who = "tf.strings.lower"
    change = _in_encoding(encoding, who, lambda x: x.translate(_SMALL), str.lower)
    return _each(input, who, change)


@on_host()
def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Convert strings to upper case.

    Args:
        input: Strings of any shape.
        encoding: "": only the letters a to z; "utf-8": the letters of all alphabets.
        name: Ignored.

    Returns:
        Strings of the shape of `input`.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.upper("The cat").numpy()
        b'THE CAT'
    """
    who = "tf.strings.upper"
    change = _in_encoding(encoding, who, lambda x: x.translate(_CAPITAL), str.upper)
    return _each(input, who, change)


@on_host()
def strip(input: Any, name: str | None = None) -> Any:
    r"""Strip white space from both ends of strings.

    Args:
        input: Strings of any shape.
        name: Ignored.

    Returns:
        Strings of the shape of `input`.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.strip("  a b\n").numpy()
        b'a b'
    """
    return _each(input, "tf.strings.strip", bytes.strip)


@on_host()
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Any:
    r"""Replace what matches a regular expression.

    Patterns are those of RE2, within the limits of Python's `re`. Classes hold ASCII characters,
    `$` is the end of the string, and Unicode classes (\pL) do not exist.

    Args:
        input: Strings of any shape.
        pattern: A regular expression.
        rewrite: The replacement; \1 to \9 are groups of the pattern, \0 is the whole match.
        replace_global: Replace all matches; False: the first one.
        name: Ignored.

    Returns:
        Strings of the shape of `input`.

    Raises:
        InvalidArgumentError: The pattern is not a regular expression, or `rewrite` names a group
            that it lacks.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.regex_replace("a<br />b", "<[^>]*>", " ").numpy()
        b'a b'
    """
    who = "tf.strings.regex_replace"
    found = compiled(_letters(pattern, who, "pattern"), who)
    made = rewriter(_letters(rewrite, who, "rewrite"), found.groups, who)
    return _each(
        input, who, lambda x: encoded(replaced(found, made, decoded(x), not replace_global))
    )


@on_host()
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Test strings for matching a regular expression as a whole.

    Args:
        input: Strings of any shape.
        pattern: A regular expression; see `regex_replace`.
        name: Ignored.

    Returns:
        A bool tensor of the shape of `input`.

    Raises:
        InvalidArgumentError: The pattern is not a regular expression.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.regex_full_match(["cat", "cats"], "c.t").numpy()
        array([ True, False])
    """
    who = "tf.strings.regex_full_match"
    found = compiled(_letters(pattern, who, "pattern"), who)
    array = text_of(input, who, "input must be strings").encoded
    hits = [found.fullmatch(decoded(value)) is not None for value in array.ravel()]
    return Tensor(np.array(hits, bool).reshape(array.shape), copy=False)


def _letters(value: Any, who: str, what: str) -> str:
    text = text_of(value, who, f"{what} must be one string")
    if text._rank:
        raise ValueError(f"[{who}] {what} must be one string: got shape {text._shape}.")
    return decoded(text.numpy())


def _unit(unit: str, who: str) -> bool:
    """Tell whether characters are counted, rather than bytes."""
    if unit not in _UNITS:
        raise ValueError(f"[{who}] unit must be one of {_UNITS}: got {unit!r}.")
    return unit == "UTF8_CHAR"


@on_host()
def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """Return the lengths of strings.

    Args:
        input: Strings of any shape.
        unit: "BYTE", or "UTF8_CHAR" for characters.
        name: Ignored.

    Returns:
        An int32 tensor of the shape of `input`.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.length(["ab", "ä"]).numpy(), int(tf.strings.length("ä", "UTF8_CHAR"))
        (array([2, 2], dtype=int32), 1)
    """
    who = "tf.strings.length"
    letters = _unit(unit, who)
    if isinstance(input, RaggedTensor):
        return input.with_values(length(input.flat_values, unit))
    array = text_of(input, who, "input must be strings").encoded
    sizes = [len(decoded(value)) if letters else len(value) for value in array.ravel()]
    return Tensor(np.array(sizes, np.int32).reshape(array.shape), copy=False)


def _integers(who: str, name: str, value: Any) -> Any:
    found = np.asarray(value)
    if found.size and found.dtype.kind not in "iu":
        raise TypeError(f"[{who}] {name} must be integers: got {shown(value)}; pass integers.")
    return found


@on_host()
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Text:
    """Extract a substring of each string.

    Args:
        input: Strings of any shape.
        pos: The start; negative numbers count from the end. It broadcasts with `input`.
        len: The largest length; a negative number: up to the end.
        unit: "BYTE", or "UTF8_CHAR" for characters.
        name: Ignored.

    Returns:
        Strings of the broadcast shape.

    Raises:
        InvalidArgumentError: The start is outside of a string.
        TypeError: pos or len are not integers.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.substr(["hello", "world"], -3, 2).numpy()
        array([b'll', b'rl'], dtype=object)
    """
    who = "tf.strings.substr"
    letters = _unit(unit, who)
    rows = np.broadcast(
        text_of(input, who, "input must be strings").encoded,
        _integers(who, "pos", pos),
        _integers(who, "len", len),
    )
    made = np.empty(rows.shape, object)
    parts = made.ravel()
    for place, (value, begin, count) in enumerate(rows):
        whole = decoded(value) if letters else value
        size = whole.__len__()  # `len` is an argument
        if not -size <= begin <= size:
            raise InvalidArgumentError(
                f"[{who}] a part must begin in its string: got pos={begin} for {shown(value)} of "
                f"length {size} at place {place}."
            )
        begin += size if begin < 0 else 0
        part = whole[begin : size if count < 0 else begin + count]
        parts[place] = encoded(part) if isinstance(part, str) else part
    return of_bytes(made)
