"""The IDX file format of MNIST and its successors, plain or gzip-compressed.

An IDX file of bytes is: two zero bytes, the type code 0x08, the number of dimensions, each
dimension as a big-endian 32-bit integer, then the bytes in C order.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from samegrad._base.file_errors import explained_errors

READ_REMEDY = "Check that this user may read it, and look at the disk"
_UINT8_CODE = 0x08
_CHUNK_BYTES = 1 << 20


class IdxError(ValueError):
    """A data file is truncated, altered, or not the IDX file it should be."""


@dataclass(frozen=True)
class IdxFile:
    """Expected content of a data file.

    Attributes:
        name: File name without `.gz`, e.g. `train-images-idx3-ubyte`.
        shape: Shape of the array, e.g. `(60000, 28, 28)`.
        sha256: Hash of the *uncompressed* file. Packagers compress the same file in different
            ways (Debian drops the time stamp), so a hash of the `.gz` would not fit them all.
        download_hash: Hash of the upstream `.gz` as pooch takes it, e.g. `md5:0f3c...`.
    """

    name: str
    shape: tuple[int, ...]
    sha256: str
    download_hash: str


def read_idx(path: str | os.PathLike[str], expected: IdxFile) -> npt.NDArray[np.uint8]:
    """Read one IDX file and check its header, its length and its hash.

    Args:
        path: The file; decompressed when its name ends in `.gz`.
        expected: What the file must hold.

    Returns:
        A new, writable uint8 array of shape `expected.shape`.

    Raises:
        IdxError: The file is truncated, has another magic number, shape or hash, or is not a valid
            gzip file.
        OSError: The file cannot be opened or read.

    Example:
        >>> import hashlib, pathlib, tempfile
        >>> content = bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9])
        >>> spec = IdxFile("tiny", (3,), hashlib.sha256(content).hexdigest(), "")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "tiny"
        ...     _ = path.write_bytes(content)
        ...     read_idx(path, spec)
        array([7, 8, 9], dtype=uint8)
    """
    path = Path(path)
    try:
        with (
            explained_errors("datasets", "read", path, READ_REMEDY),
            gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file,
        ):
            return _read_array(file, path, expected)  # type: ignore[arg-type]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        # Their messages differ between Python versions; ours names the file and the way out.
        raise _broken(path, "be a complete gzip file", f"damaged data ({error})") from error


def _read_array(file: BinaryIO, path: Path, expected: IdxFile) -> npt.NDArray[np.uint8]:
    """Read header and content in one pass, hashing on the way."""
    header = _header(expected.shape)
    found = file.read(len(header))
    if found != header:
        raise _broken(path, f"start with {_describe(header)}", _describe(found))
    digest = hashlib.sha256(found)
    array = np.empty(expected.shape, np.uint8)
    target = array.reshape(-1)
    filled = 0
    while filled < len(target):
        chunk = file.read(min(_CHUNK_BYTES, len(target) - filled))
        if not chunk:
            raise _broken(path, f"hold {len(target)} bytes of data", f"{filled} bytes")
        target[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
        filled += len(chunk)
        digest.update(chunk)
    if file.read(1):  # also makes gzip check its own checksum
        raise _broken(path, f"hold {len(target)} bytes of data", "more")
    if digest.hexdigest() != expected.sha256:
        raise _broken(path, f"have the SHA-256 {expected.sha256}", digest.hexdigest())
    return array


def _header(shape: tuple[int, ...]) -> bytes:
    """The header of an IDX file of bytes with this shape."""
    return struct.pack(f">HBB{len(shape)}I", 0, _UINT8_CODE, len(shape), *shape)


def _describe(header: bytes) -> str:
    """Magic number and dimensions of a header in words, whatever bytes it holds."""
    if len(header) < 4:
        return f"only {len(header)} bytes"
    dims = struct.unpack(f">{len(header) // 4 - 1}I", header[4 : len(header) // 4 * 4])
    return f"magic number 0x{header[:4].hex()} and dimensions {dims}"


def _broken(path: Path, rule: str, found: str) -> IdxError:
    return IdxError(
        f"[datasets] {path} must {rule}: got {found}. Remove the file and load again, or give "
        "the folder of a good copy."
    )
