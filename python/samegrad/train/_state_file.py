"""Which checkpoints a folder holds, in a small state file, and the deletion of old ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

from samegrad.train import _files
from samegrad.train._storage import CorruptCheckpointError

_STATE_NAME = "checkpoint"


def latest_checkpoint(checkpoint_dir: str | os.PathLike[str]) -> str | None:
    """Path of the last checkpoint that was saved in a folder.

    Args:
        checkpoint_dir: The folder of `Checkpoint.save(prefix)` or of a `CheckpointManager`.

    Returns:
        A path for `Checkpoint.restore`, or None if nothing was saved there.

    Raises:
        CorruptCheckpointError: The state file of the folder is damaged.

    Example:
        >>> import samegrad as tf, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(step=3).save(folder + "/ckpt")
        ...     tf.train.latest_checkpoint(folder) == path
        True
    """
    checkpoints = all_checkpoints(checkpoint_dir)
    return checkpoints[-1] if checkpoints else None


def all_checkpoints(folder: str | os.PathLike[str]) -> list[str]:
    """Paths of the checkpoints listed in a folder's state file, the oldest first."""
    kept, _ = _read_state(Path(folder))
    return [os.path.join(folder, name) for name in kept]


def record_save(path: str | os.PathLike[str], max_to_keep: int | None = None) -> None:
    """Makes a checkpoint just saved the latest of its folder, and deletes the oldest ones.

    Args:
        path: The checkpoint.
        max_to_keep: How many to keep; None keeps all.
    """
    path = Path(path)
    folder = path.parent
    kept, obsolete = _read_state(folder)
    kept = [name for name in kept if name != path.name and (folder / name).exists()]
    kept.append(path.name)
    surplus = len(kept) - max_to_keep if max_to_keep is not None else 0
    if surplus > 0:
        obsolete, kept = obsolete + kept[:surplus], kept[surplus:]
    # What a kill left undeleted stays in the list of the obsolete until it is gone.
    obsolete = [name for name in obsolete if name not in kept and (folder / name).exists()]
    _write_state(folder, kept, obsolete)
    for name in obsolete:
        _files.remove_folder(folder / name)


def _read_state(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the checkpoints to keep, and of those to delete."""
    path = folder / _STATE_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return [], []
    try:
        state = json.loads(content)
        return list(state["checkpoints"]), list(state["obsolete"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptCheckpointError(
            f"[checkpoint] {path} must list the checkpoints in JSON: got {len(content)} bytes "
            f"({type(error).__name__}: {error}). Remove it and restore a checkpoint by its path."
        ) from error


def _write_state(folder: Path, kept: list[str], obsolete: list[str]) -> None:
    # Names, not paths: the folder may be moved.
    state = {"latest": kept[-1], "checkpoints": kept, "obsolete": obsolete}
    _files.replace_file(folder / _STATE_NAME, json.dumps(state, indent=1).encode())
