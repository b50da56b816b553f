"""Tables from values to values: tf.lookup, as far as Keras's layers call it."""

from __future__ import annotations

from typing import Any

from samegrad import lookup
from samegrad._ops.arrays import cast
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad.lookup import KeyValueTensorInitializer, TextFileIndex, TextFileInitializer
from samegrad.lookup._tables import Table, of_numbers


class _OfLayers(Table):
    """A layer's vocabulary: it accepts all integers, and no step changes it."""

    def _keys(self, keys: Any) -> Any:
        if self._key_kind == "string":
            return super()._keys(keys)
        return cast(convert_to_tensor(keys), self._key_kind)

    def _in_step(self, keys: Tensor) -> Any:
        if "string" in (self._key_kind, self._value_kind):
            raise TypeError(
                "[keras.layers] a vocabulary of strings is looked up outside of traced functions: "
                "call the layer on data, in Dataset.map or outside of a compiled model."
            )
        return of_numbers(self._values, self._value_kind, keys, self._default)


class StaticHashTable(_OfLayers, lookup.StaticHashTable):
    """A table that is filled once, or not yet."""

    def __init__(self, initializer: KeyValueTensorInitializer, default_value: Any) -> None:
        if hasattr(initializer, "_keys"):
            super().__init__(initializer, default_value)
        else:
            Table.__init__(self, initializer.key_dtype, initializer.value_dtype, default_value)


class MutableHashTable(_OfLayers, lookup.experimental.MutableHashTable):
    """A table that changes while a layer is adapted."""

    def _leave(self, what: str, keys: Any) -> None:
        if what != "lookup":
            super()._leave(what, keys)


class experimental:  # noqa: N801
    """tf.lookup.experimental."""

    MutableHashTable = MutableHashTable


__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]
