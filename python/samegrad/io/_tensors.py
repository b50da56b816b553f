"""Tensors as bytes and back: `TensorProto`, the message in which TensorFlow stores them.

Its fields are those of tensorflow/core/framework/tensor.proto: 1 the dtype, 2 the shape, 4 all
numbers as they are in memory, and lists of numbers of one kind, whose last one is repeated.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from samegrad._base.dtypes import DTypeLike, as_dtype, element_type
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.host_values import on_host
from samegrad._tensor.text import Text, is_text, of_bytes, text_of
from samegrad.io._example import _field, _fields_of, _varint, _varint_at

_NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7,
    "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "float16": 19, "uint32": 22,
    "uint64": 23,
}  # fmt: skip
_NAMES = {number: name for name, number in _NUMBERS.items()}
_TEXTS = 8
_FLOATS = {5: "<f", 6: "<d"}  # fields of numbers of a fixed size
_VARINTS = (7, 10, 11, 13, 16, 17)
_HALVES = 13  # of float16 and bfloat16: the bits
_MOST_ELEMENTS = 1 << 40
_MOST_REPEATED = 1 << 26


def serialize_tensor(tensor: Any, name: str | None = None) -> Text:
    r"""Serialize a tensor as a `TensorProto`, which `parse_tensor` and TensorFlow read.

    Args:
        tensor: Numbers or strings of any shape.
        name: Ignored.

    Returns:
        A string scalar: the bytes of the message.

    Raises:
        TypeError: The tensor belongs to a function that is being traced, or is not a tensor.

    Example:
        >>> import samegrad as tf
        >>> tf.io.serialize_tensor(tf.constant([1, 2], tf.int8)).numpy()
        b'\x08\x06\x12\x04\x12\x02\x08\x02"\x02\x01\x02'
    """
    if is_text(tensor) or (isinstance(tensor, np.ndarray) and tensor.dtype.kind in "OSU"):
        array = text_of(tensor, "tf.io.serialize_tensor").encoded
        content, kind = b"".join(_field(_TEXTS, text) for text in array.ravel()), "string"
    else:
        made = convert_to_tensor(tensor)
        array, kind = np.asarray(made), made._dtype
        content = _field(4, array.tobytes()) if array.size else b""
    sizes = [_field(2, b"\x08" + _varint(size) if size else b"") for size in array.shape]
    shape = _field(2, b"".join(sizes))
    return of_bytes(b"\x08" + _varint(_NUMBERS[kind]) + shape + content)


@on_host()
def parse_tensor(serialized: Any, out_type: DTypeLike, name: str | None = None) -> Any:
    """Parse a tensor from the bytes that `serialize_tensor` returns.

    Args:
        serialized: The bytes of one `TensorProto`.
        out_type: The dtype of its numbers, or `tf.string`.
        name: Ignored.

    Returns:
        A tensor of numbers or strings.

    Raises:
        InvalidArgumentError: The bytes are not such a message, or hold another dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.io.parse_tensor(tf.io.serialize_tensor([1.5, 2.0]), tf.float32).numpy()
        array([1.5, 2. ], dtype=float32)
    """
    who = "tf.io.parse_tensor"
    found = text_of(serialized, who, "serialized must be the bytes of a tensor")
    if found._rank:
        raise ValueError(f"[{who}] serialized must be that of one tensor: got {found._shape}.")
    wanted = element_type(out_type).name
    try:
        kind, sizes, content = _message_of(found.numpy())
        if kind == wanted:
            return _tensor_of(kind, sizes, content)
    except (ValueError, TypeError, OverflowError, struct.error, UnicodeDecodeError) as error:
        place = found.origin or "serialized"
        raise InvalidArgumentError(
            f"[{who}] the bytes of a tensor are needed: got {len(found.numpy())} bytes of {place} "
            f"({error})."
        ) from None
    raise InvalidArgumentError(
        f"[{who}] the tensor must be of out_type={wanted}: got {kind}; pass out_type={kind}."
    )


def _message_of(data: bytes) -> tuple[str, list[int], dict[int, list[Any]]]:
    """The name of the dtype, the sizes, and the content of the other fields by their numbers."""
    kind, sizes = "", []
    content: dict[int, list[Any]] = {}
    for number, _, value in _fields_of(data):
        if number == 1:
            if value not in _NAMES:
                raise ValueError(f"dtype number {value} is none of samegrad's")
            kind = _NAMES[value]
        elif number == 2:
            sizes = [_size_of(dim) for field, _, dim in _fields_of(value) if field == 2]
        else:
            content.setdefault(number, []).append(value)
    if not kind:
        raise ValueError("there is no dtype")
    if math.prod(sizes) > _MOST_ELEMENTS:
        raise ValueError(f"the shape is {tuple(sizes)}")
    return kind, sizes, content


def _size_of(dim: bytes) -> int:
    found = [value for field, _, value in _fields_of(dim) if field == 1]
    size = int(found[-1]) if found else 0
    if size >= 1 << 63:
        raise ValueError("a size of the shape is unknown")
    return size


def _tensor_of(kind: str, sizes: list[int], content: dict[int, list[Any]]) -> Any:
    count = math.prod(sizes)
    if kind == "string":
        found = _filled(content.get(_TEXTS, []), count, b"")
        texts = np.empty(count, object)
        texts[:] = found
        return of_bytes(texts.reshape(sizes))
    stored = np.dtype(as_dtype(kind).as_numpy_dtype)
    if 4 in content:
        data = b"".join(content[4])
        if len(data) != count * stored.itemsize:
            raise ValueError(f"{len(data)} bytes for {count} numbers of {kind}")
        array = np.frombuffer(data, stored)
    else:
        array = _listed(stored, content, count)
    return Tensor(array.reshape(sizes).copy(), copy=False)


def _listed(stored: np.dtype[Any], content: dict[int, list[Any]], count: int) -> Any:
    """The numbers of the lists, of which a tensor has one."""
    numbers: list[Any] = []
    for field, parts in content.items():
        for part in parts:
            if field in _FLOATS:
                numbers += [value for (value,) in struct.iter_unpack(_FLOATS[field], part)]
            elif field in _VARINTS:
                numbers += [part] if isinstance(part, int) else _varints_of(part)
    numbers = _filled(numbers, count, 0)
    if _HALVES in content:
        return np.array(numbers, np.uint16).view(stored)
    if stored.kind in "iu":  # negative ones have 64 bits
        return np.array(numbers, np.uint64).astype(stored)
    return np.array(numbers).astype(stored)


def _filled(values: list[Any], count: int, default: Any) -> list[Any]:
    if len(values) > count:
        raise ValueError(f"{len(values)} values for a shape of {count}")
    if count - len(values) > _MOST_REPEATED:
        raise ValueError(f"{len(values)} values for a shape of {count}")
    return values + [values[-1] if values else default] * (count - len(values))


def _varints_of(data: bytes) -> list[int]:
    numbers, place = [], 0
    while place < len(data):
        number, place = _varint_at(data, place)
        numbers.append(number)
    return numbers
