"""Tensor bundles: the files `PREFIX.index` and `PREFIX.data-?????-of-?????` of TensorFlow.

The index is a sorted string table. Its empty key has a header. Each other key has dtype, shape,
position in a data file, and checksum of one tensor. The entry of a partitioned variable has no
bytes and lists its slices, which have entries of their own.

Nothing in the files is trusted: no path is made from their content, each size is compared with that
of the file before memory is taken, and no two tensors share bytes.
"""

from __future__ import annotations

import io
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samegrad._base.dtypes import BY_NUMBER, numpy_dtype
from samegrad.train import _files
from samegrad.train._crc32c import masked_crc32c
from samegrad.train._protobuf import BYTES, FIXED32, VARINT, fields, read_varint, signed
from samegrad.train._safetensors import fill, little_endian
from samegrad.train._storage import corrupt, explained_errors
from samegrad.train._string_table import read_table

Array = npt.NDArray[Any]

_MOST_BYTES_OF_INDEX = 64 << 20
_MAX_AXES = 32  # of NumPy's arrays
_STRING = "string"
_NOTHING = memoryview(b"")
# Wire types of an entry: dtype, shape, data file, offset, size, checksum, slices.
_FIELDS = {1: VARINT, 2: BYTES, 3: VARINT, 4: VARINT, 5: VARINT, 6: FIXED32, 7: BYTES}
_DTYPES = BY_NUMBER | {7: _STRING}


class Slice(NamedTuple):
    """Part of a partitioned variable: begin and length per axis; a length of -1 is all of it."""

    begins: tuple[int, ...]
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """Entry of the index for one tensor.

    Attributes:
        dtype: Name of the dtype, or "type N" where samegrad has none.
        shape: Shape.
        shard: Number of the data file.
        offset: Position of its bytes there.
        size: Number of its bytes.
        checksum: Masked CRC-32C of its bytes.
        slices: Slices of a partitioned variable, which has no bytes of its own.
    """

    dtype: str
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int
    slices: tuple[Slice, ...]


