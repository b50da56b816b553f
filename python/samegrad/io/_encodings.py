"""Strings in base 64, and compressed ones."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._tensor.host_values import on_host
from samegrad._tensor.text import of_bytes, text_of
from samegrad.errors import DataLossError, InvalidArgumentError

__all__ = ["decode_base64", "decode_compressed", "encode_base64"]


def _each(who: str, values: Any, function: Callable[[bytes], bytes]) -> Any:
    array = text_of(values, who, "strings are needed").encoded
    made = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        value: Any = array[place]
        try:
            made[place] = function(value)
        except (ValueError, binascii.Error, zlib.error) as error:
            kind = DataLossError if isinstance(error, zlib.error) else InvalidArgumentError
            raise kind(
                f"[{who}] strings must be encoded so: got {shown(value)} ({error})."
            ) from None
    return of_bytes(made)


@on_host()
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Encode strings in base 64, with the characters that are safe in URLs.

    Args:
        input: Strings of any shape.
        pad: Pad the results with "=" to a multiple of four characters.
        name: Ignored.

    Returns:
        Strings of the same shape.

    Example:
        >>> encode_base64("a").numpy(), encode_base64("a", pad=True).numpy()
        (b'YQ', b'YQ==')
    """

    def encoded(value: bytes) -> bytes:
        made = base64.urlsafe_b64encode(value)
        return made if pad else made.rstrip(b"=")

    return _each("tf.io.encode_base64", input, encoded)


@on_host()
def decode_base64(input: Any, name: str | None = None) -> Any:
    """Decode strings in base 64, with the characters that are safe in URLs.

    Args:
        input: Strings of any shape, padded or not.
        name: Ignored.

    Returns:
        Strings of the same shape.

    Raises:
        InvalidArgumentError: A string is not in base 64.

    Example:
        >>> decode_base64(["YQ", "YQ=="]).numpy()
        array([b'a', b'a'], dtype=object)
    """

    def decoded(value: bytes) -> bytes:
        plain = value.rstrip(b"=")
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), b"-_", validate=True)

    return _each("tf.io.decode_base64", input, decoded)


@on_host()
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """Decode compressed strings.

    Args:
        bytes: Strings of any shape.
        compression_type: "", "GZIP" or "ZLIB".
        name: Ignored.

    Returns:
        Strings of the same shape.

    Raises:
        ValueError: There is no such compression.
        DataLossError: A string is not compressed so.

    Example:
        >>> import zlib
        >>> decode_compressed(zlib.compress(b"text"), "ZLIB").numpy()
        b'text'
    """
    who = "tf.io.decode_compressed"
    windows = {"": None, "GZIP": 31, "ZLIB": 15}
    if compression_type not in windows:
        raise ValueError(
            f"[{who}] compression_type must be '', 'GZIP' or 'ZLIB': got {compression_type!r}."
        )
    window = windows[compression_type]
    return _each(who, bytes, lambda v: v if window is None else zlib.decompress(v, window))
