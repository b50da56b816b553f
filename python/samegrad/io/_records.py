"""Files of records, as TensorFlow writes them.

A record is its length (8 bytes), a check of it (4), its bytes and a check of them (4). The check is
CRC-32C (Castagnoli; RFC 3720, appendix B.4), rotated by 15 bits, plus a constant.
"""

from __future__ import annotations

import functools
import gzip
import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from samegrad._base.file_errors import explained_errors
from samegrad._base.shown import shown
from samegrad._tensor.text import Text, text_of
from samegrad.errors import DataLossError
from samegrad.io.gfile import path_of

_POLYNOMIAL = 0x82F63B78
_LANES = 256  # parts of long data whose checks are computed side by side
_CHUNK = 1 << 20  # bytes that are read at once
_DAMAGED = "remove the file, or write it again"


@functools.cache
def _tables() -> tuple[np.ndarray[Any, Any], list[int]]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table, table.tolist()


def _shifted(state: int, zeros: int) -> int:
    """The state after so many zero bytes, by squaring of the matrix of one bit."""
    matrix = [_POLYNOMIAL, *(1 << n for n in range(31))]
    count = zeros * 8
    while count:
        if count & 1:
            state = _times(matrix, state)
        matrix = [_times(matrix, row) for row in matrix]
        count >>= 1
    return state


def _times(matrix: list[int], vector: int) -> int:
    total = 0
    for row in matrix:
        if vector & 1:
            total ^= row
        vector >>= 1
    return total


@functools.lru_cache(maxsize=64)
def _shift_of_bits(zeros: int) -> list[int]:
    return [_shifted(1 << n, zeros) for n in range(32)]


