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
    """The letters of bytes; bytes that are no UTF-8 stay what they are, for `encoded`."""
    return value.decode("utf-8", "surrogateescape")


def encoded(value: str) -> bytes:
    """The bytes of letters that `decoded` gave."""
    return value.encode("utf-8", "surrogateescape")


def _in_encoding(
    encoding: str, who: str, of_ascii: Callable[[bytes], bytes], of_all: Callable[[str], str]
) -> Callable[[bytes], bytes]:
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(f"[{who}] encoding must be '' or 'utf-8': got {encoding!r}.")
    return (lambda x: encoded(of_all(decoded(x)))) if encoding else of_ascii


@on_host()
def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Small letters instead of capital ones.

    Args:
        input: Text of any shape.
        encoding: "": only the letters A to Z; "utf-8": those of all alphabets.
        name: Ignored.

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
    """Capital letters instead of small ones.

    Args:
        input: Text of any shape.
        encoding: "": only the letters a to z; "utf-8": those of all alphabets.
        name: Ignored.

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
    r"""Without the white space at both ends.

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
    r"""What matches a pattern becomes `rewrite`.

    Patterns are RE2's as far as Python's `re` has them: classes have the letters of ASCII, `$` is
    the end of the text, and there are no classes of Unicode (\pL).

    Args:
        input: Text of any shape.
        pattern: A regular expression.
        rewrite: What a match becomes; \1 to \9 are groups of the pattern, \0 is all of it.
        replace_global: Whether all matches are replaced, or the first one.
        name: Ignored.

    Raises:
        InvalidArgumentError: The pattern is none, or `rewrite` names a group that it has not.

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
    """Which texts match a pattern as a whole (bool).

    Raises:
        InvalidArgumentError: The pattern is no regular expression.

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
    """Whether letters are counted, rather than bytes."""
    if unit not in _UNITS:
        raise ValueError(f"[{who}] unit must be one of {_UNITS}: got {unit!r}.")
    return unit == "UTF8_CHAR"


@on_host()
def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """How long texts are (int32).

    Args:
        input: Text of any shape.
        unit: "BYTE" or "UTF8_CHAR".
        name: Ignored.

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


@on_host()
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Text:
    """A part of each text.

    Args:
        input: Text of any shape.
        pos: Where the part begins; negative numbers count from the end. Broadcast with `input`.
        len: How long it is at most; a negative number: up to the end.
        unit: "BYTE" or "UTF8_CHAR".
        name: Ignored.

    Raises:
        InvalidArgumentError: It begins outside of a text.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.substr(["hello", "world"], -3, 2).numpy()
        array([b'll', b'rl'], dtype=object)
    """
    who = "tf.strings.substr"
    letters = _unit(unit, who)
    rows = np.broadcast(
        text_of(input, who, "input must be strings").encoded, np.asarray(pos), np.asarray(len)
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
