"""Checks of earlier runs in the folder of checkpoints, and their resumption."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

import samegrad as tf
from samegrad._base.launchers import launched
from samegrad.cli._errors import CommandError
from samegrad.cli._records import check_unused

PREFIX = "ckpt"


def check_new(who: str, folder: Path, log: Path | None, others: Iterable[str] = ()) -> None:
    """Check that a new run replaces no checkpoints and no log.

    Args:
        who: The command, for errors.
        folder: The folder of its checkpoints.
        log: The path of its log, or None.
        others: The names of other checkpoints that it may write.

    Raises:
        CommandError: It would replace a checkpoint or a log.
    """
    found = [path.name for path in folder.glob(f"{PREFIX}-*")] if folder.is_dir() else []
    found += [name for name in others if (folder / name).exists()]
    if found or tf.train.latest_checkpoint(folder) is not None:
        raise CommandError(
            f"[{who}] --checkpoint-dir of a new run must have no checkpoints: got {folder} with "
            f"{', '.join(sorted(found)[:3])}. Continue that run with --resume, delete it with "
            "--overwrite, or give another --checkpoint-dir."
        )
    if log is not None:
        check_unused(who, log)


def restore_last(who: str, checkpoint: tf.train.Checkpoint, folder: Path) -> str:
    """Restore the last checkpoint of a folder.

    Args:
        who: The command, for errors.
        checkpoint: The checkpoint to restore into.
        folder: The folder of the earlier run.

    Returns:
        The path of the checkpoint.

    Raises:
        CommandError: The folder has no checkpoint, or one of another program.
        CorruptCheckpointError: The checkpoint is damaged.
    """
    path = tf.train.latest_checkpoint(folder)
    if path is None:
        raise CommandError(
            f"[{who}] --resume needs a checkpoint: got the folder {folder} "
            "without one that is listed. Run without --resume, or give --checkpoint-dir."
        )
    try:
        checkpoint.restore(path)
    except tf.train.CorruptCheckpointError:
        raise
    except (ValueError, MemoryError) as error:  # of another program, or too large
        raise CommandError(str(error)) from error
    return path


def check_settings(who: str, path: str, wanted: str, stored: str) -> None:
    """Check that a resumed run has the settings of its checkpoint.

    Args:
        who: The command, for errors.
        path: The path of the checkpoint.
        wanted: The settings of the run, as a JSON object.
        stored: Those of the checkpoint.

    Raises:
        CommandError: They differ.
    """
    if stored == wanted:
        return
    own, saved = json.loads(wanted), json.loads(stored)
    names = [name for name in {**saved, **own} if own.get(name) != saved.get(name)]
    raise CommandError(
        f"[{who}] --resume needs the settings of the checkpoint {path}: got "
        + ", ".join(f"{name} {own.get(name)} instead of {saved.get(name)}" for name in names)
        + ". Give the settings of the checkpoint, or another --checkpoint-dir."
    )


def resume_command(arguments: Iterable[str]) -> str:
    """Return the command that resumes a run, with the launcher of an MPI job.

    It has the given arguments with --resume and without --steps.

    Example:
        >>> resume_command(["fashion-mnist", "--steps", "3", "--seed", "1"])
        'samegrad fashion-mnist --seed 1 --resume'
    """
    kept: list[str] = []
    after_steps = False
    for word in arguments:
        if not (
            after_steps or word in ("--resume", "--overwrite") or word.split("=")[0] == "--steps"
        ):
            kept.append(word)
        after_steps = word == "--steps"
    launch = launched()
    launcher = "srun" if launch.launcher == "srun" else "mpiexec"
    start = [launcher, "-n", str(launch.size)] if launch.size > 1 else []
    return shlex.join([*start, "samegrad", *kept, "--resume"])
