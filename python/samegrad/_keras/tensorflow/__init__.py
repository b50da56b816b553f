"""Module `tensorflow` of Keras's own files: samegrad, and string ops of its data layers.

TensorFlow itself is never imported.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np

import samegrad
from samegrad import errors
from samegrad._base.dtypes import element_type
from samegrad._base.shown import shown
from samegrad._keras.tensorflow import tables as lookup
from samegrad._keras.tensorflow.text import (
    STRING as string,  # noqa: F401, N811
)
from samegrad._keras.tensorflow.text import (
    Ragged,
    Text,
    is_text,
    known,
    strings,
)
from samegrad.strings._hashing import fingerprint, joined


class _Kind(type):
    """A class whose instances are those of other classes."""

    kinds: tuple[type, ...]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.kinds)


class Tensor(metaclass=_Kind):
    """Tensors, and text."""

    kinds = (samegrad.Tensor, Text)


class RaggedTensor(metaclass=_Kind):
    """Rows of different lengths."""

    kinds = (Ragged,)


class SparseTensor(metaclass=_Kind):
    """Placeholder class: values are never sparse here."""

    kinds = ()


class TypeSpec(metaclass=_Kind):
    """There are none but TensorSpec."""

    kinds = (samegrad.TensorSpec,)


class DType(metaclass=_Kind):
    """Types of elements, that of text with them."""

    kinds = (samegrad.DType,)


def executing_eagerly() -> bool:
    """True: Keras's layers for data never change to TensorFlow."""
    return True


def control_dependencies(inputs: Any) -> Any:
    """A context: what is checked is checked already."""
    return contextlib.nullcontext()


def as_dtype(dtype: Any) -> Any:
    """The type of that name."""
    return element_type(dtype)


def is_tensor(x: Any) -> bool:
    """Tell if the value is a tensor, text or ragged."""
    return isinstance(x, Text | Ragged) or samegrad.is_tensor(x)


def convert_to_tensor(value: Any, dtype: Any = None, name: Any = None) -> Any:
    """The value as a tensor, or as text."""
    if isinstance(value, Ragged):
        return value
    if isinstance(value, samegrad.Tensor) and dtype == "string":
        raise TypeError(
            f"[keras.layers] a layer of strings takes no numbers: got {shown(value)}; pass strings,"
            " or use tf.strings.as_string before the model."
        )
    if is_text(value) or dtype == "string":
        return value if isinstance(value, Text) else Text(value)
    return samegrad.convert_to_tensor(value, dtype)


def constant(value: Any, dtype: Any = None, shape: Any = None, name: Any = None) -> Any:
    """A tensor, or text."""
    made = convert_to_tensor(value, dtype)
    return made if shape is None else reshape(made, shape)


def cast(x: Any, dtype: Any, name: Any = None) -> Any:
    """The value in another type; numbers do not become text."""
    if dtype == "string":
        return convert_to_tensor(x, "string")
    if isinstance(x, Ragged):
        return x.with_values(samegrad.cast(x.flat_values, dtype))
    return samegrad.cast(x, dtype)


