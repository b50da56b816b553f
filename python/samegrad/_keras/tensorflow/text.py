"""Text for Keras's layers that turn it into numbers: known values, never part of a traced step."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._keras.tensorflow.hashing import buckets
from samegrad._tensor.tensor import Tensor, TensorShape


class StringType:
    """The type of text; equals its name."""

    name = "string"
    is_integer = is_floating = is_bool = False

    def __eq__(self, other: object) -> bool:
        return other is self or other in ("string", "str")

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return "samegrad.string"


STRING = StringType()


def _decoded(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


class Text:
    """An array of text.

    Args:
        values: Text, bytes, or lists and arrays of them.

    Example:
        >>> Text(["a", "b"]).shape
        (2,)
    """

    dtype = STRING

    def __init__(self, values: Any) -> None:
        found = values.strings if isinstance(values, Text) else np.asarray(values)
        self._array: Any = np.empty(found.shape, object)
        for place in np.ndindex(found.shape):
            self._array[place] = _decoded(found[place])

    @property
    def shape(self) -> TensorShape:
        """The sizes of the axes."""
        return TensorShape(self._array.shape)

    @property
    def strings(self) -> Any:
        """A NumPy array of Python's strings."""
        return self._array

    def numpy(self) -> Any:
        """A NumPy array of bytes, as that of TensorFlow's text."""
        encoded = np.empty(self._array.shape, object)
        for place in np.ndindex(encoded.shape):
            encoded[place] = self._array[place].encode("utf-8")
        return encoded if encoded.shape else encoded[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.numpy(), object)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Text]:
        return iter([Text(row) for row in self._array])

    def __getitem__(self, key: Any) -> Text:
        return Text(self._array[key])

    def __repr__(self) -> str:
        return f"<text: shape={tuple(self.shape)}, {self._array.tolist()!r}>"


class Ragged:
    """Rows of different lengths: the values of all, and where each begins and ends.

    Args:
        flat_values: Of all rows, one after the other.
        lengths: Of the rows.
    """

    def __init__(self, flat_values: Any, lengths: Sequence[int]) -> None:
        self.flat_values = self.values = flat_values
        self._ends = np.cumsum([0, *lengths])

    @property
    def dtype(self) -> Any:
        """That of the values."""
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The number of rows, and None."""
        return tuple.__new__(TensorShape, (self.nrows(), None))

    def nrows(self) -> int:
        """How many rows there are."""
        return len(self._ends) - 1

    def __len__(self) -> int:
        return self.nrows()

    def __iter__(self) -> Iterator[Any]:
        for begin, end in zip(self._ends[:-1], self._ends[1:], strict=True):
            yield self.flat_values[int(begin) : int(end)]

    def with_values(self, flat_values: Any) -> Ragged:
        """The same rows of other values."""
        return Ragged(flat_values, np.diff(self._ends).tolist())

    def to_tensor(self, default_value: Any = 0, shape: Any = None) -> Tensor:
        """The rows as a matrix, the shorter ones filled up.

        Args:
            default_value: What they are filled up with.
            shape: Its sizes; None in the last place: the longest row's.
        """
        lengths = np.diff(self._ends)
        width = None if shape is None else shape[-1]
        width = int(max(lengths, default=0)) if width is None else width
        values = np.asarray(self.flat_values)
        matrix = np.full((self.nrows(), width), default_value, values.dtype)
        for row, begin, length in zip(matrix, self._ends[:-1], lengths, strict=True):
            count = min(length, width)
            row[:count] = values[begin : begin + count]
        return tf.constant(matrix)

    def to_list(self) -> list[Any]:
        """The rows as lists."""
        return [np.asarray(row).tolist() for row in self]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The rows filled up with -1, which is no place in a vocabulary."""
        return self.to_tensor(-1).numpy()


