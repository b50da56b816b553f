"""Sorted string tables in LevelDB's format, in which TensorFlow keeps the index of a checkpoint.

A table is a sequence of blocks: data blocks of (key, value) sorted by key, an index block with the
offset and size of each, and a footer with those of the index. A key is stored as the number of
bytes that it has in common with the key before it, and the other bytes. A checksum follows each
block.
"""

from __future__ import annotations

from collections.abc import Iterator

from samegrad.train._crc32c import masked_crc32c
from samegrad.train._protobuf import read_varint

_FOOTER = 48  # bytes
_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_TRAILER = 5  # bytes behind a block: the kind of compression and the checksum
_MOST_ENTRIES = 60_000
_MOST_BYTES_OF_KEYS = 16 << 20


def read_table(content: memoryview) -> dict[bytes, memoryview]:
    """Return the values of a table by key, once all checksums are right.

    Raises:
        ValueError: The content breaks a rule of the format.
    """
    if len(content) < _FOOTER or content[-8:] != _MAGIC:
        raise ValueError("it does not end like a table of LevelDB")
    footer = content[-_FOOTER:]
    _, _, position = _handle(footer, 0)
    offset, size, _ = _handle(footer, position)
    body = content[:-_FOOTER]
    found: dict[bytes, memoryview] = {}
    last, room = b"", _MOST_BYTES_OF_KEYS
    for _, place in _entries(_block(body, offset, size)):
        begin, length, _ = _handle(place, 0)
        for key, value in _entries(_block(body, begin, length)):
            if found and key <= last:
                raise ValueError(f"the key {key[:60]!r} is not behind {last[:60]!r}")
            room -= len(key)
            if room < 0 or len(found) >= _MOST_ENTRIES:
                raise ValueError(
                    f"it has more than {_MOST_ENTRIES} keys, or {_MOST_BYTES_OF_KEYS} bytes in them"
                )
            found[key], last = value, key
    return found


def _handle(content: memoryview, position: int) -> tuple[int, int, int]:
    """Return offset and size of a block, and the position behind them."""
    offset, position = read_varint(content, position)
    size, position = read_varint(content, position)
    return offset, size, position


def _block(body: memoryview, offset: int, size: int) -> memoryview:
    """Return the entries of a block, without its trailer and restart points."""
    end = offset + size + _TRAILER
    if end > len(body):
        raise ValueError(f"a block ends at byte {end}, where {len(body)} are there")
    kind = body[offset + size]
    stored = int.from_bytes(body[end - 4 : end], "little")
    if (found := masked_crc32c(body[offset : end - 4])) != stored:
        raise ValueError(f"the block at byte {offset} has the checksum {found}, not {stored}")
    if kind != 0:
        name = "Snappy" if kind == 1 else f"method {kind}"
        raise ValueError(
            f"a block is compressed by {name}; TensorFlow's checkpoints are not compressed"
        )
    block = body[offset : offset + size]
    restarts = int.from_bytes(block[-4:], "little")
    if len(block) < 4 or restarts > len(block) // 4 - 1:
        raise ValueError(f"a block of {len(block)} bytes has {restarts} restart points")
    return block[: len(block) - 4 - 4 * restarts]


def _entries(block: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    position, key = 0, b""
    while position < len(block):
        shared, position = read_varint(block, position)
        own, position = read_varint(block, position)
        size, position = read_varint(block, position)
        if shared > len(key) or own + size > len(block) - position:
            raise ValueError(f"the entry behind the key {key[:60]!r} is cut off")
        key = key[:shared] + bytes(block[position : position + own])
        position += own
        yield key, block[position : position + size]
        position += size


__all__ = ["read_table"]
