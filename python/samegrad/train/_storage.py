"""Checkpoint folders: named arrays with a hash each, and a manifest, replaced all at once.

A folder holds `arrays-<id>.safetensors` and `manifest.json`. The manifest is the last file to be
put in place and names the array file, so it alone decides which state the folder stands for. The
id comes from the content: equal states make equal folders, byte for byte.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from samegrad._base import file_errors as _system_errors
from samegrad._base.dtypes import numpy_dtype
from samegrad.train import _files
from samegrad.train._foreign import foreign
from samegrad.train._safetensors import DTYPE_NAMES, fill, header_of, little_endian

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Array: TypeAlias = npt.NDArray[Any]

_FORMAT = "samegrad-checkpoint"
_FORMAT_VERSION = 1
_MANIFEST_NAME = "manifest.json"
_ARRAYS_NAME = re.compile(r"arrays-[0-9a-f]{16}\.safetensors")
_ENCODER = json.JSONEncoder(indent=1, sort_keys=True)
# What is read before its hash is known may not take much memory.
MOST_BYTES = 8 << 20
_MAX_ITEMS = 400_000
_DEEPEST = 64
_MAX_AXES = 32  # of NumPy's arrays
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CorruptCheckpointError(ValueError):
    """A checkpoint is truncated, altered, or of a format this version cannot read."""

    found = ""  # the rule that a file breaks, and how


def save(
    directory: str | os.PathLike[str],
    arrays: Mapping[str, Array],
    manifest: Mapping[str, Json],
    then: Callable[[], None] = lambda: None,
) -> None:
    """Write a checkpoint folder; a kill at any moment leaves the previous one, or the new one.

    Args:
        directory: The folder. Missing parents are created; an older checkpoint is replaced.
        arrays: Arrays by name: floating point, integers or bool, of any shape and memory order.
        manifest: Further values to store, as JSON knows them.
        then: Called when the folder is in place, while others may not put one there.

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
    with explained_errors("save", target, size):
        _files.make_folder(target.parent)
        with _files.temporary_folder(target.parent) as temporary:
            _write_arrays(temporary / arrays_name, plain, entries)
            _files.write_new_file(temporary / _MANIFEST_NAME, content)
            _files.sync_folder(temporary)
            with _files.locked(target.parent):
                sync = partial(_sync_published, target)
                _files.put_in_place(temporary, target, _MANIFEST_NAME, _ARRAYS_NAME, sync)
                then()


def load(directory: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Json]]:
    """Read a checkpoint folder and check every hash.

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
    with explained_errors("read", target), contextlib.ExitStack() as opened:
        # Both files are opened before a writer may replace one of them.
        with lock_for_reading(target.parent):
            manifest = _read_manifest(target)
            path = target / manifest["arrays_file"]
            file = opened.enter_context(_open_arrays(path))
        return _read_arrays(path, file, manifest["arrays"]), manifest["values"]


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Write a new safetensors file and return dtype, shape and hash of each array."""
    plain = {name: _as_plain(name, array) for name, array in sorted(arrays.items())}
    entries = {name: _describe(array) for name, array in plain.items()}
    _write_arrays(path, plain, entries)
    return entries


def read_arrays(path: Path, entries: Mapping[str, Any]) -> dict[str, Array]:
    """Read a safetensors file whose arrays have the entries that `write_arrays` returned."""
    _check_entries(path, entries)
    with _open_arrays(path) as file:
        return _read_arrays(path, file, entries)


