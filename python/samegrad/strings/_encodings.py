"""Texts in other encodings, and their older hash."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.text import Text, of_bytes, text_of
from samegrad.strings import _hashing as hashing
from samegrad.strings._parts import REPLACEMENT, decoder

_OUTPUTS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")


def unicode_transcode(
    input: Any, input_encoding: str, output_encoding: str, errors: str = "replace",
    replacement_char: int = REPLACEMENT, replace_control_characters: bool = False,
    name: str | None = None,
) -> Text:  # fmt: skip
    r"""Convert strings to another encoding.

    Args:
        input: Strings of any shape.
        input_encoding: "UTF-8" or another encoding that Python knows.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: The handling of invalid bytes: "replace" (by `replacement_char`), "ignore" or
            "strict", which raises.
        replacement_char: The code point of the replacement.
        replace_control_characters: Treat the characters below U+0020 as invalid as well.
        name: Ignored.

    Returns:
        Strings of the shape of `input`.

    Raises:
        InvalidArgumentError: Bytes are invalid, and `errors` is "strict".
        ValueError: An encoding, `errors` or the code point is unknown.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.unicode_transcode(["ä"], "UTF-8", "UTF-16-BE").numpy()
        array([b'\x00\xe4'], dtype=object)
    """
    who = "tf.strings.unicode_transcode"
    if output_encoding not in _OUTPUTS:
        raise ValueError(
            f"[{who}] output_encoding must be one of {_OUTPUTS}: got {shown(output_encoding)}."
        )
    strict = errors == "strict" and replace_control_characters
    replaces = replace_control_characters and not strict
    characters = decoder(input_encoding, errors, who, replacement_char, replaces)

    def transcoded(value: bytes) -> bytes:
        text = characters(value)
        if strict and min(text, default=" ") < " ":
            raise InvalidArgumentError(
                f"[{who}] strings must have no control characters: got {shown(value)}."
            )
        return text.encode(output_encoding)

    found = text_of(input, who, "input must be strings").encoded
    made = np.empty(found.shape, object)
    made.ravel()[:] = [transcoded(value) for value in found.ravel()]
    return of_bytes(made)


def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """Hash strings to buckets by MurmurHash, as older programs do.

    Args:
        input: Strings of any shape.
        num_buckets: The number of buckets, at least 1.
        name: Ignored.

    Returns:
        Bucket numbers in [0, num_buckets), int64, of the shape of `input`.

    Raises:
        ValueError: `num_buckets` is below 1.

    Example:
        >>> import samegrad as tf
        >>> tf.strings.to_hash_bucket(["a", ""], 1000).numpy()
        array([868, 899])
    """
    who = "tf.strings.to_hash_bucket"
    count = operator.index(num_buckets)
    if count < 1:
        raise ValueError(f"[{who}] num_buckets must be at least 1: got {count}.")
    found = text_of(input, who, "input must be strings").encoded
    return Tensor(hashing.buckets(found, count, plain=hashing.old_hash), copy=False)
