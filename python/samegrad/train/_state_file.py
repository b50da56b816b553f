"""State file that lists the checkpoints of a folder, and the deletion of old ones."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from samegrad._base.shown import shown
from samegrad.train import _files
from samegrad.train._storage import (
    MOST_BYTES,
    CorruptCheckpointError,
    corrupt,
    explained_errors,
    is_checkpoint,
    parse,
)

_STATE_NAME = "checkpoint"
_BETWEEN_LOOKS = 1.0  # seconds, as in TensorFlow
_TENSORFLOWS = b"model_checkpoint_path:"  # how TensorFlow's file of this name begins
_QUOTED = re.compile(rb'\s*"([^"\\\n]+)"')


def latest_checkpoint(
    checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None
) -> str | None:
    """Return the path of the last checkpoint that was saved in a folder.

    Args:
        checkpoint_dir: Folder of `Checkpoint.save(prefix)` or of a `CheckpointManager`.
        latest_filename: The state file; None: "checkpoint", the name that samegrad writes.

    Returns:
        A path for `Checkpoint.restore`, or None if nothing was saved there. The folder may
        be one of TensorFlow's.

    Raises:
        CorruptCheckpointError: The state file of the folder is damaged.

    Example:
        >>> import samegrad as tf, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(step=3).save(folder + "/ckpt")
        ...     tf.train.latest_checkpoint(folder) == path
        True
    """
    if latest_filename not in (None, _STATE_NAME):
        return None
    folder = Path(checkpoint_dir)
    if (name := _latest_of_tensorflow(folder)) is not None:
        return os.path.join(checkpoint_dir, name) if (folder / f"{name}.index").exists() else None
    checkpoints = all_checkpoints(checkpoint_dir)
    return checkpoints[-1] if checkpoints else None


def checkpoints_iterator(
    checkpoint_dir: str | os.PathLike[str],
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], Any] | None = None,
) -> Iterator[str]:
    """Yield the path of the last checkpoint of a folder each time that another one is there.

    Args:
        checkpoint_dir: The folder, which may not exist yet.
        min_interval_secs: The least number of seconds between two paths.
        timeout: The seconds to wait for another checkpoint; None: no end.
        timeout_fn: Called after each path and each timeout; the iterator ends if it returns True.
            None: a timeout ends the iterator.

    Yields:
        Paths for `Checkpoint.restore`. Checkpoints between two calls are left out.

    Raises:
        CorruptCheckpointError: The state file of the folder is damaged.

    Example:
        >>> import samegrad as tf, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(step=3).save(folder + "/ckpt")
        ...     list(tf.train.checkpoints_iterator(folder, timeout=0)) == [path]
        True
    """
    last: str | None = None
    while True:
        begun = time.monotonic()
        while (path := latest_checkpoint(checkpoint_dir)) in (None, last):
            left = _BETWEEN_LOOKS if timeout is None else timeout - (time.monotonic() - begun)
            if left <= 0:
                break
            time.sleep(min(left, _BETWEEN_LOOKS))
        if path is not None and path != last:
            begun, last = time.monotonic(), path
            yield path
            time.sleep(max(0.0, begun + min_interval_secs - time.monotonic()))
        elif timeout_fn is None:
            return
        if timeout_fn is not None and timeout_fn():
            return


def all_checkpoints(folder: str | os.PathLike[str]) -> list[str]:
    """Paths of the checkpoints listed in a folder's state file, the oldest first."""
    kept, _ = _read_state(Path(folder))
    return [os.path.join(folder, name) for name in kept]


def record_save(
    path: str | os.PathLike[str],
    max_to_keep: int | None = None,
    every_n_hours: float | None = None,
) -> None:
    """Make a checkpoint just saved the latest of its folder, whose lock is held.

    Args:
        path: The checkpoint.
        max_to_keep: How many to keep; None keeps all. The others are only listed as obsolete.
        every_n_hours: Of the others, those are neither listed nor deleted that are so much younger
            than the last one of them. None: no one.

    Raises:
        CorruptCheckpointError: The state file of the folder is damaged.
        OSError: It cannot be written.
    """
    path = Path(path)
    folder = Path(os.path.abspath(path.parent))
    with explained_errors("list", path):
        kept, obsolete = _read_state(folder)
        preserved_at = _preserved_at(folder)
        if every_n_hours and preserved_at is None:
            preserved_at = time.time() - 1.0
        kept = [name for name in kept if name != path.name and (folder / name).exists()]
        kept.append(path.name)
        surplus = len(kept) - max_to_keep if max_to_keep is not None else 0
        if surplus > 0:
            old, kept = kept[:surplus], kept[surplus:]
            preserved_at, obsolete_now = _preserve(folder, old, every_n_hours, preserved_at)
            obsolete = obsolete + obsolete_now
        # What a kill left undeleted stays in the list of the obsolete until it is gone.
        obsolete = [n for n in obsolete if n not in kept and _may_be_checkpoint(folder / n)]
        _write_state(folder, kept, obsolete, preserved_at)


