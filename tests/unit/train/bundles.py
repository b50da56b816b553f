"""Writer of tensor bundles, the files of TensorFlow's checkpoints, and of ones that break rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from samegrad.train._crc32c import masked_crc32c

MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
GRAPH_KEY = b"_CHECKPOINTABLE_OBJECT_GRAPH"
FLOAT, STRING = 1, 7  # numbers of tensorflow.DataType
HEADER = bytes([0x08, 0x01, 0x1A, 0x02, 0x08, 0x01])  # one data file, version 1


def varint(value: int) -> bytes:
    """Return an integer of 64 bits in the wire format."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def number(field: int, value: int) -> bytes:
    """Return a field of a message that is an integer."""
    return varint(field << 3) + varint(value)


def part(field: int, content: bytes) -> bytes:
    """Return a field of a message that is bytes or a message."""
    return varint(field << 3 | 2) + varint(len(content)) + content


class Tensor(NamedTuple):
    """Entry of a bundle; what is None is as the content says."""

    shape: Sequence[int]
    content: bytes
    dtype: int = FLOAT
    shard: int = 0
    offset: int | None = None
    size: int | None = None
    checksum: int | None = None
    more: bytes = b""


def text(content: bytes) -> Tensor:
    """Return a string without axes."""
    length = len(content).to_bytes(4, "little")
    checksum = masked_crc32c(length).to_bytes(4, "little")
    stored = varint(len(content)) + checksum + content
    return Tensor((), stored, STRING, checksum=masked_crc32c(length + checksum + content))


def graph(*objects: Mapping[str, Any]) -> bytes:
    """Return an object graph; each object has `children`, `key` and `slots`."""
    found = b""
    for one in objects:
        node = b""
        for name, index in one.get("children", {}).items():
            node += part(1, number(1, index) + part(2, name.encode()))
        if "key" in one:
            node += part(2, part(1, b"VARIABLE_VALUE") + part(3, one["key"].encode()))
        for name, variable, index in one.get("slots", ()):
            node += part(3, number(1, variable) + part(2, name.encode()) + number(3, index))
        found += part(1, node)
    return found


def block(entries: Mapping[bytes, bytes], compression: int = 0) -> bytes:
    """Return a block of a table with its trailer."""
    content = b""
    for key, value in entries.items():
        content += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    content += bytes(4) + (1).to_bytes(4, "little") + bytes([compression])
    return content + masked_crc32c(content).to_bytes(4, "little")


def table(*blocks: bytes) -> bytes:
    """Return a table of such blocks."""
    content, places = b"", {}
    for index, one in enumerate(blocks):
        places[b"~%d" % index] = varint(len(content)) + varint(len(one) - 5)
        content += one
    index_block = block(places)
    empty = block({})
    handles = varint(len(content)) + varint(len(empty) - 5)
    handles += varint(len(content) + len(empty)) + varint(len(index_block) - 5)
    return content + empty + index_block + handles.ljust(40, b"\0") + MAGIC


def write_bundle(
    prefix: Path, tensors: Mapping[bytes, Tensor], header: bytes = HEADER, compression: int = 0
) -> None:
    """Write the index and one data file."""
    data, entries = b"", {b"": header}
    for key, tensor in sorted(tensors.items()):
        shape = b"".join(part(2, number(1, size)) for size in tensor.shape)
        offset = len(data) if tensor.offset is None else tensor.offset
        size = len(tensor.content) if tensor.size is None else tensor.size
        found = tensor.checksum
        checksum = masked_crc32c(tensor.content) if found is None else found
        entry = number(1, tensor.dtype) + part(2, shape) + number(3, tensor.shard)
        entry += number(4, offset) + number(5, size)
        entries[key] = entry + varint(6 << 3 | 5) + checksum.to_bytes(4, "little") + tensor.more
        data += tensor.content
    prefix.with_name(f"{prefix.name}.index").write_bytes(table(block(entries, compression)))
    prefix.with_name(f"{prefix.name}.data-00000-of-00001").write_bytes(data)
