"""Files of elements: written whole or not at all, and checked when they are read.

A file is a line that says what it is, elements, the places of the elements, what they are (JSON),
and an end of fixed size. An element is its length and its check (CRC-32), the sizes of its
components and their bytes.
A file appears under its name when all is written, so a run that was killed leaves none.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
import tempfile
import weakref
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from samegrad._base.dtypes import as_dtype
from samegrad._base.file_errors import explained_errors
from samegrad._tensor.complex_tensor import ComplexTensor
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text, of_bytes
from samegrad.data._structure import Structure, fill, leaves_of
from samegrad.errors import DataLossError, NotFoundError

_MAGIC = b"samegrad elements 1\n"
_FRAME = struct.Struct("<QI")  # bytes of an element, their check
_END = struct.Struct("<QQQI8s")  # where places begin, how many, bytes of the JSON, their check
_CLOSED = b"the end\n"
_REMEDY = "Choose another path"
_DAMAGED = "remove the file, so that it is written again"


class ElementWriter:
    """Writes elements to a file, which appears once `close` is called.

    Args:
        path: The file; what was there is replaced.
        who: The caller, for errors.
        packed: Whether elements are compressed.

    Raises:
        OSError: The file cannot be written.
    """

    def __init__(self, path: str, who: str, packed: bool = False) -> None:
        self._path, self._who, self._packed = path, who, packed
        self._places: list[int] = []
        self._kinds: list[str] = []
        self._shapes: list[tuple[Any, ...]] = []
        self._structure: Any = None
        folder = os.path.dirname(os.path.abspath(path))
        with explained_errors(who, "write", Path(path), _REMEDY):
            os.makedirs(folder, exist_ok=True)
            handle, self._partial = tempfile.mkstemp(
                prefix=f".{os.path.basename(path)}-", suffix=".partial", dir=folder
            )
            self._file = os.fdopen(handle, "wb")
        self.drop = weakref.finalize(self, _remove, self._file, self._partial, os.getpid())
        self._write(_MAGIC)

    def add(self, element: Structure) -> None:
        """Write one element.

        Raises:
            TypeError: It holds something else than tensors and text, or others than the first one.
        """
        leaves = leaves_of(element)
        kinds = [_kind_of(leaf, self._who) for leaf in leaves]
        if not self._places:
            self._structure, self._kinds = described(element), kinds
            self._shapes = [leaf._shape for leaf in leaves]
        elif self._kinds != kinds:
            raise TypeError(
                f"[{self._who}] all elements must have the components and dtypes of the first: got "
                f"{', '.join(kinds)} after {', '.join(self._kinds)}; use tf.cast in map."
            )
        pairs = zip(self._shapes, leaves, strict=True)
        self._shapes = [_common(known, leaf._shape, self._who) for known, leaf in pairs]
        body = b"".join(map(_packed, leaves))
        body = zlib.compress(body, 1) if self._packed else body
        self._places.append(self._file.tell())
        self._write(_FRAME.pack(len(body), zlib.crc32(body)) + body)

    def close(self) -> None:
        """End the file and give it its name."""
        places = np.array(self._places, "<u8").tobytes()
        begin = self._file.tell()
        what = {
            "structure": self._structure, "dtypes": self._kinds, "shapes": self._shapes,
            "packed": self._packed,
        }  # fmt: skip
        tail = places + json.dumps(what).encode()
        ends = begin, len(self._places), len(tail) - len(places), zlib.crc32(tail), _CLOSED
        self._write(tail + _END.pack(*ends))
        with explained_errors(self._who, "write", Path(self._path), _REMEDY):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.chmod(self._partial, 0o666 & ~_umask())
            os.replace(self._partial, self._path)
        self.drop.detach()

    def _write(self, data: bytes) -> None:
        with explained_errors(self._who, "write", Path(self._path), "Make room on the disk"):
            self._file.write(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _remove(file: Any, partial: str, process: int) -> None:
    if os.getpid() != process:  # a forked child: the file is its parent's
        return
    with contextlib.suppress(OSError):
        file.close()
    with contextlib.suppress(OSError):
        os.remove(partial)


class ElementFile:
    """A file of elements, to be read.

    Args:
        path: The file.
        who: The caller, for errors.

    Raises:
        NotFoundError: The file does not exist.
        DataLossError: It is damaged, or no file of elements.
    """

    def __init__(self, path: str, who: str) -> None:
        self._path, self._who = path, who
        with explained_errors(who, "read", Path(path), "Choose another file"):
            try:
                self._file = open(path, "rb")  # noqa: SIM115  # closed with this object
            except FileNotFoundError:
                raise NotFoundError(
                    f"[{who}] there must be a file {path}: got none; see Dataset.save."
                ) from None
            self._read_ends()
        self.drop = weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int) -> Structure:
        """The element of a number.

        Raises:
            DataLossError: Its check is another; the message says where.
        """
        body = self._frame(int(self._places[number]))
        leaves, place = [], 0
        for kind in self._kinds:
            leaf, place = _unpacked(body, place, kind)
            leaves.append(leaf)
        return fill(self._template, leaves)

    @property
    def spec(self) -> Structure:
        """The TensorSpecs of the elements; sizes in which they differ are None."""
        pairs = zip(self._shapes, self._kinds, strict=True)
        return fill(self._template, [TensorSpec(shape, kind) for shape, kind in pairs])

    def describes(self, spec: Structure) -> bool:
        """Tell if the elements have the components and dtypes of a spec."""
        wanted = [leaf.dtype.name for leaf in leaves_of(spec)]
        return not len(self) or (
            self._kinds == wanted and described(spec) == described(self._template)
        )

    def _read_ends(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise self._damaged(0, "it is not a file of elements")
        if size < len(_MAGIC) + _END.size:
            raise self._damaged(size, "it ends too early")
        self._file.seek(size - _END.size)
        begin, count, described_by, check, closed = _END.unpack(self._file.read(_END.size))
        if closed != _CLOSED or begin + 8 * count + described_by + _END.size != size:
            raise self._damaged(size - _END.size, "its end is not there")
        self._file.seek(begin)
        tail = self._file.read(8 * count + described_by)
        if zlib.crc32(tail) != check:
            raise self._damaged(begin, "the places of its elements have another check")
        self._places = np.frombuffer(tail, "<u8", count)
        what = json.loads(tail[8 * count :])
        self._kinds, self._is_packed = what["dtypes"], what["packed"]
        self._shapes = [tuple(shape) for shape in what["shapes"]]
        self._template = _structure(what["structure"])

    def _frame(self, place: int) -> bytes:
        self._file.seek(place)
        head = self._file.read(_FRAME.size)
        if len(head) == _FRAME.size:
            size, check = _FRAME.unpack(head)
            if size <= os.fstat(self._file.fileno()).st_size:
                body = self._file.read(size)
                if len(body) == size and zlib.crc32(body) == check:
                    return zlib.decompress(body) if self._is_packed else body
        raise self._damaged(place, "an element has another check")

    def _damaged(self, place: int, what: str) -> DataLossError:
        return DataLossError(
            f"[{self._who}] {self._path} is damaged at byte {place}: {what}; {_DAMAGED}."
        )


def _kind_of(leaf: Any, who: str) -> str:
    if not isinstance(leaf, Tensor | Text):
        raise TypeError(
            f"[{who}] elements in files are tensors and strings: got {type(leaf).__name__}; use "
            "to_tensor or tf.sparse.to_dense in map."
        )
    return leaf._dtype


def _packed(leaf: Any) -> bytes:
    """The number of sizes, the sizes, and the bytes; of text their lengths before them."""
    shape = np.array([leaf._rank, *leaf._shape], "<u8").tobytes()
    if isinstance(leaf, Tensor):
        return shape + np.ascontiguousarray(leaf._numpy()).tobytes()
    parts = leaf.encoded.ravel().tolist()
    return b"".join([shape, np.array([*map(len, parts)], "<u8").tobytes(), *parts])


def _unpacked(body: bytes, place: int, kind: str) -> tuple[Any, int]:
    """A component, and where the next one begins."""
    rank = int.from_bytes(body[place : place + 8], "little")
    shape = tuple(np.frombuffer(body, "<u8", rank, place + 8).tolist())
    begin, count = place + 8 * (rank + 1), math.prod(shape)
    if kind != "string":
        dtype = np.dtype(as_dtype(kind).as_numpy_dtype)
        end = begin + count * dtype.itemsize
        numbers = np.frombuffer(body, dtype, count, begin) if count else np.zeros(0, dtype)
        return Tensor(numbers.reshape(shape).copy(), copy=False), end
    first = begin + 8 * count
    ends = np.cumsum(np.frombuffer(body, "<u8", count, begin) if count else []).astype(int)
    texts = np.empty(count, object)
    pairs = zip([0, *ends], ends, strict=False)
    texts[:] = [body[first + a : first + b] for a, b in pairs]
    return of_bytes(texts.reshape(shape)), first + (int(ends[-1]) if count else 0)


def _common(known: tuple[Any, ...], shape: tuple[int, ...], who: str) -> tuple[Any, ...]:
    if len(known) != len(shape):
        raise ValueError(
            f"[{who}] all elements must have as many axes as the first: got shape {shape} after "
            f"{known}; use tf.reshape in map."
        )
    return tuple(m if m == n else None for m, n in zip(known, shape, strict=True))


def described(structure: Structure) -> Any:
    """Describe a structure in JSON: tuples, dicts with string keys, None, and leaves."""
    if structure is None:
        return None
    if isinstance(structure, ComplexTensor):
        return "complex"
    if isinstance(structure, Mapping):
        if not all(isinstance(key, str) for key in structure):
            raise TypeError(
                "[Dataset] elements in files have dicts with strings as keys: got "
                f"{list(structure)!r:.80}; rename them in map."
            )
        return {"dict": {key: described(structure[key]) for key in sorted(structure)}}
    if isinstance(structure, tuple):
        return {"tuple": [described(part) for part in structure]}
    return "leaf"


def _structure(found: Any) -> Structure:
    if found is None or found == "leaf":
        return found
    if found == "complex":
        return ComplexTensor("leaf", "leaf")
    if "dict" in found:
        return {key: _structure(part) for key, part in found["dict"].items()}
    return tuple(_structure(part) for part in found["tuple"])
