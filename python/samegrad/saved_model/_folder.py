"""Folder of a saved model: a document in JSON, and the arrays that it names with a hash each.

`saved_model.json` is the last file to be put in place and names the array file, so it alone decides
which model the folder stands for.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samegrad._base.file_errors import explained_errors
from samegrad.train import _files, _storage
from samegrad.train._storage import Array, CorruptCheckpointError, Json

DOCUMENT = "saved_model.json"
FORMAT = "samegrad-saved-model"
VERSION = 1
_ARRAYS_NAME = re.compile(r"variables-[0-9a-f]{16}\.safetensors")
# What is parsed before its hash is known may not take much memory.
_MOST_BYTES = 64 << 20
_MOST_ITEMS = 4_000_000
_DEEPEST = 256
_OF_TENSORFLOW = ("saved_model.pb", "saved_model.pbtxt")
_CANNOT_WRITE = "nothing was changed; choose a folder that this user may write to, with room for it"
_CANNOT_READ = "check that this user may read it, and look at the disk"


class CorruptSavedModelError(ValueError):
    """A saved model is truncated, altered, or of a format this version cannot read."""


def contains_saved_model(export_dir: str | os.PathLike[str]) -> bool:
    """Return True if a folder holds a model that `saved_model.save` wrote.

    Args:
        export_dir: The folder.

    Example:
        >>> import samegrad as tf
        >>> tf.saved_model.contains_saved_model("no/such/folder")
        False
    """
    return (Path(os.path.abspath(export_dir)) / DOCUMENT).is_file()


def encode(value: Json) -> bytes:
    """One spelling for one value, so that hashes can be compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def write(
    directory: str | os.PathLike[str], arrays: Mapping[str, Array], model: Mapping[str, Json]
) -> None:
    """Write the folder; a kill at any moment leaves the previous model, or the new one.

    Args:
        directory: The folder. Missing parents are created; an older model is replaced.
        arrays: The arrays by name.
        model: All else, as JSON knows it.

    Raises:
        ValueError: It is larger than what `read` takes.
        OSError: The disk is full, the folder is not writable, or the like. Nothing half-written is
            left.
    """
    target = Path(os.path.abspath(directory))
    plain = {name: _storage._as_plain(name, array) for name, array in sorted(arrays.items())}
    entries = {name: _storage._describe(array) for name, array in plain.items()}
    arrays_name = f"variables-{_storage._digest(encode(entries))[:16]}.safetensors"  # type: ignore[arg-type]
    body: dict[str, Any] = {
        "format": FORMAT, "version": VERSION, "arrays_file": arrays_name, "arrays": entries,
        "model": dict(model),
    }  # fmt: skip
    content = encode({**body, "blake2b": _storage._digest(encode(body))})
    if (items := _items(content)) > _MOST_ITEMS or len(content) > _MOST_BYTES:
        raise ValueError(
            f"[saved_model.save] the functions of a model may take {_MOST_BYTES} bytes and "
            f"{_MOST_ITEMS} items: got {len(content)} and {items}; save fewer of them, or pass "
            "large Python structures as tensors."
        )
    with explained_errors("saved_model.save", "write", target, _CANNOT_WRITE):
        _files.make_folder(target.parent)
        with _files.temporary_folder(target.parent) as temporary:
            _storage._write_arrays(temporary / arrays_name, plain, entries)
            _files.write_new_file(temporary / DOCUMENT, content)
            _files.sync_folder(temporary)
            with _files.locked(target.parent):
                _put_in_place(temporary, target, arrays_name)


def _put_in_place(temporary: Path, target: Path, arrays_name: str) -> None:
    """Make the finished temporary folder the target, or move its files over the older ones."""
    if target.is_symlink():
        raise NotADirectoryError(20, "it is a symbolic link, which is not followed")
    if not target.exists():
        os.rename(temporary, target)
        _files.sync_folder(target.parent)
        return
    # A folder cannot be renamed onto another. The document goes last: until then it is the old
    # one, whose array file has another name and is still there.
    os.replace(temporary / arrays_name, target / arrays_name)
    _files.sync_folder(target)
    os.replace(temporary / DOCUMENT, target / DOCUMENT)
    _files.sync_folder(target)
    with contextlib.suppress(OSError):  # the next save tries again
        for path in target.iterdir():
            if _ARRAYS_NAME.fullmatch(path.name) and path.name != arrays_name:
                os.unlink(path)


