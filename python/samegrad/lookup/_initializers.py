"""Initializers of tables: keys and values, or the lines of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad._base.dtypes import element_type, string
from samegrad._base.shown import shown
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.sizes import whole
from samegrad._tensor.text import Text, array_of, is_text, leaf_of, text_of
from samegrad.errors import InvalidArgumentError, WrongTypeError
from samegrad.io._files import read_file
from samegrad.io.gfile import path_of

KEY_KINDS = ("int32", "int64", "string")
VALUE_KINDS = ("int32", "int64", "float32", "float64", "bool", "string")


def leaf(value: Any, kind: Any, who: str, what: str) -> Any:
    """A tensor or text of one dtype; Python's numbers and text take it.

    Raises:
        TypeError: It has another one.
    """
    if kind is not None and element_type(kind) is string:
        return text_of(value, who, f"{what} must be strings")
    made: Any = value if isinstance(value, Tensor) else None
    if made is None:
        if is_text(value):
            made = Text(value)
        else:
            typed = hasattr(value, "dtype")
            made = convert_to_tensor(value, None if typed else kind)
    if kind is not None and made._dtype != element_type(kind).name:
        raise WrongTypeError(
            f"[{who}] {what} must have the dtype {element_type(kind).name}: got {made._dtype}; use "
            "samegrad.cast."
        )
    return made


def check_kind(who: str, what: str, kind: Any, kinds: tuple[str, ...]) -> str:
    """The name of a dtype that tables take.

    Raises:
        TypeError: They take others.
    """
    name: str = element_type(kind).name
    if name not in kinds:
        raise TypeError(f"[{who}] {what} must be one of {', '.join(kinds)}: got {name}.")
    return name


class KeyValueTensorInitializer:
    """The keys of a table and their values.

    Args:
        keys: Numbers or text.
        values: As many.
        key_dtype: int32, int64 or string; default that of the keys.
        value_dtype: int32, int64, float32, float64, bool or string; default that of the values.
        name: Ignored.

    Raises:
        TypeError: A dtype is none of these, or not that of the keys or values.

    Example:
        >>> import samegrad as tf
        >>> tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]).value_dtype.name
        'int32'
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        who = type(self).__name__
        self._keys, self._values = (
            leaf(keys, key_dtype, who, "keys"), leaf(values, value_dtype, who, "values")
        )  # fmt: skip
        check_kind(who, "key_dtype", self._keys._dtype, KEY_KINDS)
        check_kind(who, "value_dtype", self._values._dtype, VALUE_KINDS)

    @property
    def key_dtype(self) -> Any:
        """Dtype of the keys."""
        return self._keys.dtype

    @property
    def value_dtype(self) -> Any:
        """Dtype of the values."""
        return self._values.dtype

    def entries(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the keys and the values as arrays of one axis.

        Raises:
            InvalidArgumentError: The shapes of keys and values differ.
        """
        keys, values = array_of(self._keys), array_of(self._values)
        if keys.shape != values.shape:
            raise InvalidArgumentError(
                f"[{type(self).__name__}] there must be a value for each key: got shapes "
                f"{keys.shape} and {values.shape}."
            )
        return keys.ravel(), values.ravel()


class TextFileIndex:
    """Part of a line that is a key or a value: one of these, or the index of a column.

    Attributes:
        WHOLE_LINE: The line itself.
        LINE_NUMBER: The number of the line, from 0.
    """

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(KeyValueTensorInitializer):
    r"""The keys and values of a table in the lines of a file, which is read at once.

    Args:
        filename: Its path.
        key_dtype: int64 or string.
        key_index: The column of the keys, or one of `TextFileIndex`.
        value_dtype: int64, float32, float64 or string.
        value_index: The column of the values, or one of `TextFileIndex`.
        vocab_size: How many lines count; default all.
        delimiter: One character between columns.
        name: Ignored.
        value_index_offset: The first number, where lines are numbered.

    Raises:
        NotFoundError: There is no such file.
        InvalidArgumentError: A line has too few columns, is not a number where one is needed, or
            there are fewer lines than vocab_size says; the message says which.
        ValueError: Line numbers are not int64, whole lines not text, or there is no such column.

    Example:
        >>> import samegrad as tf
        >>> tf.io.write_file("words.txt", "ant\nbee\n")
        >>> lines = tf.lookup.TextFileInitializer(
        ...     "words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
        ...     tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER)
        >>> tf.lookup.StaticHashTable(lines, -1).lookup(["bee", "cat"]).numpy()
        array([ 1, -1])
    """

    def __init__(
        self, filename: Any, key_dtype: Any, key_index: int, value_dtype: Any, value_index: int,
        vocab_size: int | None = None, delimiter: str = "\t", name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:  # fmt: skip
        who = type(self).__name__
        path = path_of(filename, who)
        if not isinstance(delimiter, str) or len(delimiter.encode()) != 1:
            raise InvalidArgumentError(
                f"[{who}] delimiter must be one character: got {shown(delimiter)}."
            )
        lines = _lines(who, path, vocab_size)
        first = whole(value_index_offset, "value_index_offset must be an integer")
        sides = []
        for what, kind, index, offset in (
            ("key", key_dtype, key_index, 0), ("value", value_dtype, value_index, first)
        ):  # fmt: skip
            at = _column(who, what, kind, index)
            sides.append(_side(who, path, lines, at, element_type(kind).name, delimiter, offset))
        super().__init__(*map(leaf_of, sides))


def _lines(who: str, path: str, most: Any) -> list[bytes]:
    lines: list[bytes] = read_file(path).numpy().split(b"\n")
    lines = [line.removesuffix(b"\r") for line in lines[: -1 if not lines[-1] else None]]
    if most is not None:
        count = whole(most, "vocab_size must be an integer")
        if count < 1:
            raise ValueError(f"[{who}] vocab_size must be 1 or more: got {count}.")
        if count > len(lines):
            raise InvalidArgumentError(
                f"[{who}] {path} must have vocab_size lines: got {len(lines)} for {count}."
            )
        lines = lines[:count]
    if b"" in lines:
        raise InvalidArgumentError(
            f"[{who}] {path} must have no empty lines: got one, line {lines.index(b'') + 1}."
        )
    return lines


def _column(who: str, what: str, kind: Any, index: Any) -> int:
    at = whole(index, f"{what}_index must be an integer")
    kinds = KEY_KINDS if what == "key" else tuple(k for k in VALUE_KINDS if k != "bool")
    name = check_kind(who, f"{what}_dtype", kind, kinds)
    wanted = {TextFileIndex.LINE_NUMBER: "int64", TextFileIndex.WHOLE_LINE: "string"}.get(at)
    if what == "key" and at == TextFileIndex.WHOLE_LINE and name == "int64":
        wanted = None  # lines that are numbers
    if at < -2 or wanted not in (None, name):
        raise ValueError(
            f"[{who}] {what}_index must be a column, LINE_NUMBER of int64 or WHOLE_LINE of string: "
            f"got {at} of {name}."
        )
    return at


def _side(
    who: str, path: str, lines: list[bytes], at: int, kind: str, delimiter: str, first: int
) -> NDArray[Any]:
    if at == TextFileIndex.LINE_NUMBER:
        return np.arange(first, first + len(lines), dtype=np.int64)
    made = np.empty(len(lines), object if kind == "string" else kind)
    for number, line in enumerate(lines):
        parts = [line] if at == TextFileIndex.WHOLE_LINE else line.split(delimiter.encode())
        if at >= len(parts):
            raise InvalidArgumentError(
                f"[{who}] {path} must have {at + 1} columns or more: got {len(parts)} in line "
                f"{number + 1}, {shown(line)}, with delimiter={delimiter!r}."
            )
        part = parts[max(at, 0)]
        try:
            made[number] = part if kind == "string" else made.dtype.type(part.decode())
        except (ValueError, OverflowError):
            raise InvalidArgumentError(
                f"[{who}] {path} must have numbers of {kind} in column {at}: got {shown(part)} in "
                f"line {number + 1}."
            ) from None
    return made


__all__ = ["KeyValueTensorInitializer", "TextFileIndex", "TextFileInitializer"]
