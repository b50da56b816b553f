"""Checkpoints of a folder, now and while another program trains."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from samegrad.train import _state_file
from samegrad.train._storage import CorruptCheckpointError

__all__ = ["checkpoints_iterator", "get_checkpoint_state"]


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


def checkpoints_iterator(
    checkpoint_dir: str | os.PathLike[str],
    min_interval_secs: float = 0,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Iterator[str]:
    """Yield the path of each new checkpoint of a folder, as it appears.

    Args:
        checkpoint_dir: The folder.
        min_interval_secs: The least time between two checkpoints.
        timeout: The most seconds to wait for a checkpoint; None: for ever.
        timeout_fn: Called after the timeout; True ends the iterator, False waits again.

    Returns:
        An iterator of paths.

    Example:
        >>> import samegrad as tf
        >>> path = tf.train.Checkpoint(v=tf.Variable(1.0)).save("watched/ckpt")
        >>> list(tf.train.checkpoints_iterator("watched", timeout=0)) == [path]
        True
    """
    last: str | None = None
    while True:
        begin = time.monotonic()
        found = _state_file.latest_checkpoint(checkpoint_dir)
        while found is None or found == last:
            waited = time.monotonic() - begin
            if timeout is not None and waited >= timeout:
                if timeout_fn is None or timeout_fn():
                    return
                begin = time.monotonic()
            time.sleep(min(1.0, timeout or 1.0))
            found = _state_file.latest_checkpoint(checkpoint_dir)
        last, started = found, time.monotonic()
        yield found
        time.sleep(max(min_interval_secs - (time.monotonic() - started), 0.0))
