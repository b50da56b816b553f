"""Tables that say for each key its value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad import math
from samegrad._base.dtypes import element_type, int64, string
from samegrad._base.shown import shown
from samegrad._context.python_runs import leave_trace
from samegrad._ops.arrays import cast, reshape, shape, where
from samegrad._ops.creation import zeros_like
from samegrad._ops.gather import gather
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.sizes import whole
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.text import array_of, leaf_of
from samegrad.errors import FailedPreconditionError, InvalidArgumentError
from samegrad.lookup._initializers import (
    KEY_KINDS,
    VALUE_KINDS,
    KeyValueTensorInitializer,
    check_kind,
    leaf,
)
from samegrad.math._order import searchsorted
from samegrad.strings._hashing import buckets

Array = NDArray[Any]


class Table:
    """Map from keys, which are integers or strings, to values."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any) -> None:
        who = type(self).__name__
        self._key_kind = check_kind(who, "key_dtype", key_dtype, KEY_KINDS)
        self._value_kind = check_kind(who, "value_dtype", value_dtype, VALUE_KINDS)
        self._default = leaf(default_value, self._value_kind, who, "default_value")
        self._values: dict[Any, Any] = {}

    @property
    def key_dtype(self) -> Any:
        """Dtype of the keys."""
        return element_type(self._key_kind)

    @property
    def value_dtype(self) -> Any:
        """Dtype of the values."""
        return element_type(self._value_kind)

    @property
    def default_value(self) -> Any:
        """Value of missing keys."""
        return self._default

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of keys, an int64 tensor of shape [].

        Example:
            >>> import samegrad as tf
            >>> entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
            >>> int(tf.lookup.StaticHashTable(entries, default_value=-1).size())
            2
        """
        return convert_to_tensor(len(self._values), "int64")

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """Return all keys, shape [n], and their values in the same order."""
        keys = np.empty(len(self._values), _numpy_kind(self._key_kind))
        keys[:] = list(self._values)
        return leaf_of(keys), leaf_of(self._array(list(self._values.values()), (len(keys),)))

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Look up the values of keys, with the default for missing ones.

        Args:
            keys: Tensor of integers or strings of any shape, or a sparse or ragged tensor.
            name: Ignored.

        Returns:
            Values in the shape of keys; sparse or ragged as keys are.

        Raises:
            TypeError: The keys have another dtype.

        Example:
            >>> import samegrad as tf
            >>> entries = tf.lookup.KeyValueTensorInitializer([3, 5], ["three", "five"])
            >>> tf.lookup.StaticHashTable(entries, "?").lookup([[5], [6]]).numpy().tolist()
            [[b'five'], [b'?']]
        """
        return self._of_any(keys, self._default)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def _of_any(self, keys: Any, default: Any) -> Any:
        if isinstance(keys, SparseTensor):
            found = self._of_any(keys.values, default)
            return SparseTensor(keys.indices, found, keys.dense_shape)
        if isinstance(keys, RaggedTensor):
            return keys.with_flat_values(self._of_any(keys.flat_values, default))
        given = self._keys(keys)
        if isinstance(given, Tensor) and given._symbolic:
            return self._in_step(given)
        return self._of_known(array_of(given), default)

    def _keys(self, keys: Any) -> Any:
        return leaf(keys, self._key_kind, f"{type(self).__name__}.lookup", "keys")

    def _of_known(self, keys: Array, default: Any) -> Any:
        none = array_of(default)
        own = none.shape != array_of(self._default).shape  # a default for each key
        if own and none.shape != (*keys.shape, *array_of(self._default).shape):
            raise InvalidArgumentError(
                f"[{type(self).__name__}.lookup] there must be a default for each key: got shapes "
                f"{none.shape} and {keys.shape}."
            )
        rows = none.reshape(keys.size, *none.shape[keys.ndim :]) if own else [none] * keys.size
        pairs = zip(keys.ravel().tolist(), rows, strict=True)
        return leaf_of(self._array([self._values.get(*pair) for pair in pairs], keys.shape))

    def _array(self, values: list[Any], sizes: tuple[int, ...]) -> Array:
        each = array_of(self._default).shape
        made = np.empty((len(values), *each), _numpy_kind(self._value_kind))
        for i, value in enumerate(values):
            made[i] = value[()] if isinstance(value, np.ndarray) else value
        return made.reshape((*sizes, *each))

    def _in_step(self, keys: Tensor) -> Any:
        """The values of keys that a step computes: Python looks them up."""
        leave_trace(
            f"[{type(self).__name__}.lookup] a step of replicas has numbers only, and runs without "
            f"Python: got {shown(keys)}; look keys up in Dataset.map."
        )
        raise TypeError(  # a trace of something else, which has no values
            f"[{type(self).__name__}.lookup] keys must be known: got {shown(keys)}; call it "
            "outside of the traced function."
        )

    def _set(self, keys: Array, values: Array) -> None:
        """Keys and, along the first axis, their values."""
        made = dict(self._values)
        made.update(zip(keys.ravel().tolist(), values, strict=True))
        self._values = made


