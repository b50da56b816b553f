"""Characters of strings with the bytes at which they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._tensor.conversion import Tensor
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_rows import check_rows
from samegrad._tensor.text import of_bytes, text_of
from samegrad.strings._parts import REPLACEMENT, decoder


def unicode_decode_with_offsets(
    input: Any, input_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = REPLACEMENT, replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Decode strings into code points, and return the byte at which each begins.

    Args:
        input: A string scalar, or a vector of strings.
        input_encoding: "UTF-8" or another encoding that Python knows.
        errors: The handling of invalid bytes: "replace" (by `replacement_char`), "ignore" or
            "strict", which raises.
        replacement_char: The code point of the replacement.
        replace_control_characters: Treat the characters below U+0020 as invalid as well.
        name: Ignored.

    Returns:
        Code points (int32) and bytes (int64): vectors for a scalar, ragged tensors for a vector.

    Raises:
        InvalidArgumentError: Bytes are invalid, and `errors` is "strict".
        ValueError: The encoding, `errors` or the code point is unknown.

    Example:
        >>> import samegrad as tf
        >>> points, starts = tf.strings.unicode_decode_with_offsets("aäb", "UTF-8")
        >>> points.numpy(), starts.numpy()
        (array([ 97, 228,  98], dtype=int32), array([0, 1, 3]))
    """
    who = "tf.strings.unicode_decode_with_offsets"
    characters = decoder(input_encoding, errors, who, replacement_char, replace_control_characters)
    rows, starts, is_scalar = _read(input, who, input_encoding, characters)
    points = [[ord(character) for character in row] for row in rows]
    return _numbers(points, np.int32, is_scalar), _numbers(starts, np.int64, is_scalar)


def unicode_split_with_offsets(
    input: Any, input_encoding: str = "UTF-8", errors: str = "replace",
    replacement_char: int = REPLACEMENT, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Split strings into characters, and return the byte at which each begins.

    Args:
        input: A string scalar, or a vector of strings.
        input_encoding: "UTF-8" or another encoding that Python knows.
        errors: The handling of invalid bytes: "replace" (by `replacement_char`), "ignore" or
            "strict", which raises.
        replacement_char: The code point of the replacement.
        name: Ignored.

    Returns:
        Strings and bytes (int64): vectors for a scalar, ragged tensors for a vector.

    Raises:
        InvalidArgumentError: Bytes are invalid, and `errors` is "strict".
        ValueError: The encoding, `errors` or the code point is unknown.

    Example:
        >>> import samegrad as tf
        >>> parts, starts = tf.strings.unicode_split_with_offsets("wör", "UTF-8")
        >>> [part.decode() for part in parts.numpy()], starts.numpy()
        (['w', 'ö', 'r'], array([0, 1, 3]))
    """
    who = "tf.strings.unicode_split_with_offsets"
    characters = decoder(input_encoding, errors, who, replacement_char)
    rows, starts, is_scalar = _read(input, who, input_encoding, characters)
    flat = [character.encode(input_encoding) for row in rows for character in row]
    made = np.empty(len(flat), object)
    made[:] = flat
    parts: Any = of_bytes(made)
    if not is_scalar:
        parts = RaggedTensor(parts, [*map(len, rows)])
    return parts, _numbers(starts, np.int64, is_scalar)


def _read(
    input: Any, who: str, encoding: str, characters: Callable[[bytes], str]
) -> tuple[list[str], list[list[int]], bool]:
    """Return the characters of each string, and where they begin."""
    found = text_of(input, who, "input must be strings")
    check_rows(found.encoded.shape)
    rows, starts = [], []
    for value in found.encoded.ravel():
        row, places = "", []
        for begin, end in _pieces(value, encoding):
            part = characters(value[begin:end])
            row += part
            places += [begin] * len(part)
        rows.append(row)
        starts.append(places)
    return rows, starts, not found._rank


def _pieces(value: bytes, encoding: str) -> list[tuple[int, int]]:
    """Return where each character, and each invalid part, begins and ends."""
    pieces, begin = [], 0
    while begin < len(value):
        try:
            valid, bad = value[begin:].decode(encoding), 0
        except UnicodeDecodeError as error:
            valid, bad = value[begin : begin + error.start].decode(encoding), error.end
        place = begin
        for character in valid:
            end = place + len(character.encode(encoding))
            pieces.append((place, end))
            place = end
        if not bad:
            break
        pieces.append((place, begin + bad))
        begin += bad
    return pieces


def _numbers(rows: list[list[int]], kind: Any, is_scalar: bool) -> Any:
    flat = Tensor(np.array([number for row in rows for number in row], kind), copy=False)
    return flat if is_scalar else RaggedTensor(flat, [*map(len, rows)])


__all__ = ["unicode_decode_with_offsets", "unicode_split_with_offsets"]