def is_text(value: Any) -> bool:
    """Whether the value is text, or a list or an array of text."""
    if isinstance(value, Text | str | bytes):
        return True
    if isinstance(value, list | tuple) and value:
        return is_text(value[0])
    return isinstance(value, np.ndarray | np.generic) and (
        value.dtype.kind in "US"
        or (value.dtype.kind == "O" and value.size > 0 and is_text(value.ravel()[0]))
    )


def ragged_constant(rows: Sequence[Any], dtype: Any = None) -> Ragged:
    """Rows of different lengths, of text or of numbers."""
    flat = [value for row in rows for value in row]
    values = Text(flat) if is_text(flat) else tf.constant(flat, dtype)
    return Ragged(values, [len(row) for row in rows])


def _each(values: Any, function: Callable[[str], str]) -> Any:
    if isinstance(values, Ragged):
        return values.with_values(_each(values.flat_values, function))
    array = Text(values).strings
    changed = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        changed[place] = function(array[place])
    return Text(changed)


def _rows(values: Any, parts: Callable[[str], list[str]]) -> Any:
    array = Text(values).strings
    if not array.ndim:
        return Text(parts(array[()]))
    rows = [parts(value) for value in array]
    return Ragged(Text(np.array([x for row in rows for x in row], object)), [*map(len, rows)])


class strings:  # noqa: N801
    """tf.strings, as far as Keras's layers call it."""

    @staticmethod
    def lower(input: Any, encoding: str = "") -> Any:
        """Small letters; those of other alphabets only with an encoding."""
        small = str.maketrans({chr(c): chr(c + 32) for c in range(65, 91)})
        return _each(input, str.lower if encoding else lambda x: x.translate(small))

    @staticmethod
    def upper(input: Any, encoding: str = "") -> Any:
        """Capital letters."""
        return _each(input, str.upper)

    @staticmethod
    def regex_replace(input: Any, pattern: str, rewrite: str, replace_global: bool = True) -> Any:
        """What matches becomes `rewrite`."""
        count = 0 if replace_global else 1
        return _each(input, lambda x: re.sub(pattern, rewrite, x, count=count))

    @staticmethod
    def split(input: Any, sep: str | None = None, maxsplit: int = -1) -> Any:
        """The words of each."""
        return _rows(input, lambda x: x.split(sep or None, maxsplit))

    @staticmethod
    def unicode_split(input: Any, input_encoding: str) -> Any:
        """The letters of each."""
        return _rows(input, list)

    @staticmethod
    def ngrams(data: Any, ngram_width: Any, separator: str = " ") -> Any:
        """All runs of so many words, joined."""
        widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)

        def runs(words: Any) -> list[str]:
            return [
                separator.join(words[i : i + width])
                for width in widths
                for i in range(len(words) - width + 1)
            ]

        rows = [runs([*row.strings]) for row in data]
        if isinstance(data, Ragged):
            return Ragged(Text([x for row in rows for x in row]), [*map(len, rows)])
        return Text(rows)

    @staticmethod
    def as_string(input: Any) -> Text:
        """Numbers as text."""
        return Text(np.vectorize(str, otypes=[object])(_known(input, "as_string")))

    @staticmethod
    def to_hash_bucket_fast(input: Any, num_buckets: int, name: Any = None) -> Tensor:
        """The bucket of each."""
        return tf.constant(buckets(Text(input).strings, num_buckets))

    @staticmethod
    def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: Any = None) -> Tensor:
        """The bucket of each, by a hash that a key chooses."""
        return tf.constant(buckets(Text(input).strings, num_buckets, key))

    @staticmethod
    def format(template: str, inputs: Any) -> str:
        """The template with values in the places of {}."""
        return template.format(*(np.asarray(x) for x in inputs))


def _known(value: Any, what: str) -> Any:
    if isinstance(value, Tensor) and value._symbolic:
        raise TypeError(
            f"[keras.layers] text is made of known values ({what}): call the layer on data, in "
            "Dataset.map or outside of a model that is compiled."
        )
    return np.asarray(value)
