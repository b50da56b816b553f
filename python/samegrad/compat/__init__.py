"""Names of older programs: `compat.v1`, `compat.v2`, and conversions of strings."""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.dimension import Dimension

bytes_or_text_types = (bytes, str)
complex_types = (numbers.Complex, np.number)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Convert a string of Python to bytes.

    Args:
        bytes_or_text: A str, bytes or bytearray.
        encoding: The encoding of a str.

    Returns:
        The bytes.

    Raises:
        TypeError: The value is not a string.

    Example:
        >>> as_bytes("a"), as_bytes(b"b")
        (b'a', b'b')
    """
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"[as_bytes] a string of Python is needed: got {shown(bytes_or_text)}.")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Convert bytes to a str.

    Args:
        bytes_or_text: A str or bytes.
        encoding: The encoding of bytes.

    Returns:
        The str.

    Raises:
        TypeError: The value is not a string.

    Example:
        >>> as_text("a"), as_text(b"b")
        ('a', 'b')
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"[as_text] a string of Python is needed: got {shown(bytes_or_text)}.")


def as_str(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Convert bytes to a str, as `as_text`.

    Args:
        bytes_or_text: A str or bytes.
        encoding: The encoding of bytes.

    Returns:
        The str.
    """
    return as_text(bytes_or_text, encoding)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Convert any object to a str: bytes are decoded, others are `str(value)`.

    Args:
        value: Any object.
        encoding: The encoding of bytes.

    Returns:
        The str.

    Example:
        >>> as_str_any(b"a"), as_str_any(1)
        ('a', '1')
    """
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """Convert a path to a str.

    Args:
        path: A path; other objects are returned unchanged.

    Returns:
        The str.
    """
    return os.fspath(path) if hasattr(path, "__fspath__") else path


def dimension_at_index(shape: Any, index: int) -> Any:
    """Return a size of a shape.

    Args:
        shape: A `TensorShape`.
        index: The number of the axis.

    Returns:
        A `compat.v1.Dimension`.

    Example:
        >>> import samegrad as tf
        >>> dimension_at_index(tf.TensorShape([2, None]), 1)
        Dimension(None)
    """
    return Dimension(None if shape.rank is None else shape[index])


def dimension_value(dimension: Any) -> Any:
    """Return a size as a number.

    Args:
        dimension: A size, a `compat.v1.Dimension`, or None.

    Returns:
        The size, or None if it is unknown.

    Example:
        >>> import samegrad as tf
        >>> dimension_value(tf.compat.v1.Dimension(3)), dimension_value(3)
        (3, 3)
    """
    return dimension.value if isinstance(dimension, Dimension) else dimension


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Return True: there are no older readers of what a program writes.

    Args:
        year: Ignored.
        month: Ignored.
        day: Ignored.

    Returns:
        True.
    """
    return True


@contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> Iterator[None]:
    """Return a context that changes nothing.

    Args:
        year: Ignored.
        month: Ignored.
        day: Ignored.
    """
    yield


__all__ = [
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types",
    "dimension_at_index", "dimension_value", "forward_compatibility_horizon", "forward_compatible",
    "integral_types", "path_to_str", "real_types",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
