"""`tf.train.CheckpointOptions`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from samegrad._base.shown import shown

__all__ = ["CheckpointOptions", "call_back"]


class CheckpointOptions:
    """Options of saving and restoring checkpoints.

    Args:
        experimental_io_device: Ignored: files are written where the program runs.
        experimental_enable_async_checkpoint: Ignored: `save` returns once the files are complete.
        experimental_write_callbacks: Functions that are called after the checkpoint was written,
            with its path if they take an argument.
        enable_async: Ignored.
        experimental_skip_slot_variables: Ignored: optimizers are restored as a whole.
        experimental_sharding_callback: None: a checkpoint is one folder.

    Raises:
        TypeError: A callback is not a function.
        ValueError: There is a sharding callback.

    Example:
        >>> import samegrad as tf
        >>> options = tf.train.CheckpointOptions(experimental_write_callbacks=[print])
        >>> tf.train.Checkpoint(step=tf.Variable(1)).save("optional/ckpt", options)
        optional/ckpt-1
        'optional/ckpt-1'
    """

    def __init__(
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Sequence[Callable[..., object]] | None = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        for callback in experimental_write_callbacks or ():
            if not callable(callback):
                raise TypeError(
                    f"[CheckpointOptions] callbacks must be functions: got {shown(callback)}."
                )
        if experimental_sharding_callback is not None:
            raise ValueError(
                "[CheckpointOptions] experimental_sharding_callback must be None, as a checkpoint "
                f"is one folder: got {shown(experimental_sharding_callback)}."
            )
        self.experimental_io_device = experimental_io_device
        self.enable_async = experimental_enable_async_checkpoint or enable_async
        self.experimental_write_callbacks = experimental_write_callbacks
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = None


def call_back(options: Any, path: str) -> None:
    """Call the functions that the options name after a checkpoint was written."""
    for callback in getattr(options, "experimental_write_callbacks", None) or ():
        takes_path = len(inspect.signature(callback).parameters) > 0
        callback(path) if takes_path else callback()
