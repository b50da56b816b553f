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
    if (items := _storage.items_of(content)) > _MOST_ITEMS or len(content) > _MOST_BYTES:
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
                _files.put_in_place(temporary, target, DOCUMENT, _ARRAYS_NAME, _files.sync_folder)


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
        path = target
        try:
            # Both files are opened before a writer may replace one of them.
            with _storage.lock_for_reading(target.parent):
                document = _read_document(target)
                path = target / document["arrays_file"]
                file = opened.enter_context(_storage._open_arrays(path))
            arrays = _storage._read_arrays(path, file, document["arrays"])
        except CorruptCheckpointError as error:
            raise corrupt(path, error.found) from None
        return arrays, document["model"]


def _read_document(target: Path) -> dict[str, Any]:
    path = target / DOCUMENT
    try:
        content = _files.read_file(path, _MOST_BYTES)
        document = _storage.parse(content, _MOST_ITEMS, _DEEPEST)
        version = document["version"] if document["format"] == FORMAT else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(_absent(target)) from error
    except (ValueError, KeyError, TypeError) as error:
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
    _storage._check_entries(path, entries)


def corrupt(path: Path | str, found: str) -> CorruptSavedModelError:
    """An error for a file that breaks a rule."""
    return CorruptSavedModelError(
        f"[saved_model.load] {path} must be as saved_model.save writes it: got a damaged one, as "
        f"{found}; save the model again."
    )
