"""How managers and options of checkpoints answer."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from manner_programs import manner, refused


def saved(tf: Any, folder: str) -> list[str]:
    """The numbers of the checkpoints in a folder."""
    found = {name.split(".")[0] for name in os.listdir(folder) if name.startswith("ckpt-")}
    return sorted(found)


@manner
def managers_preserve_checkpoints_by_the_hour(tf: Any) -> Any:
    found = []
    for hours in (None, 1e-9, 1.0):
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
            manager = tf.train.CheckpointManager(checkpoint, folder, 2, hours)
            names = [os.path.basename(manager.save()) for _ in range(4)]
            listed = [os.path.basename(path) for path in manager.checkpoints]
            found.append([names, listed, saved(tf, folder)])
    return found


@manner
def managers_go_on_preserving(tf: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
            manager = tf.train.CheckpointManager(
                checkpoint, folder, max_to_keep=1, keep_checkpoint_every_n_hours=5.0
            )
            manager.restore_or_initialize()
            manager.save()
        return saved(tf, folder)


@manner
def options_of_checkpoints_call_back(tf: Any) -> Any:
    called: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        options = tf.train.CheckpointOptions(
            experimental_write_callbacks=[
                lambda path: called.append(os.path.basename(path)), lambda: called.append("done"),
            ],
            enable_async=False,
        )  # fmt: skip
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        path = checkpoint.save(os.path.join(folder, "a"), options=options)
        manager = tf.train.CheckpointManager(checkpoint, os.path.join(folder, "b"), 1)
        manager.save(options=options)
        checkpoint.restore(path, options=tf.train.CheckpointOptions())
    return [
        called,
        options.enable_async,
        options.experimental_io_device,
        options.experimental_skip_slot_variables,
        refused(lambda: tf.train.CheckpointOptions(experimental_write_callbacks=[1]), TypeError),
    ]


@manner
def folders_say_which_checkpoints_they_hold(tf: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        none = tf.train.get_checkpoint_state(folder)
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        manager = tf.train.CheckpointManager(checkpoint, folder, 2)
        for _ in range(3):
            manager.save()
        state = tf.train.get_checkpoint_state(folder)
        name = os.path.basename
        return [
            none is None,
            name(state.model_checkpoint_path),
            [name(path) for path in state.all_model_checkpoint_paths],
        ]