def crc32c(data: bytes) -> int:
    """The check of the bytes.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    table, listed = _tables()
    state = 0xFFFFFFFF
    width = len(data) // _LANES
    if width >= 8:
        columns = np.frombuffer(data, np.uint8, width * _LANES).reshape(_LANES, width)
        states = np.zeros(_LANES, np.uint32)
        for column in columns.T:
            states = table[(states ^ column) & 0xFF] ^ (states >> 8)
        matrix = _shift_of_bits(width)
        for part in states.tolist():
            state = _times(matrix, state) ^ part
        data = data[width * _LANES :]
    for byte in data:
        state = listed[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    """The check as files of records have it.

    Example:
        >>> hex(masked_crc(b"123456789"))
        '0xc78ab0e5'
    """
    check = crc32c(data)
    return ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF


def compression_of(kind: Any, who: str) -> str:
    """The kind of compression: GZIP, ZLIB, or empty text for none.

    Example:
        >>> compression_of(None, "TFRecordDataset")
        ''
    """
    if isinstance(kind, TFRecordOptions):
        kind = kind.compression_type
    found = str(kind) if isinstance(kind, str) else kind
    if isinstance(kind, Text) and kind.encoded.ndim == 0:
        found = kind.numpy().decode(errors="replace")
    if found is None:
        return ""
    if not isinstance(found, str) or found not in ("", "GZIP", "ZLIB"):
        raise ValueError(f"[{who}] compression_type must be '', GZIP or ZLIB: got {shown(kind)}.")
    return found


def opened(path: str, compression: str, who: str) -> BinaryIO:
    """A file to read, which is decompressed while it is read.

    Raises:
        NotFoundError: The file does not exist.
        DataLossError: The file does not have this compression.
    """
    with explained_errors(who, "read", Path(path), "Choose another file"):
        if compression == "ZLIB":
            data = Path(path).read_bytes()
            try:
                return io.BytesIO(zlib.decompress(data))
            except zlib.error as error:
                raise _damaged(who, path, 0, str(error)) from None
        return gzip.open(path) if compression else open(path, "rb")  # type: ignore[return-value]


def _damaged(who: str, path: str, place: int, what: str) -> DataLossError:
    return DataLossError(f"[{who}] {path} is damaged at byte {place}: {what}; {_DAMAGED}.")


def taken(file: BinaryIO, count: int, who: str, path: str, place: int) -> bytes:
    """Return the next bytes of a file, fewer at its end; memory grows with what is read."""
    parts: list[bytes] = []
    try:
        while count and (part := file.read(min(count, _CHUNK))):
            parts.append(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise _damaged(who, path, place, str(error)) from None


def lines_of(path: str, compression: str, who: str) -> Iterator[bytes]:
    """The lines of a file with their ends, which the last one may lack."""
    held: list[bytes] = []  # a line longer than what is read at once
    place = 0
    with opened(path, compression, who) as file:
        while chunk := taken(file, _CHUNK, who, path, place):
            place += len(chunk)
            first, *others = chunk.split(b"\n")
            held.append(first)
            for line in others:
                yield b"".join([*held, b"\n"])
                held = [line]
    if any(held):
        yield b"".join(held)


def records_of(path: str, compression: str = "", who: str = "TFRecordDataset") -> Iterator[bytes]:
    """The records of a file.

    Raises:
        DataLossError: A check is not that of the bytes, or the file ends in a record; the message
            says where.
    """
    place = 0
    with opened(path, compression, who) as file:
        while head := taken(file, 12, who, path, place):
            if len(head) < 12:
                raise _damaged(who, path, place, "it ends in the length of a record")
            size, check = struct.unpack("<QI", head)
            if masked_crc(head[:8]) != check:
                raise _damaged(who, path, place, "the length of a record has another check")
            body = taken(file, size + 4, who, path, place)
            if len(body) < size + 4:
                raise _damaged(
                    who, path, place, f"it ends in a record of {size} bytes, {len(body)} of which "
                    "are there with its check"
                )  # fmt: skip
            if masked_crc(body[:-4]) != struct.unpack("<I", body[-4:])[0]:
                raise _damaged(who, path, place, f"a record of {size} bytes has another check")
            place += 16 + size
            yield body[:-4]


class TFRecordOptions:
    """Options of writing records.

    Args:
        compression_type: "", "GZIP" or "ZLIB".

    Example:
        >>> TFRecordOptions("GZIP").compression_type
        'GZIP'
    """

    def __init__(self, compression_type: str | None = None) -> None:
        self.compression_type = compression_of(compression_type, "TFRecordOptions")


class TFRecordWriter:
    """Writer of records to a file, which TensorFlow can also read.

    Args:
        path: The file; what was there is lost.
        options: A `TFRecordOptions`, or "GZIP" or "ZLIB".

    Raises:
        OSError: The file cannot be written.

    Example:
        >>> import samegrad as tf
        >>> with tf.io.TFRecordWriter("numbers.tfrecord") as writer:
        ...     writer.write(b"one")
        ...     writer.write(b"two")
        >>> [record.numpy() for record in tf.data.TFRecordDataset("numbers.tfrecord")]
        [b'one', b'two']
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        who = "tf.io.TFRecordWriter"
        kind = compression_of(options, who)
        self._path = path_of(path, "TFRecordWriter")
        self._pack = zlib.compressobj() if kind == "ZLIB" else None
        self._file: Any = None
        with explained_errors(who, "write", Path(self._path), "Choose another path"):
            # Closed by close().
            self._file = (gzip.open if kind == "GZIP" else open)(self._path, "wb")

    def write(self, record: Any) -> None:
        """Write one record.

        Args:
            record: Bytes, or text without axes.

        Raises:
            ValueError: The writer is closed.
            TypeError: It is something else.
        """
        data = text_of(record, "TFRecordWriter.write", "a record is bytes").numpy()
        if self._file is None:
            raise ValueError(f"[TFRecordWriter.write] the writer of {self._path} is closed.")
        head = struct.pack("<Q", len(data))
        whole = b"".join(
            [head, struct.pack("<I", masked_crc(head)), data, struct.pack("<I", masked_crc(data))]
        )
        self._file.write(self._pack.compress(whole) if self._pack else whole)

    def flush(self) -> None:
        """Flush buffered records to the file."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """End the file; a second call does nothing."""
        if self._file is not None:
            if self._pack:
                self._file.write(self._pack.flush())
            self._file.close()
            self._file = None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()
