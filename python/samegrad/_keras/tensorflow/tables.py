"""Tables from values to values: tf.lookup, as far as Keras's layers call it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._keras.tensorflow.text import Text, is_text
from samegrad._tensor.tensor import Tensor


class TextFileIndex:
    """What of a line of a file is a key or a value."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class KeyValueTensorInitializer:
    """The keys and the values of a table."""

    keys: Any = ()
    values: Any = ()

    def __init__(self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None):
        self.keys, self.values = keys, values


class TextFileInitializer(KeyValueTensorInitializer):
    """The lines of a file and their numbers."""

    def __init__(
        self,
        filename: str,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        value_index_offset: int = 0,
    ) -> None:
        with open(filename, encoding="utf-8") as file:
            lines = file.read().splitlines()
        numbers = np.arange(len(lines), dtype=np.int64)
        whole = key_index == TextFileIndex.WHOLE_LINE
        words = Text(lines) if "string" in (key_dtype, value_dtype) else np.array(lines, np.int64)
        if whole:
            super().__init__(words, numbers + value_index_offset)
        else:
            super().__init__(numbers + value_index_offset, words)


def _listed(values: Any) -> list[Any]:
    """Python's values: those of text as strings."""
    if is_text(values):
        return [*Text(values).strings.ravel()]
    found: list[Any] = np.asarray(values).ravel().tolist()
    return found


def _tensor(values: Iterable[Any], text: bool) -> Any:
    values = list(values)
    return Text(np.array(values, object)) if text else tf.constant(np.array(values, np.int64))


class _Table:
    """A dict whose keys and values are text or whole numbers."""

    def __init__(self, text_keys: bool, text_values: bool, default: Any) -> None:
        self._text = text_keys, text_values
        self._default = default
        self._values: dict[Any, Any] = {}

    def size(self) -> Tensor:
        """How many keys there are."""
        return tf.constant(len(self._values), "int64")

    def export(self) -> tuple[Any, Any]:
        """The keys and their values."""
        text_keys, text_values = self._text
        return _tensor(self._values, text_keys), _tensor(self._values.values(), text_values)

    def lookup(self, keys: Any) -> Any:
        """The values of the keys, and the default of those that are not there."""
        if not any(self._text):
            return self._numbers(tf.cast(keys, "int64"))
        if isinstance(keys, Tensor) and keys._symbolic:
            raise TypeError(
                "[keras.layers] a vocabulary of text is looked up outside of traced functions: "
                "call the layer on data, in Dataset.map or outside of a compiled model."
            )
        found = [self._values.get(key, self._default) for key in _listed(keys)]
        shape = tuple(keys.shape)
        if self._text[1]:
            return Text(np.array(found, object).reshape(shape))
        return tf.constant(np.array(found, np.int64).reshape(shape))

    def _numbers(self, keys: Tensor) -> Tensor:
        """Whole numbers to whole numbers, in a traced function, too."""
        default = tf.constant(int(self._default), "int64")
        if not self._values:
            return tf.zeros_like(keys) + default
        ordered = sorted(self._values)
        known = tf.constant(np.array(ordered, np.int64))
        values = tf.constant(np.array([self._values[key] for key in ordered], np.int64))
        flat = tf.reshape(keys, (-1,))
        places = tf.minimum(tf.cast(tf.searchsorted(known, flat), "int32"), len(ordered) - 1)
        hits = tf.equal(tf.gather(known, places), flat)
        found = tf.where(hits, tf.gather(values, places), default)
        return tf.reshape(found, tf.shape(keys)) if keys.shape.rank != 1 else found


class StaticHashTable(_Table):
    """A table that is filled once.

    Args:
        initializer: Its keys and values.
        default_value: Of keys that are not there.
    """

    def __init__(self, initializer: KeyValueTensorInitializer, default_value: Any) -> None:
        keys, values = initializer.keys, initializer.values
        text_values = isinstance(default_value, str | bytes) or is_text(values)
        text_keys = is_text(keys) or getattr(initializer, "_key_dtype", None) == "string"
        super().__init__(text_keys, text_values, default_value)
        self._values = dict(zip(_listed(keys), _listed(values), strict=True))


class MutableHashTable(_Table):
    """A table that changes."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any) -> None:
        super().__init__(key_dtype == "string", value_dtype == "string", default_value)

    def insert(self, keys: Any, values: Any) -> None:
        """Sets the values of the keys."""
        self._values.update(zip(_listed(keys), _listed(values), strict=True))

    def remove(self, keys: Any) -> None:
        """Takes keys out."""
        for key in _listed(keys):
            self._values.pop(key, None)


class experimental:  # noqa: N801
    """tf.lookup.experimental."""

    MutableHashTable = MutableHashTable