def lock_for_reading(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Return a block that holds the lock of a folder, if it exists, with other readers."""
    return _files.locked(folder, shared=True) if folder.is_dir() else contextlib.nullcontext()


def _as_plain(name: str, array: Array) -> Array:
    """The array in C order and little-endian, as the file holds it."""
    array = np.asarray(array)
    if array.dtype.name not in DTYPE_NAMES:
        raise TypeError(
            f"[checkpoint] arrays must be floating point, integer or bool: got {array.dtype} for "
            f"{name!r}. Store it in another form."
        )
    return array.astype(little_endian(array.dtype), order="C", copy=False)


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
    _check_depth(value)
    try:
        return _ENCODER.encode(value).encode()
    except (TypeError, RecursionError) as error:
        raise TypeError(
            f"[checkpoint] values must be None, bool, int, float, str, or lists and dicts of "
            f"them: {error}. Store arrays as arrays, other objects in such a form."
        ) from error


def _hash_of(value: object) -> str:
    """Return the digest of the canonical spelling, which is never in memory as a whole."""
    digest = hashlib.blake2b(digest_size=32)
    for chunk in _ENCODER.iterencode(value):
        digest.update(chunk.encode())
    return digest.hexdigest()


def _check_depth(value: object, deepest: int = _DEEPEST) -> None:
    """ValueError for nesting that would be slow to write, and could not be read."""
    level: list[Any] = [value] if isinstance(value, (list, tuple, dict)) else []
    for _ in range(deepest):
        inside = (
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (list, tuple, dict))
        )
        level = list({id(inner): inner for inner in inside}.values())
        if not level:
            return
    raise ValueError(
        f"[checkpoint] values may be nested {deepest} levels deep: got more. Store them flat."
    )


def items_of(content: bytes) -> int:
    """Return the largest number of values that JSON can have."""
    return sum(content.count(mark) for mark in (b",", b"[", b"{"))


def parse(content: bytes, most_items: int = _MAX_ITEMS, deepest: int = _DEEPEST) -> Any:
    """Parse JSON from any source.

    Args:
        content: JSON in ASCII.
        most_items: The largest number of values, which bounds the memory.
        deepest: The largest number of lists and dicts inside one another.

    Raises:
        ValueError: It is not JSON, or would need much memory.
    """
    if (items := items_of(content)) > most_items:
        raise ValueError(f"{items} items, where at most {most_items} are expected")
    try:
        value = json.loads(content.decode("ascii"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    _check_depth(value, deepest)
    return value


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
    content = _encode({**manifest, "blake2b": _hash_of(manifest)})
    if len(content) > MOST_BYTES or items_of(content) > _MAX_ITEMS:
        raise ValueError(
            f"[checkpoint] the list of names and values may take {MOST_BYTES} bytes and hold "
            f"{_MAX_ITEMS} items: got {len(content)} and {items_of(content)}. Store many values as "
            "one array."
        )
    return content


def _write_arrays(
    path: Path, arrays: Mapping[str, Array], entries: Mapping[str, Mapping[str, Any]]
) -> None:
    """Write the safetensors format: header length, header, then the bytes of each array.

    The library's writer is not used: it turns a full disk into an error without an `errno`.
    """
    header, sizes = header_of(entries)
    _files.write_new_file(path, header, *(_bytes_of(arrays[name]) for name in sizes))


def _sync_published(target: Path, folder: Path) -> None:
    with explained_errors("flush", target):
        _files.sync_folder(folder)


def is_checkpoint(path: Path) -> bool:
    """Tell if a folder holds what `save` writes, and nothing else: it may be deleted.

    Raises:
        OSError: The disk does not say.
    """
    try:
        if path.is_symlink():
            return False
        found = {item.name for item in path.iterdir() if item.is_file() and not item.is_symlink()}
        arrays = {name for name in found if _ARRAYS_NAME.fullmatch(name)}
        return bool(arrays) and {item.name for item in path.iterdir()} == arrays | {_MANIFEST_NAME}
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False


def _read_manifest(target: Path) -> dict[str, Any]:
    path = target / _MANIFEST_NAME
    try:
        content = _files.read_file(path, MOST_BYTES)
        manifest = parse(content)
        version = manifest["version"] if manifest["format"] == _FORMAT else None
    except (FileNotFoundError, NotADirectoryError) as error:
        if other := foreign(target):
            raise FileNotFoundError(
                f"[checkpoint] checkpoints are samegrad's or TensorFlow's: got {target}, {other}."
            ) from error
        raise FileNotFoundError(
            f"[checkpoint] a checkpoint folder must hold {_MANIFEST_NAME}: {target} "
            + ("does not. " if target.exists() else "does not exist. ")
            + "Give the path that save() or write() returned, or latest_checkpoint(folder)."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise corrupt(path, "be a manifest in JSON", f"{_text(error)}") from error
    if version != _FORMAT_VERSION or isinstance(version, bool):
        raise CorruptCheckpointError(
            f"[checkpoint] {path} must have the format {_FORMAT!r}, version {_FORMAT_VERSION}: "
            f"got {manifest['format']!r:.40}, {version!r:.40}. Read it with the version that wrote "
            "it."
        )
    expected = manifest.pop("blake2b", None)
    if (found := _hash_of(manifest)) != expected:
        raise corrupt(path, f"have the hash {expected!r:.80}", found)
    _check_manifest(path, manifest)
    return manifest  # type: ignore[no-any-return]


def _check_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Check that all entries are as `save` writes them; a hash can be forged."""
    name, entries, values = (manifest.get(key) for key in ("arrays_file", "arrays", "values"))
    if not (isinstance(name, str) and _ARRAYS_NAME.fullmatch(name)):
        raise corrupt(path, "name an array file of its folder", f"{name!r:.80}")
    if not isinstance(values, dict) or not isinstance(entries, dict):
        kinds = f"{type(entries).__name__} and {type(values).__name__}"
        raise corrupt(path, "hold arrays and values by name", kinds)
    _check_entries(path, entries)


def _check_entries(path: Path, entries: Mapping[str, Any]) -> None:
    for key, entry in entries.items():
        if not _is_entry(entry):
            raise corrupt(path, f"give dtype, shape and hash of {key!r:.80}", f"{entry!r:.80}")


def _is_entry(entry: object) -> bool:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "blake2b"}:
        return False
    shape = entry["shape"]
    return (
        isinstance(entry["dtype"], str)
        and entry["dtype"] in DTYPE_NAMES
        and isinstance(entry["blake2b"], str)
        and isinstance(shape, list)
        and len(shape) <= _MAX_AXES
        and all(type(n) is int and 0 <= n < 2**62 for n in shape)
    )