def read(directory: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read a folder and check every hash.

    Returns:
        The arrays by name, and the value given as `model`.

    Raises:
        FileNotFoundError: There is no saved model.
        CorruptSavedModelError: A file is missing, truncated or altered.
        OSError: A file cannot be read.
    """
    target = Path(os.path.abspath(directory))
    with (
        explained_errors("saved_model.load", "read", target, _CANNOT_READ),
        contextlib.ExitStack() as opened,
    ):
        # Both files are opened before a writer may replace one of them.
        locked = _files.locked(target.parent, shared=True) if target.parent.is_dir() else None
        with locked or contextlib.nullcontext():
            document = _read_document(target)
            path = target / document["arrays_file"]
            file = opened.enter_context(_open_arrays(path))
        try:
            arrays = _storage._read_arrays(path, file, document["arrays"])
        except CorruptCheckpointError as error:
            raise corrupt(
                path, str(error).split("] ", 1)[-1].split(". The checkpoint")[0]
            ) from None
        return arrays, document["model"]


def _items(content: bytes) -> int:
    return sum(content.count(mark) for mark in (b",", b"[", b"{"))


def _parse(content: bytes) -> Any:
    if (items := _items(content)) > _MOST_ITEMS:
        raise ValueError(f"{items} items, where at most {_MOST_ITEMS} are expected")
    if _depth(content) > _DEEPEST:
        raise ValueError("it is nested too deeply")
    return json.loads(content.decode("ascii"))


def _depth(content: bytes) -> int:
    """Return the most brackets that are open at once, of strings too: never less than the depth."""
    deepest = depth = 0
    for mark in re.finditer(rb"[\[\]{}]", content):
        depth += 1 if mark.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _read_document(target: Path) -> dict[str, Any]:
    path = target / DOCUMENT
    try:
        document = _parse(_files.read_file(path, _MOST_BYTES))
        version = document["version"] if document["format"] == FORMAT else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(_absent(target)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise corrupt(path, f"it cannot be parsed as JSON: {error!s:.120}") from None
    if version != VERSION or isinstance(version, bool):
        raise CorruptSavedModelError(
            f"[saved_model.load] {path} must have the format {FORMAT!r}, version {VERSION}: got "
            f"{document['format']!r:.40}, {version!r:.40}; load it with the version that wrote it."
        )
    expected = document.pop("blake2b", None)
    if _storage._digest(encode(document)) != expected:
        raise corrupt(path, "its content is not that of its hash")
    _check(path, document)
    return document  # type: ignore[no-any-return]


def _absent(target: Path) -> str:
    other = next((name for name in _OF_TENSORFLOW if (target / name).exists()), None)
    if other:
        return (
            "[saved_model.load] models are those of samegrad's saved_model.save: got the graph of "
            f"TensorFlow in {target / other}; save the model with samegrad, or its weights as a "
            "checkpoint."
        )
    return (
        f"[saved_model.load] SavedModel file does not exist at: {target / DOCUMENT}; pass the "
        "folder that saved_model.save was given."
    )


def _check(path: Path, document: dict[str, Any]) -> None:
    """Check that all entries are as `write` writes them; a hash can be forged."""
    name, entries, model = (document.get(key) for key in ("arrays_file", "arrays", "model"))
    if not (isinstance(name, str) and _ARRAYS_NAME.fullmatch(name)):
        raise corrupt(path, f"it names no array file of its folder: {name!r:.80}")
    if not isinstance(entries, dict) or not isinstance(model, dict):
        raise corrupt(path, "it holds no arrays, or no model")
    for key, entry in entries.items():
        if not _storage._is_entry(entry):
            raise corrupt(path, f"it describes the array {key!r:.80} as {entry!r:.80}")


def _open_arrays(path: Path) -> Any:
    try:
        return _files.open_file(path)
    except FileNotFoundError:
        raise corrupt(path, "there is no such file") from None
    except _files.UnusableFileError as error:
        raise corrupt(path, f"it is {error}") from None


def corrupt(path: Path | str, found: str) -> CorruptSavedModelError:
    """An error for a file that breaks a rule."""
    return CorruptSavedModelError(
        f"[saved_model.load] {path} must be as saved_model.save writes it: got a damaged one, as "
        f"{found}; save the model again."
    )