class TensorBundle:
    """Tensors of a checkpoint of TensorFlow by key, read from the disk one by one.

    Args:
        prefix: Path of the files without `.index`.

    Raises:
        CorruptCheckpointError: The index is damaged, or does not fit the data files.
        OSError: A file is missing, or cannot be read.
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self.index = prefix.with_name(f"{prefix.name}.index")
        with explained_errors("read", self.index):
            try:
                content = memoryview(_files.read_file(self.index, _MOST_BYTES_OF_INDEX))
                table = read_table(content)
                self._shards = _shards_of(table.pop(b"", _NOTHING))
                parsed = {key: _entry_of(value) for key, value in table.items()}
                self._slices = {key: e for key, e in parsed.items() if key.startswith(b"\0")}
                self.entries = {
                    key.decode(): e for key, e in parsed.items() if key not in self._slices
                }
            except ValueError as error:
                raise corrupt(self.index, "be the index of a checkpoint", f"{error!s:.200}") from (
                    error
                )
            self._check_places(parsed)

    def is_numeric(self, key: str) -> bool:
        """Tell if a tensor consists of numbers that an array can have."""
        return self.entries[key].dtype in BY_NUMBER.values()

    def read(self, key: str) -> Array:
        """Read a tensor, once its checksum is right.

        Returns:
            Array; for strings one of objects, which are bytes.

        Raises:
            CorruptCheckpointError: The data are damaged.
            ValueError: samegrad has no such dtype.
        """
        entry = self.entries[key]
        if entry.dtype not in _DTYPES.values():
            raise ValueError(
                f"[checkpoint] a tensor must have a dtype of samegrad: got {entry.dtype} of "
                f"tensorflow.DataType for {key!r:.80}; read it with TensorFlow."
            )
        if entry.slices:
            return self._read_slices(key, entry)
        return self._read_stored(key, entry)

    def _path(self, shard: int) -> Path:
        name = f"{self._prefix.name}.data-{shard:05d}-of-{self._shards:05d}"
        return self._prefix.with_name(name)

    def _check_places(self, parsed: dict[bytes, Entry]) -> None:
        """Check that all bytes are in the files, and that no two tensors share some."""
        ends: dict[int, int] = {}
        stored = [(e.shard, e.offset, e.size, key) for key, e in parsed.items() if not e.slices]
        sizes = {shard: self._size_of(shard) for shard in {one[0] for one in stored}}
        for shard, offset, size, key in sorted(stored):
            if offset < ends.get(shard, 0) or offset + size > sizes[shard]:
                place = f"bytes {offset} to {offset + size} of {sizes[shard]}"
                raise corrupt(self.index, f"give {key[:80]!r} bytes of its own", place)
            ends[shard] = offset + size

    def _size_of(self, shard: int) -> int:
        if not 0 <= shard < self._shards:
            raise corrupt(self.index, f"name one of {self._shards} data files", f"{shard}")
        path = self._path(shard)
        try:
            with _files.open_file(path) as file:
                return os.fstat(file.fileno()).st_size
        except FileNotFoundError as error:
            raise corrupt(path, "exist", "no such file") from error
        except _files.UnusableFileError as error:
            raise corrupt(path, "be a file", str(error)) from error

    def _opened(self, entry: Entry) -> io.FileIO:
        try:
            file = _files.open_file(self._path(entry.shard))
        except _files.UnusableFileError as error:
            raise corrupt(self._path(entry.shard), "be a file", str(error)) from error
        file.seek(entry.offset)
        return file

    def _read_stored(self, key: str, entry: Entry) -> Array:
        read = self._read_strings if entry.dtype == _STRING else self._read_numbers
        with explained_errors("read", self._path(entry.shard)):
            return read(key, entry)

    def _read_numbers(self, key: str, entry: Entry) -> Array:
        dtype = np.dtype(entry.dtype) if "complex" in entry.dtype else numpy_dtype(entry.dtype)
        is_bool = entry.dtype == "bool"
        try:
            array = np.empty(entry.shape, np.uint8 if is_bool else little_endian(dtype))
        except ValueError as error:  # beyond what NumPy can count
            raise self._damaged(key, entry, f"the shape {entry.shape}") from error
        if array.nbytes != entry.size:
            raise self._damaged(key, entry, f"{entry.size} bytes for {array.nbytes}")
        view = array.reshape(-1).view(np.uint8).data
        with self._opened(entry) as file:
            count = fill(file, view)
        if count < entry.size or masked_crc32c(view) != entry.checksum:
            raise self._damaged(key, entry, "bytes of another checksum")
        return array != 0 if is_bool else array

    def _read_strings(self, key: str, entry: Entry) -> Array:
        """Read strings: their lengths, the checksum of the lengths, and their bytes."""
        with self._opened(entry) as file:
            content = bytearray(entry.size)
            fill(file, memoryview(content))
        view = memoryview(content)
        count = math.prod(entry.shape)
        try:
            if count > entry.size:
                raise ValueError(f"{count} strings in {entry.size} bytes")
            lengths, position = [], 0
            for _ in range(count):
                length, position = read_varint(view, position)
                lengths.append(length)
            if position + 4 + sum(lengths) != entry.size:
                raise ValueError(f"{entry.size} bytes for {position + 4 + sum(lengths)}")
        except ValueError as error:
            raise self._damaged(key, entry, str(error)) from error
        checked = b"".join(n.to_bytes(4 if n >> 32 == 0 else 8, "little") for n in lengths)
        if masked_crc32c(checked + view[position:]) != entry.checksum:
            raise self._damaged(key, entry, "bytes of another checksum")
        position += 4
        array = np.empty(count, object)
        for index, length in enumerate(lengths):
            array[index] = bytes(view[position : position + length])
            position += length
        return array.reshape(entry.shape)

    def _read_slices(self, key: str, entry: Entry) -> Array:
        """Read the slices of a partitioned variable, which fill it and do not overlap."""
        parts = []
        for part in entry.slices:
            stored = self._slices.get(_key_of_slice(key, part))
            bounds = [*zip(part.begins, part.lengths, entry.shape, strict=False)]
            index = tuple(slice(b, b + n if n >= 0 else size) for b, n, size in bounds)
            shape = tuple(n if n >= 0 else size for _, n, size in bounds)
            if (
                stored is None
                or stored.slices
                or (stored.dtype, stored.shape) != (entry.dtype, shape)
                or len(shape) != len(entry.shape)
                or any(
                    not 0 <= i.start <= i.stop <= n for i, n in zip(index, entry.shape, strict=True)
                )
            ):
                raise self._damaged(key, entry, f"the slice {part}")
            parts.append((index, stored))
        if sum(math.prod(stored.shape) for _, stored in parts) != math.prod(entry.shape) or (
            _overlap([index for index, _ in parts])
        ):
            raise self._damaged(key, entry, "slices that do not fill it")
        array: Array | None = None
        for index, stored in parts:
            piece = self._read_stored(key, stored)
            array = np.empty(entry.shape, piece.dtype) if array is None else array
            array[index] = piece
        assert array is not None  # an entry without slices is not read here
        return array

    def _damaged(self, key: str, entry: Entry, found: str) -> ValueError:
        return corrupt(self._path(entry.shard), f"hold the tensor {key!r:.80}", found)


def _is_inside(index: tuple[slice, ...], shape: tuple[int, ...]) -> bool:
    return all(0 <= i.start <= i.stop <= n for i, n in zip(index, shape, strict=True))


def _share_elements(one: tuple[slice, ...], other: tuple[slice, ...]) -> bool:
    return all(a.start < b.stop and b.start < a.stop for a, b in zip(one, other, strict=True))


def _overlap(indices: list[tuple[slice, ...]]) -> bool:
    """Tell if two slices of a partitioned variable share elements."""
    filled = [i for i in indices if all(s.start < s.stop for s in i)]
    filled.sort(key=lambda index: [s.start for s in index])
    for number, index in enumerate(filled):
        for other in filled[number + 1 :]:
            if all(
                a.start < b.stop and b.start < a.stop for a, b in zip(index, other, strict=True)
            ):
                return True
            if index and other[0].start >= index[0].stop:
                break
    return False


def _shards_of(content: memoryview) -> int:
    """Return the number of data files that the header gives.

    Raises:
        ValueError: It is not a header, or of an unknown version.
    """
    header = dict(fields(content, {1: VARINT, 2: VARINT, 3: BYTES}))
    version = dict(fields(header.get(3, _NOTHING), {1: VARINT, 2: VARINT}))
    if header.get(2, 0) != 0:
        raise ValueError("its numbers are big-endian, which samegrad does not read")
    if version.get(1, 0) < 1 or version.get(2, 0) > 1:
        raise ValueError(f"it has the version {version}, where 1 is expected")
    shards: int = header.get(1, 0)
    return shards


def _entry_of(content: memoryview) -> Entry:
    found: dict[int, Any] = {}
    slices = []
    for number, value in fields(content, _FIELDS):
        if number == 7:
            slices.append(_slice_of(value))
        found[number] = value
    shape = _shape_of(found.get(2, _NOTHING))
    dtype = found.get(1, 0)
    shard, offset, size = (signed(found.get(number, 0)) for number in (3, 4, 5))
    if min(shard, offset, size) < 0:
        raise ValueError("an entry has a negative position")
    name = _DTYPES.get(dtype, f"type {dtype}")
    return Entry(name, shape, shard, offset, size, found.get(6, 0), tuple(slices))


def _shape_of(content: memoryview) -> tuple[int, ...]:
    dims = [dict(fields(dim, {1: VARINT})) for _, dim in fields(content, {2: BYTES})]
    shape = tuple(signed(dim.get(1, 0)) for dim in dims)
    if len(shape) > _MAX_AXES or not all(0 <= n < 2**62 for n in shape):
        raise ValueError(f"an entry has the shape {shape!r:.80}")
    return shape


def _slice_of(content: memoryview) -> Slice:
    extents = [dict(fields(e, {1: VARINT, 2: VARINT})) for _, e in fields(content, {1: BYTES})]
    begins = tuple(signed(extent.get(1, 0)) for extent in extents)
    lengths = tuple(signed(extent[2]) if 2 in extent else -1 for extent in extents)
    if len(extents) > _MAX_AXES:
        raise ValueError(f"a slice has {len(extents)} axes")
    return Slice(begins, lengths)


def _key_of_slice(name: str, part: Slice) -> bytes:
    """Return the key of a slice's entry: TensorFlow's ordered code of name and extents."""
    escaped = name.encode().replace(b"\xff", b"\xff\0").replace(b"\0", b"\0\xff")
    axes = len(part.begins)
    count = axes.to_bytes((axes.bit_length() + 7) // 8, "big")
    extents = (n for pair in zip(part.begins, part.lengths, strict=True) for n in pair)
    coded = b"".join(map(_ordered, extents))
    return b"\0" + escaped + b"\0\x01" + bytes([len(count)]) + count + coded


def _ordered(value: int) -> bytes:
    """Return the code of a signed integer: 7 bits per byte, the length in the first ones."""
    size = ((~value if value < 0 else value).bit_length() + 7) // 7
    header = ((1 << size) - 1) << (8 * size - size)
    return ((value ^ header) & ((1 << 8 * size) - 1)).to_bytes(size, "big")


__all__ = ["Entry", "TensorBundle"]