def _of_both(name: str) -> Any:
    """The function of samegrad, and for text NumPy's of the same name."""

    def function(x: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(x, Text):
            return Text(getattr(np, name)(x.strings, *args, **kwargs))
        return getattr(samegrad, name)(x, *args, **kwargs)

    function.__name__, function.__doc__ = name, f"samegrad.{name}, also of strings."
    return function


expand_dims, squeeze, reshape = _of_both("expand_dims"), _of_both("squeeze"), _of_both("reshape")


def identity(x: Any, name: Any = None) -> Any:
    """The value."""
    return x


def shape(x: Any, out_type: Any = "int32") -> Any:
    """The sizes."""
    return samegrad.constant(tuple(x.shape), out_type) if isinstance(x, Text) else samegrad.shape(
        x, out_type=out_type
    )  # fmt: skip


def size(x: Any) -> Any:
    """Return the number of elements."""
    if is_text(x):
        return samegrad.constant(Text(x).strings.size, "int32")
    return samegrad.size(x)


def equal(x: Any, y: Any) -> Any:
    """Compare two values element by element."""
    if is_text(x) or is_text(y):
        return samegrad.constant(np.asarray(Text(x).strings == Text(y).strings, bool))
    return samegrad.equal(x, y)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Choose between two values by a condition, or return the indices where it holds."""
    if x is None:
        return samegrad.where(condition)
    if isinstance(x, Text) or isinstance(y, Text):
        return Text(np.where(np.asarray(condition), Text(x).strings, Text(y).strings))
    return samegrad.where(condition, x, y)


def gather(params: Any, indices: Any, **kwargs: Any) -> Any:
    """Rows by their places."""
    if isinstance(params, Text):
        return params[np.asarray(indices)]
    return samegrad.gather(params, indices, **kwargs)


def gather_nd(params: Any, indices: Any) -> Any:
    """Elements by their places."""
    if isinstance(params, Text):
        return params[tuple(np.asarray(indices).T)]
    return samegrad.gather_nd(params, indices)


def concat(values: Any, axis: int) -> Any:
    """Values one after the other."""
    if any(isinstance(value, Text) for value in values):
        return Text(np.concatenate([Text(value).strings for value in values], axis))
    return samegrad.concat(list(values), axis)


def unique(x: Any) -> Any:
    """The different values, in the order in which they come."""
    if isinstance(x, Text):
        return Text(np.array([*dict.fromkeys(x.strings)], object)), None
    return samegrad.unique(x)


def unique_with_counts(x: Any, out_idx: Any = "int32") -> Any:
    """The different values, and how often each comes."""
    if not isinstance(x, Text):
        return samegrad.unique_with_counts(x, out_idx=samegrad.as_dtype(out_idx))
    counts: dict[str, int] = {}
    for value in x.strings:
        counts[value] = counts.get(value, 0) + 1
    tokens = Text(np.array([*counts], object))
    return tokens, None, samegrad.constant([*counts.values()], out_idx)


def map_fn(fn: Any, elems: Any) -> Any:
    """The function of each row."""
    if not isinstance(elems, Ragged):
        return samegrad.map_fn(fn, elems)
    rows = [fn(row) for row in elems]
    return Ragged(concat(rows, 0), [len(row) for row in rows])


def required_space_to_batch_paddings(input_shape: Any, block_shape: Any) -> Any:
    """Return the paddings of sizes up to multiples of blocks."""
    sizes, blocks = np.asarray(input_shape), np.asarray(block_shape)
    ends = -sizes % np.maximum(blocks, 1)
    return np.stack([np.zeros_like(ends), ends], axis=-1).tolist(), None


def Assert(condition: Any, data: Any) -> None:  # noqa: N802
    """Check what is known.

    Raises:
        InvalidArgumentError: It does not hold.
    """
    if not bool(condition):
        raise errors.InvalidArgumentError(None, None, " ".join(str(part) for part in data))


def _cross_hashed(inputs: Any, num_buckets: int) -> Any:
    columns = [x.strings if isinstance(x, Text) else known(x).astype(np.int64) for x in inputs]
    found = np.empty(columns[0].shape, np.int64)
    for place in np.ndindex(found.shape):
        value = 0xDECAFCAFFE
        for column in columns:
            part = column[place]
            of_part = fingerprint(part.encode()) if isinstance(part, str) else int(part)
            value = joined(value, of_part % 2**64)
        found[place] = value % num_buckets
    return samegrad.constant(found)


as_string = strings.as_string
sparse = SimpleNamespace(cross_hashed=_cross_hashed, to_dense=identity, expand_dims=expand_dims)
ragged = samegrad.ragged
compat = SimpleNamespace(
    as_text=lambda x, encoding="utf-8": x.decode(encoding) if isinstance(x, bytes) else str(x),
    v1=SimpleNamespace(Dimension=type("Dimension", (), {})),
)
dtypes = SimpleNamespace(as_dtype=as_dtype)
__internal__ = SimpleNamespace(CompositeTensor=RaggedTensor)

__all__ = ["lookup"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(samegrad, name)