def _preserve(
    folder: Path, old: list[str], hours: float | None, preserved_at: float | None
) -> tuple[float | None, list[str]]:
    """Return when the last preserved checkpoint was saved, and the checkpoints to delete."""
    if not hours or preserved_at is None:
        return preserved_at, old
    obsolete = []
    for name in old:
        saved_at = (folder / name).stat().st_mtime
        if saved_at - hours * 3600.0 >= preserved_at:
            preserved_at = saved_at
        else:
            obsolete.append(name)
    return preserved_at, obsolete


def remove_obsolete(folder: str | os.PathLike[str]) -> None:
    """Delete the checkpoints that a folder's state file lists as obsolete.

    An entry that is not a checkpoint, or holds more than one, is not touched, whatever the file
    says.

    Raises:
        CorruptCheckpointError: The state file of the folder is damaged.
        OSError: A checkpoint cannot be deleted.
    """
    folder = Path(os.path.abspath(folder))
    with explained_errors("delete", folder):
        if not folder.is_dir() or not _read_state(folder)[1]:
            return
        with _files.locked(folder):
            kept, obsolete = _read_state(folder)
            for name in obsolete:
                with explained_errors("delete", folder / name):
                    if name not in kept and is_checkpoint(folder / name):
                        _files.remove_folder(folder / name)


def forget_all(folder: str | os.PathLike[str]) -> None:
    """Delete all checkpoints that a folder's state file lists.

    Raises:
        CorruptCheckpointError: The state file of the folder is damaged.
        OSError: A checkpoint cannot be deleted.
    """
    folder = Path(os.path.abspath(folder))
    with explained_errors("delete", folder):
        if not (folder / _STATE_NAME).exists():
            return
        with _files.locked(folder):
            kept, obsolete = _read_state(folder)
            _write_state(folder, [], [*obsolete, *kept])
    remove_obsolete(folder)


def _may_be_checkpoint(path: Path) -> bool:
    try:
        return is_checkpoint(path)
    except OSError:  # who deletes it will tell
        return True


def _latest_of_tensorflow(folder: Path) -> str | None:
    """Return the name of the latest checkpoint in TensorFlow's state file; None: it is not that.

    Of a path, as TensorFlow writes it for another folder, the name counts: the folder may be moved.

    Raises:
        CorruptCheckpointError: The file names none.
    """
    path = folder / _STATE_NAME
    try:
        with explained_errors("read", path):
            content = _files.read_file(path, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError, _files.UnusableFileError):
        return None
    if not content.startswith(_TENSORFLOWS):
        return None
    found = _QUOTED.match(content, len(_TENSORFLOWS))
    name = os.path.basename(found[1].decode(errors="replace")) if found else ""
    if not _files.is_plain(name):
        raise corrupt(path, "name the latest checkpoint", shown(content[:60]))
    return name


def _read_state(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the checkpoints to keep, and of those to delete."""
    path, content = folder / _STATE_NAME, b""
    try:
        with explained_errors("read", path):
            content = _files.read_file(path, MOST_BYTES)
        state = parse(content)
        return _names(state["checkpoints"]), _names(state["obsolete"])
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except (ValueError, KeyError, TypeError) as error:
        if content.startswith(_TENSORFLOWS):
            raise CorruptCheckpointError(
                f"[checkpoint] a folder to save into must be samegrad's own: got {path}, a file of "
                f"TensorFlow's: {content[:60]!r}. Restore its checkpoints by their paths, and save "
                "into another folder."
            ) from None
        raise CorruptCheckpointError(
            f"[checkpoint] {path} must list names of checkpoints of its folder in JSON: got "
            f"{error!s:.120} ({type(error).__name__}). Remove it and restore a checkpoint by its "
            "path."
        ) from error


def _preserved_at(folder: Path) -> float | None:
    """Return when the last checkpoint was saved that stays for ever, or None."""
    try:
        found = parse(_files.read_file(folder / _STATE_NAME, MOST_BYTES)).get("preserved_at")
    except FileNotFoundError:
        return None
    return float(found) if isinstance(found, int | float) else None


def _names(values: object) -> list[str]:
    """Names inside the folder; ValueError for paths, which lead out of it."""
    if not isinstance(values, list):
        raise TypeError(f"{values!r:.80} instead of a list")
    for name in values:
        if not _files.is_plain(name) or name == _STATE_NAME:
            raise ValueError(f"{name!r:.80} instead of a name")
    return list(dict.fromkeys(values))


def _write_state(
    folder: Path, kept: list[str], obsolete: list[str], preserved_at: float | None = None
) -> None:
    # Names, not paths: the folder may be moved.
    latest = kept[-1] if kept else None
    state: dict[str, object] = {"latest": latest, "checkpoints": kept, "obsolete": obsolete}
    if preserved_at is not None:
        state["preserved_at"] = preserved_at
    _files.replace_file(folder / _STATE_NAME, json.dumps(state, indent=1).encode())
