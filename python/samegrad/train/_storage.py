"""Checkpoint folders: named arrays with a hash each, and a manifest, replaced all at once.

A folder holds `arrays-<id>.safetensors` and `manifest.json`. The manifest is the last file to be
put in place and names the array file, so it alone decides which state the folder stands for. The
id comes from the content: equal states make equal folders, byte for byte.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from samegrad.train import _files

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Array: TypeAlias = npt.NDArray[Any]

_FORMAT = "samegrad-checkpoint"
_FORMAT_VERSION = 1
_MANIFEST_NAME = "manifest.json"
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# The names that the safetensors format gives to NumPy's types.
_DTYPE_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
}


class CorruptCheckpointError(ValueError):
    """A checkpoint is truncated, altered, or of a format this version cannot read."""


def save(
    directory: str | os.PathLike[str], arrays: Mapping[str, Array], manifest: Mapping[str, Json]
) -> None:
    """Writes a checkpoint folder; a kill at any moment leaves the previous one, or the new one.

    Args:
        directory: The folder. Missing parents are created; an older checkpoint is replaced.
        arrays: Arrays by name: floating point, integers or bool, of any shape and memory order.
        manifest: Further values to store, as JSON knows them.

    Raises:
        TypeError: An array's dtype or a value cannot be stored.
        OSError: The disk is full, the folder is not writable, or the like. Nothing half-written
            is left, and an older checkpoint of this name is untouched.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(folder + "/ckpt-1", {"w": np.ones(2)}, {"step": 7})
        ...     load(folder + "/ckpt-1")
        ({'w': array([1., 1.])}, {'step': 7})
    """
    target = Path(os.path.abspath(directory))
    plain = {name: _as_plain(name, array) for name, array in sorted(arrays.items())}
    entries = {name: _describe(array) for name, array in plain.items()}
    arrays_name = f"arrays-{_digest(_encode(entries))[:16]}.safetensors"
    content = _manifest_bytes(arrays_name, entries, manifest)
    size = sum(array.nbytes for array in plain.values()) + len(content)
    with _explained_errors("save", target, size):
        _files.make_folder(target.parent)
        with _files.temporary_folder(target.parent) as temporary:
            _write_arrays(temporary / arrays_name, plain)
            _files.write_new_file(temporary / _MANIFEST_NAME, content)
            _files.sync_folder(temporary)
            _put_in_place(temporary, target, arrays_name)


def load(directory: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Json]]:
    """Reads a checkpoint folder and checks every hash.

    Args:
        directory: The folder that `save` has written.

    Returns:
        The arrays by name, and the values given as `manifest`.

    Raises:
        FileNotFoundError: There is no checkpoint.
        CorruptCheckpointError: A file is missing, truncated or altered.
        OSError: A file cannot be read.

    Example:
        See `save`.
    """
    target = Path(os.path.abspath(directory))
    with _explained_errors("read", target):
        manifest = _read_manifest(target)
        arrays = _read_arrays(target / manifest["arrays_file"])
    entries = manifest["arrays"]
    if set(arrays) != set(entries):
        raise _corrupt(target, f"hold the arrays {sorted(entries)}", f"{sorted(arrays)}")
    for name, entry in entries.items():
        found = _describe(arrays[name])
        if found != entry:
            raise _corrupt(target, f"hold the array {name!r} as {entry}", f"{found}")
    return arrays, manifest["values"]


def _as_plain(name: str, array: Array) -> Array:
    """The array in C order and little-endian, as the file holds it."""
    array = np.asarray(array)
    if array.dtype.name not in _DTYPE_NAMES:
        raise TypeError(
            f"[checkpoint] arrays must be floating point, integer or bool: got {array.dtype} for "
            f"{name!r}. Store it in another form."
        )
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def _describe(array: Array) -> dict[str, Json]:
    return {
        "dtype": array.dtype.name,
        "shape": list(array.shape),
        "blake2b": _digest(_bytes_of(array)),
    }


def _bytes_of(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _digest(content: bytes | memoryview) -> str:
    return hashlib.blake2b(content, digest_size=32).hexdigest()


def _encode(value: object) -> bytes:
    """One spelling for one value, so that hashes can be compared."""
    try:
        return json.dumps(value, indent=1, sort_keys=True).encode()
    except TypeError as error:
        raise TypeError(
            f"[checkpoint] values must be None, bool, int, float, str, or lists and dicts of "
            f"them: {error}. Store arrays as arrays, other objects in such a form."
        ) from error


def _manifest_bytes(
    arrays_name: str, entries: Mapping[str, Json], values: Mapping[str, Json]
) -> bytes:
    manifest = {
        "format": _FORMAT,
        "version": _FORMAT_VERSION,
        "arrays_file": arrays_name,
        "arrays": entries,
        "values": json.loads(_encode(dict(values))),  # now hashed as it will be read
    }
    return _encode({**manifest, "blake2b": _digest(_encode(manifest))})


def _write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes the safetensors format: header length, header, then the bytes of each array.

    The library's writer is not used: it turns a full disk into an error without an `errno`.
    """
    # Large items first: every array is aligned to its item size, as readers expect.
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    header: dict[str, Json] = {}
    offset = 0
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": _DTYPE_NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    parts = [_bytes_of(arrays[name]) for name in order]
    _files.write_new_file(path, len(text).to_bytes(8, "little"), text, *parts)


