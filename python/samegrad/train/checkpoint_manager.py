"""Keeps the last few checkpoints of a training."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from samegrad.train import _files, _state_file
from samegrad.train.checkpoint import Checkpoint

__all__ = ["CheckpointManager"]


class CheckpointManager:
    """Saves checkpoints into one folder, finds the latest and deletes the oldest.

    Args:
        checkpoint: What to save.
        directory: The folder. Checkpoints that an earlier manager listed there are taken over.
        max_to_keep: How many checkpoints to keep, at least 1; None keeps all.
        keep_checkpoint_every_n_hours: Of the checkpoints that `max_to_keep` would delete, keep one
            every so many hours. `checkpoints` does not list them.
        checkpoint_name: Name of the checkpoints before the number.
        step_counter: An integer variable, for `checkpoint_interval`.
        checkpoint_interval: Smallest number of steps between two checkpoints.
        init_fn: Called by `restore_or_initialize` when there is no checkpoint.
        last_checkpoint_step: The step of the last checkpoint, for `checkpoint_interval`.

    Raises:
        ValueError: `max_to_keep` is below 1, the name is a path, or an interval has no counter.

    Example:
        >>> import samegrad as tf, tempfile
        >>> checkpoint = tf.train.Checkpoint(step=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        ...     paths = [manager.save() for _ in range(3)]
        ...     manager.checkpoints == paths[1:]
        True
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: str | os.PathLike[str],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], object] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(
                f"[checkpoint] max_to_keep must be at least 1 or None: got {max_to_keep}. Pass "
                "None to keep all."
            )
        if not _files.is_plain(checkpoint_name):
            raise ValueError(
                f"[checkpoint] checkpoint_name must be a name inside the directory: got "
                f"{checkpoint_name!r}. Give the folder as `directory`."
            )
        if checkpoint_interval is not None and step_counter is None:
            raise ValueError(
                f"[checkpoint] an interval needs a step_counter: got the interval "
                f"{checkpoint_interval} and None. Pass the variable that counts the steps."
            )
        self._checkpoint = checkpoint
        self._directory = os.fspath(directory)
        self._max_to_keep = max_to_keep
        self._every_n_hours = keep_checkpoint_every_n_hours
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._step_counter = step_counter
        self._interval = checkpoint_interval
        self._init_fn = init_fn
        self._last_step = last_checkpoint_step

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoints(self) -> list[str]:
        """Paths of the kept checkpoints, the oldest first."""
        return _state_file.all_checkpoints(self._directory)

    @property
    def latest_checkpoint(self) -> str | None:
        """Path of the last checkpoint, or None."""
        return _state_file.latest_checkpoint(self._directory)

    @property
    def checkpoint_interval(self) -> int | None:
        """Smallest number of steps between two checkpoints."""
        return self._interval

    def save(
        self, checkpoint_number: int | None = None, check_interval: bool = True, options: Any = None
    ) -> str | None:
        """Save a checkpoint and delete old ones.

        Args:
            checkpoint_number: Number of the checkpoint. None: the next one.
            check_interval: If True, skip the save when too few steps have passed.
            options: `CheckpointOptions`.

        Returns:
            Path of the checkpoint, or None when skipped.

        Raises:
            OSError: The disk is full, the folder not writable, or the like; the older
                checkpoints are untouched.

        Example:
            >>> import samegrad as tf
            >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(1))
            >>> manager = tf.train.CheckpointManager(checkpoint, "managed", max_to_keep=2)
            >>> manager.save()
            'managed/ckpt-1'
        """
        step = int(self._step_counter) if self._step_counter is not None else None
        if check_interval and step is not None and not self._is_due(step):
            return None
        number = checkpoint_number
        if number is None:
            number = int(self._checkpoint.save_counter) + 1
        path = self._checkpoint._save_numbered(
            self._prefix, int(number), self._max_to_keep, self._every_n_hours, options
        )
        self._last_step = step
        return path

    def restore_or_initialize(self) -> str | None:
        """Restore the latest checkpoint, or call `init_fn` if the folder has no checkpoint.

        Returns:
            Path of the restored checkpoint, or None.

        Raises:
            ValueError: The checkpoint is damaged, or does not fit the objects.

        Example:
            >>> import samegrad as tf
            >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(1))
            >>> manager = tf.train.CheckpointManager(checkpoint, "resumed", max_to_keep=2)
            >>> manager.restore_or_initialize() is None
            True
        """
        path = self._restore_latest()
        if path is not None:
            if self._step_counter is not None:
                self._last_step = int(self._step_counter)
        elif self._init_fn is not None:
            self._init_fn()
        return path

    def _restore_latest(self) -> str | None:
        path = self.latest_checkpoint
        while path is not None:
            try:
                self._checkpoint.restore(path)
                return path
            except FileNotFoundError:
                newer = self.latest_checkpoint
                if newer == path:
                    raise
                path = newer  # another process has saved, and deleted this one meanwhile
        return None

    def _is_due(self, step: int) -> bool:
        if self._interval is None or self._last_step is None:
            return True
        return step - self._last_step >= self._interval