class StaticHashTable(Table):
    """A table that is filled once.

    In traced functions integers that are traced tensors can be looked up. Functions that look up
    other keys fall back to Python.

    Args:
        initializer: Its keys and values.
        default_value: Of keys that are not there, of the values' dtype.
        name: Ignored.
        experimental_is_anonymous: Ignored.

    Raises:
        TypeError: The default has another dtype, or the initializer is not an initializer of
            tables.
        FailedPreconditionError: A key has two different values.

    Example:
        >>> import samegrad as tf
        >>> entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
        >>> table = tf.lookup.StaticHashTable(entries, default_value=-1)
        >>> table.lookup(tf.constant(["b", "z"])).numpy()
        array([ 2, -1], dtype=int32)
    """

    def __init__(
        self, initializer: KeyValueTensorInitializer, default_value: Any, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        who = type(self).__name__
        _check_initializer(who, initializer)
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value)
        if self._default._rank:
            raise InvalidArgumentError(
                f"[{who}] default_value must be one value: got shape {self._default._shape}."
            )
        for key, value in zip(*initializer.entries(), strict=True):
            key = key.item() if isinstance(key, np.generic) else key
            if self._values.setdefault(key, value) != value:
                raise FailedPreconditionError(
                    f"[{who}] a key must have one value: got {shown(key)} with "
                    f"{shown(self._values[key])} and {shown(value)}."
                )

    def _in_step(self, keys: Tensor) -> Any:
        if "string" in (self._key_kind, self._value_kind):
            return super()._in_step(keys)
        return of_numbers(self._values, self._value_kind, keys, self._default)


def of_numbers(values: dict[Any, Any], kind: str, keys: Tensor, default: Tensor) -> Tensor:
    """Look up integers that a traced function computes."""
    if not values:
        return cast(zeros_like(keys), kind) + default
    ordered = sorted(values)
    known = convert_to_tensor(np.array(ordered, keys._dtype))
    found = convert_to_tensor(np.array([values[key] for key in ordered], kind))
    flat = reshape(keys, (-1,))
    places = math.minimum(cast(searchsorted(known, flat), "int32"), len(ordered) - 1)
    hits = math.equal(gather(known, places), flat)
    made = where(hits, gather(found, places), default)
    return reshape(made, shape(keys)) if keys.shape.rank != 1 else made


