"""Whole files, and numbers of their bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.file_errors import explained_errors
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.host_values import on_host
from samegrad._tensor.text import Text, of_bytes, text_of
from samegrad.io.gfile import existing, glob, path_of


def _native_read(read: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return _core.HostFunction.read_file()


@on_host(_native_read)
def read_file(filename: Any, name: str | None = None) -> Text:
    """Read a file.

    Args:
        filename: The path.
        name: Ignored.

    Returns:
        A string scalar: the bytes of the file.

    Raises:
        NotFoundError: There is no such file.
        TypeError: filename is not a path.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("a.txt", "text")
        >>> tf.io.read_file("a.txt").numpy()
        b'text'
    """
    path = path_of(filename, "read_file")
    try:
        with open(path, "rb", buffering=0) as file:  # as a whole: no buffer in between
            return of_bytes(file.readall(), path)
    except (OSError, ValueError):  # once more, for what is said of it
        existing(path, "read_file")
        with explained_errors("tf.io.read_file", "read", Path(path), "Choose another file"):
            return of_bytes(Path(path).read_bytes(), path)


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Write a string to a file; missing folders are created.

    Args:
        filename: The path.
        contents: A string scalar.
        name: Ignored.

    Raises:
        TypeError: filename is not a path, or contents is not a string.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("folder/a.txt", "text")
        >>> tf.io.gfile.exists("folder/a.txt")
        True
    """
    path = path_of(filename, "write_file")
    data = text_of(contents, "tf.io.write_file", "contents must be strings")
    if data._rank:
        raise ValueError(f"[tf.io.write_file] contents must be one string: got {data._shape}.")
    with explained_errors("tf.io.write_file", "write", Path(path), "Choose another path"):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        Path(path).write_bytes(data.numpy())


def matching_files(pattern: Any, name: str | None = None) -> Text:
    """Return the paths that match a pattern, or one of several, in alphabetical order.

    Args:
        pattern: A glob pattern, or a list of them.
        name: Ignored.

    Returns:
        A string vector.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("a.txt", "text")
        >>> tf.io.matching_files("*.txt").numpy().tolist()
        [b'a.txt']
    """
    return Text(glob(pattern))


@on_host()
def decode_raw(
    input_bytes: Any, out_type: DTypeLike, little_endian: bool = True,
    fixed_length: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    r"""Reinterpret bytes as numbers.

    Args:
        input_bytes: Strings of any shape, all of one length.
        out_type: The dtype of the numbers.
        little_endian: If True, the lowest byte of a number is the first one.
        fixed_length: The number of bytes to read of each string: longer ones are cut, shorter ones
            padded with zeros.
        name: Ignored.

    Returns:
        A tensor of shape `input_bytes.shape + [numbers]`.

    Raises:
        InvalidArgumentError: Strings differ in length, or it is not a multiple of the dtype's size.

    Example:
        >>> import samegrad as tf
        >>> tf.io.decode_raw(b"\x01\x00\x02\x00", tf.int16).numpy()
        array([1, 2], dtype=int16)
    """
    who = "tf.io.decode_raw"
    texts = text_of(input_bytes, who, "input_bytes must be strings").encoded
    kind = np.dtype(as_dtype(out_type).as_numpy_dtype)
    parts = list(texts.ravel())
    if fixed_length is not None:
        parts = [part[:fixed_length].ljust(fixed_length, b"\0") for part in parts]
    sizes = {len(part) for part in parts} or {0}
    if len(sizes) > 1 or min(sizes) % kind.itemsize:
        raise InvalidArgumentError(
            f"[{who}] all strings must have one length, a multiple of {kind.itemsize}: got lengths "
            f"{shown(sorted(sizes))}; see fixed_length."
        )
    stored = kind if little_endian else kind.newbyteorder(">")
    numbers = np.frombuffer(b"".join(parts), stored).astype(kind)
    return Tensor(numbers.reshape(*texts.shape, -1) if parts else numbers, copy=False)
