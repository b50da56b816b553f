"""Protocol buffers' wire format, as far as files of TensorFlow need it.

The package protobuf is not used: it would be a dependency of every installation for a few small
messages, and needs generated code whose version must fit the package's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

VARINT, _FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types


def read_varint(content: memoryview, position: int) -> tuple[int, int]:
    """Return an unsigned integer of up to 64 bits and the position behind it.

    Raises:
        ValueError: The content ends within it, or it has more bits.

    Example:
        >>> read_varint(memoryview(bytes([0xAC, 0x02])), 0)
        (300, 2)
    """
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(content):
            raise ValueError("an integer is cut off")
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return value, position
    raise ValueError("an integer has more than 64 bits")


def fields(content: memoryview, kinds: Mapping[int, int]) -> Iterator[tuple[int, Any]]:
    """Yield number and value of the fields of a message that have one of these numbers.

    Args:
        content: The message.
        kinds: Wire types by number of the field.

    Raises:
        ValueError: It is not a message, or a field has another wire type.

    Example:
        >>> list(fields(memoryview(bytes([0x08, 0x96, 0x01])), {1: VARINT}))
        [(1, 150)]
    """
    position = 0
    while position < len(content):
        tag, position = read_varint(content, position)
        number, kind = tag >> 3, tag & 7
        value: int | memoryview
        if kind == VARINT:
            value, position = read_varint(content, position)
        else:
            if kind == BYTES:
                size, position = read_varint(content, position)
            elif kind in (_FIXED64, FIXED32):
                size = 4 if kind == FIXED32 else 8
            else:
                raise ValueError(f"a field has the wire type {kind}")
            if size > len(content) - position:
                raise ValueError(f"a field of {size} bytes is cut off")
            part = content[position : position + size]
            value = part if kind == BYTES else int.from_bytes(part, "little")
            position += size
        if number in kinds:
            if kind != kinds[number]:
                raise ValueError(f"field {number} has the wire type {kind}")
            yield number, value


def signed(value: int) -> int:
    """Return an int32 or int64 field, which is stored as 64 bits in two's complement."""
    return value - (1 << 64) if value >> 63 else value


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Return a message of these fields.

    Args:
        *fields: Number and value: an integer, a string, or bytes, which may be a message.

    Example:
        >>> message((1, 150), (2, "a")).hex()
        '089601120161'
    """
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += [_varint(number << 3 | VARINT), _varint(value)]
        else:
            content = value.encode() if isinstance(value, str) else value
            parts += [_varint(number << 3 | BYTES), _varint(len(content)), content]
    return b"".join(parts)


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


__all__ = ["BYTES", "FIXED32", "VARINT", "fields", "message", "read_varint", "signed"]