def _put_in_place(temporary: Path, target: Path, arrays_name: str) -> None:
    """Makes the finished temporary folder the target, or moves its files over the older ones."""
    if not target.exists():
        os.rename(temporary, target)
        _files.sync_folder(target.parent)
        return
    # A folder cannot be renamed onto another. The manifest goes last: until then it is the old
    # one, whose array file has another name and is still there.
    os.replace(temporary / arrays_name, target / arrays_name)
    _files.sync_folder(target)
    os.replace(temporary / _MANIFEST_NAME, target / _MANIFEST_NAME)
    _files.sync_folder(target)
    for path in target.glob("arrays-*.safetensors"):
        if path.name != arrays_name:
            os.unlink(path)


def _read_manifest(target: Path) -> dict[str, Any]:
    path = target / _MANIFEST_NAME
    if not path.is_file():
        raise FileNotFoundError(
            f"[checkpoint] a checkpoint folder must hold {_MANIFEST_NAME}: {target} "
            + ("does not. " if target.exists() else "does not exist. ")
            + "Give the path that save() or write() returned, or latest_checkpoint(folder)."
        )
    content = path.read_bytes()
    try:
        manifest = json.loads(content)
        version = manifest["version"] if manifest["format"] == _FORMAT else None
    except (ValueError, KeyError, TypeError) as error:
        raise _corrupt(path, "be a manifest in JSON", f"{len(content)} bytes ({error})") from error
    if version != _FORMAT_VERSION:
        raise CorruptCheckpointError(
            f"[checkpoint] {path} must have the format {_FORMAT!r}, version {_FORMAT_VERSION}: "
            f"got {manifest['format']!r}, {version}. Read it with the version that wrote it."
        )
    expected = manifest.pop("blake2b", None)
    if (found := _digest(_encode(manifest))) != expected:
        raise _corrupt(path, f"have the hash {expected}", found)
    return manifest  # type: ignore[no-any-return]


def _read_arrays(path: Path) -> dict[str, Array]:
    import safetensors
    import safetensors.numpy

    if not path.is_file():
        raise _corrupt(path, "exist", "no such file")
    try:
        return safetensors.numpy.load_file(path)
    except safetensors.SafetensorError as error:
        size = path.stat().st_size
        raise _corrupt(path, "be a safetensors file", f"{size} bytes ({error})") from error


def _corrupt(path: Path, rule: str, found: str) -> CorruptCheckpointError:
    return CorruptCheckpointError(
        f"[checkpoint] {path} must {rule}: got {found}. The checkpoint is damaged: restore an "
        "older one."
    )


@contextlib.contextmanager
def _explained_errors(action: str, target: Path, size: int = 0) -> Iterator[None]:
    """Gives the system's errors the path, the values and a way out."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # one of ours
            raise
        if error.errno in _FULL_DISK:
            free = shutil.disk_usage(_existing_parent(target)).free
            advice = f"{size} bytes are needed, {free} are free: make room or choose another disk"
        elif action == "save":
            advice = "nothing was changed; choose a folder that this user may write to"
        else:
            advice = "check that this user may read it"
        message = f"[checkpoint] cannot {action} {target}: {error.strerror}. {advice}."
        raise OSError(error.errno, message) from error


def _existing_parent(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