class StaticVocabularyTable(Table):
    """A table from words to their numbers; each other word has one of some further numbers.

    Those are chosen by a hash of the word (FarmHash's fingerprint, as in TensorFlow); of numbers,
    of the text that they are written as.

    Args:
        initializer: Words and their int64 numbers, 0 to their count; None: empty.
        num_oov_buckets: How many further numbers there are, 1 or more.
        lookup_key_dtype: That of the keys looked up, int32, int64 or string; default that of the
            initializer.
        name: Ignored.
        experimental_is_anonymous: Ignored.

    Raises:
        TypeError: The numbers are not int64, or the keys of another kind than those looked up.
        ValueError: num_oov_buckets is not positive.

    Example:
        >>> import numpy as np
        >>> import samegrad as tf
        >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b"], np.array([0, 1]))
        >>> tf.lookup.StaticVocabularyTable(words, 3).lookup(["b", "hello"]).numpy()
        array([1, 3])
    """

    def __init__(
        self, initializer: KeyValueTensorInitializer | None, num_oov_buckets: int,
        lookup_key_dtype: Any = None, name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        who = type(self).__name__
        self._buckets = whole(num_oov_buckets, "num_oov_buckets must be an integer")
        if self._buckets < 1:
            raise ValueError(
                f"[{who}] num_oov_buckets must be 1 or more: got {self._buckets}; without them "
                "use StaticHashTable."
            )
        if initializer is None:
            super().__init__(string if lookup_key_dtype is None else lookup_key_dtype, int64, -1)
            return
        _check_initializer(who, initializer)
        kind = initializer.key_dtype if lookup_key_dtype is None else lookup_key_dtype
        texts = kind == string, initializer.key_dtype == string
        if initializer.value_dtype != int64 or texts[0] != texts[1]:
            raise TypeError(
                f"[{who}] the values must be int64, and keys of one kind: got "
                f"{initializer.value_dtype.name} values, {initializer.key_dtype.name} keys and "
                f"lookup_key_dtype={shown(lookup_key_dtype)}."
            )
        super().__init__(kind, int64, -1)
        self._values = StaticHashTable(initializer, -1)._values

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of ids, those of the words and of the buckets: int64, shape []."""
        return convert_to_tensor(len(self._values) + self._buckets, "int64")

    def _of_known(self, keys: Array, default: Any) -> Any:
        written = keys if keys.dtype == object else keys.astype(str).astype(object)
        others = len(self._values) + buckets(written, self._buckets)
        return super()._of_known(keys, convert_to_tensor(np.asarray(others, np.int64)))


class MutableHashTable(Table):
    """A table that changes.

    A `tf.function` that uses it is run by Python, operation by operation. Checkpoints do not hold
    it: save what `export` gives.

    Args:
        key_dtype: int32, int64 or string.
        value_dtype: int32, int64, float32, float64, bool or string.
        default_value: Of keys that are not there; of the shape that each value has.
        name: Ignored.
        checkpoint: Ignored.
        experimental_is_anonymous: Ignored.

    Raises:
        TypeError: A dtype is none of these, or the default has another one.

    Example:
        >>> import samegrad as tf
        >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        >>> table.insert(["a", "b"], [1, 2])
        >>> table.remove(["a"])
        >>> table.lookup(["a", "b"]).numpy()
        array([-1,  2])
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any,
        name: str = "MutableHashTable", checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype, default_value)

    def lookup(  # type: ignore[override]  # TensorFlow's order
        self, keys: Any, dynamic_default_values: Any = None, name: str | None = None
    ) -> Any:
        """Look up the values of keys, with the default for missing ones.

        Args:
            keys: Tensor of integers or strings of any shape, or a sparse or ragged tensor.
            dynamic_default_values: Default of each key, instead of the table's.
            name: Ignored.

        Returns:
            Values in the shape of keys; sparse or ragged as keys are.

        Raises:
            TypeError: keys or dynamic_default_values have another dtype.
        """
        self._leave("lookup", keys)
        if dynamic_default_values is None:
            return self._of_any(keys, self._default)
        who = f"{type(self).__name__}.lookup"
        default = leaf(dynamic_default_values, self._value_kind, who, "dynamic_default_values")
        return self._of_any(keys, default)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Set the values of keys, replacing those of existing keys.

        Args:
            keys: Tensor of integers or strings.
            values: Value of each key.
            name: Ignored.

        Raises:
            TypeError: The dtypes are not the table's.
            InvalidArgumentError: The number of values differs from that of keys.

        Example:
            >>> import samegrad as tf
            >>> table = tf.lookup.experimental.MutableHashTable("string", "int64", default_value=-1)
            >>> table.insert(["a", "b"], [1, 2])
            >>> table.lookup(["b", "z"]).numpy().tolist()
            [2, -1]
        """
        self._leave("insert", keys)
        who = f"{type(self).__name__}.insert"
        at = array_of(leaf(keys, self._key_kind, who, "keys"))
        made = array_of(leaf(values, self._value_kind, who, "values"))
        each = array_of(self._default).shape
        if made.shape != (*at.shape, *each):
            raise InvalidArgumentError(
                f"[{who}] there must be a value for each key: got values of shape {made.shape} "
                f"for keys of shape {at.shape}, where one value has shape {each}."
            )
        self._set(at, made.reshape(at.size, *each))

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Remove keys; ignore missing ones.

        Args:
            keys: Tensor of integers or strings.
            name: Ignored.

        Example:
            >>> import samegrad as tf
            >>> table = tf.lookup.experimental.MutableHashTable("string", "int64", default_value=-1)
            >>> table.insert(["a", "b"], [1, 2])
            >>> table.remove(["a"])
            >>> int(table.size())
            1
        """
        self._leave("remove", keys)
        gone = array_of(leaf(keys, self._key_kind, f"{type(self).__name__}.remove", "keys"))
        out = set(gone.ravel().tolist())
        self._values = {key: value for key, value in self._values.items() if key not in out}

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of keys, an int64 tensor of shape []."""
        self._leave("size", None)
        return super().size()

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """Return all keys, shape [n], and their values in the same order."""
        self._leave("export", None)
        return super().export()

    def _leave(self, what: str, keys: Any) -> None:
        """Nothing of a table that changes may stay in a program."""
        leave_trace(
            f"[{type(self).__name__}.{what}] a step of replicas runs without Python: got "
            f"{shown(keys)}; look keys up in Dataset.map."
        )


class DenseHashTable(MutableHashTable):
    """A `MutableHashTable` with two keys that it never holds.

    `export()` returns the entries; TensorFlow's returns all buckets.

    Args:
        key_dtype: int32, int64 or string.
        value_dtype: int32, int64, float32, float64, bool or string.
        default_value: Of keys that are not there; of the shape that each value has.
        empty_key: A key that no call may use.
        deleted_key: Another such key.
        initial_num_buckets: Ignored.
        name: Ignored.
        checkpoint: Ignored.
        experimental_is_anonymous: Ignored.

    Raises:
        InvalidArgumentError: empty_key and deleted_key are equal.
        TypeError: A dtype is none of these, or a key or the default has another one.

    Example:
        >>> import samegrad as tf
        >>> table = tf.lookup.experimental.DenseHashTable(
        ...     tf.string, tf.int64, default_value=-1, empty_key="", deleted_key="$")
        >>> table.insert(["a", "b"], [1, 2])
        >>> table.lookup(["b", "z"]).numpy()
        array([ 2, -1])
    """

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, empty_key: Any,
        deleted_key: Any, initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable", checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(key_dtype, value_dtype, default_value)
        given = {"empty_key": empty_key, "deleted_key": deleted_key}
        self._reserved = {
            name: array_of(leaf(key, self._key_kind, type(self).__name__, name)).tolist()
            for name, key in given.items()
        }
        if self._reserved["empty_key"] == self._reserved["deleted_key"]:
            raise InvalidArgumentError(
                f"[{type(self).__name__}] empty_key and deleted_key must differ: got "
                f"{shown(empty_key)} for both."
            )

    def lookup(self, keys: Any, name: str | None = None) -> Any:  # type: ignore[override]
        """Look up the values of keys, with the default for missing ones.

        Args:
            keys: Tensor of integers or strings of any shape, or a sparse or ragged tensor.
            name: Ignored.

        Returns:
            Values in the shape of keys; sparse or ragged as keys are.

        Raises:
            InvalidArgumentError: A key is the empty or the deleted one.
            TypeError: keys have another dtype.
        """
        return super().lookup(keys)

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Set the values of keys, as `insert` does.

        Args:
            keys: Tensor of integers or strings.
            values: Value of each key.
            name: Ignored.
        """
        self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """Remove keys, as `remove` does.

        Args:
            keys: Tensor of integers or strings.
            name: Ignored.
        """
        self.remove(keys, name)

    def _leave(self, what: str, keys: Any) -> None:
        super()._leave(what, keys)
        found = getattr(keys, "values", keys)  # of a sparse or ragged tensor
        at = leaf([] if found is None else found, self._key_kind, what, "keys")
        held = array_of(at).ravel().tolist()
        for name, key in self._reserved.items():
            if any(each == key for each in held):
                raise InvalidArgumentError(
                    f"[{type(self).__name__}.{what}] the {name} cannot be a key of the table: got "
                    f"{shown(key)}; make the table with another one."
                )


def _check_initializer(who: str, initializer: Any) -> None:
    if not isinstance(initializer, KeyValueTensorInitializer):
        raise TypeError(
            f"[{who}] initializer must be a KeyValueTensorInitializer or TextFileInitializer: got "
            f"{shown(initializer)}."
        )


def _numpy_kind(kind: str) -> Any:
    return object if kind == "string" else np.dtype(kind)


__all__ = ["DenseHashTable", "MutableHashTable", "StaticHashTable", "StaticVocabularyTable"]
