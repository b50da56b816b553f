"""The checkpoints of a folder."""

from __future__ import annotations

import os
from dataclasses import dataclass

from samegrad.train import _state_file
from samegrad.train._storage import CorruptCheckpointError

__all__ = ["get_checkpoint_state"]


@dataclass(frozen=True)
class CheckpointState:
    """The checkpoints of a folder.

    Args:
        model_checkpoint_path: The path of the latest one.
        all_model_checkpoint_paths: The paths of all, the oldest first.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str]


def get_checkpoint_state(
    checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None
) -> CheckpointState | None:
    """Return the checkpoints of a folder, or None if there are none.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The state file; None: "checkpoint".

    Returns:
        An object with `model_checkpoint_path` and `all_model_checkpoint_paths`, or None.

    Raises:
        CorruptCheckpointError: The state file of the folder is damaged.

    Example:
        >>> import samegrad as tf
        >>> path = tf.train.Checkpoint(v=tf.Variable(1.0)).save("listed/ckpt")
        >>> tf.train.get_checkpoint_state("listed").model_checkpoint_path == path
        True
    """
    latest = _state_file.latest_checkpoint(checkpoint_dir, latest_filename)
    if latest is None:
        return None
    try:
        found = _state_file.all_checkpoints(checkpoint_dir)
    except CorruptCheckpointError:  # TensorFlow's own file
        found = [latest]
    return CheckpointState(latest, found)