def _open_arrays(path: Path) -> io.FileIO:
    try:
        return _files.open_file(path)
    except FileNotFoundError as error:
        raise corrupt(path, "exist", "no such file") from error
    except _files.UnusableFileError as error:
        raise corrupt(path, "be a file", str(error)) from error


def _read_arrays(
    path: Path, file: io.FileIO, entries: Mapping[str, Mapping[str, Any]]
) -> dict[str, Array]:
    """The arrays, once header and size are those that the manifest asks for."""
    header, sizes = header_of(entries)
    size = os.fstat(file.fileno()).st_size
    if size != (expected := len(header) + sum(sizes.values())):
        raise corrupt(path, f"have {expected} bytes", f"{size}")
    found = bytearray(len(header))
    if fill(file, memoryview(found)) < len(header) or found != header:
        raise corrupt(path, "begin with the header of its arrays", "another one")
    arrays = {}
    for name in sizes:
        entry = entries[name]
        try:
            array = np.empty(entry["shape"], little_endian(numpy_dtype(entry["dtype"])))
        except MemoryError as error:
            raise MemoryError(
                f"[checkpoint] {path} must fit into memory: got {sizes[name]} bytes for "
                f"{name!r:.80}. Free some memory, or restore on another machine."
            ) from error
        except ValueError as error:  # beyond what NumPy can count
            raise corrupt(path, f"hold the array {name!r:.80}", f"{entry['shape']}") from error
        if fill(file, _bytes_of(array)) < sizes[name]:
            raise corrupt(path, f"hold the array {name!r:.80}", "the end of the file")
        if (digest := _digest(_bytes_of(array))) != entry["blake2b"]:
            told = f"one with blake2b {digest}"
            rule = f"hold the array {name!r:.80} as one with blake2b {entry['blake2b']!r:.80}"
            raise corrupt(path, rule, told)
        arrays[name] = array
    return arrays


def _text(error: Exception) -> str:
    return f"{error!s:.120} ({type(error).__name__})"


def corrupt(path: Path, rule: str, found: str) -> CorruptCheckpointError:
    """An error for a file that breaks a rule."""
    error = CorruptCheckpointError(
        f"[checkpoint] {path} must {rule}: got {found}. The checkpoint is damaged: restore an "
        "older one."
    )
    error.found = f"it must {rule}: got {found}"
    return error


def explained_errors(
    action: str, target: Path, size: int = 0
) -> contextlib.AbstractContextManager[None]:
    """Give the system's errors the path, the values and a way out.

    Args:
        action: What is done to the target: "save", "flush", "list", "delete" or "read".
        target: The checkpoint.
        size: Bytes that are needed on the disk.
    """
    return _system_errors.explained_errors(
        "checkpoint", action, target, lambda error: _advice(action, error, target, size)
    )


def _advice(action: str, error: OSError, target: Path, size: int) -> str:
    if error.errno in _FULL_DISK:
        free = "an unknown number"
        with contextlib.suppress(OSError):
            free = str(shutil.disk_usage(_existing_parent(target)).free)
        return f"{size} bytes are needed, {free} are free: make room or choose another disk"
    return {
        "save": "nothing was changed; choose a folder that this user may write to",
        "flush": "it is written, but a power cut may lose it; look at the disk, and save again",
        "list": "it is written, but not listed as the latest; look at the disk, and save again",
        "delete": "newer checkpoints are complete; delete it by hand, or let the next save try",
    }.get(action, "check that this user may read it, and look at the disk")


def _existing_parent(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
