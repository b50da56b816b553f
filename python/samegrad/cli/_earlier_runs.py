"""Runs that are there already: their checkpoints are kept, resumed, or deleted when asked."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import samegrad as tf
from samegrad.cli._errors import CommandError
from samegrad.cli._records import check_unused

PREFIX = "ckpt"


def check_new(who: str, folder: Path, log: Path | None, others: Iterable[str] = ()) -> None:
    """Finds out before a new run whether it would replace checkpoints or a log.

    Args:
        who: The command, for errors.
        folder: Where its checkpoints go.
        log: Its log, if it has one.
        others: Names of other checkpoints that it may write.

    Raises:
        CommandError: It would.
    """
    found = [path.name for path in folder.glob(f"{PREFIX}-*")] if folder.is_dir() else []
    found += [name for name in others if (folder / name).exists()]
    if found or tf.train.latest_checkpoint(folder) is not None:
        raise CommandError(
            f"[{who}] a new run must have a folder without checkpoints: got {folder} with "
            f"{', '.join(sorted(found)[:3])}. Go on with that run with --resume, delete it with "
            "--overwrite, or give another --checkpoint-dir."
        )
    if log is not None:
        check_unused(who, log)


def restore_last(who: str, checkpoint: tf.train.Checkpoint, folder: Path) -> str:
    """Restores the last checkpoint of a folder; returns its path.

    Args:
        who: The command, for errors.
        checkpoint: What is restored.
        folder: Of the earlier run.

    Raises:
        CommandError: There is none, or it is another program's.
        CorruptCheckpointError: It is damaged.
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
    """Whether a resumed run has the settings of its checkpoint.

    Raises:
        CommandError: It has others.
    """
    if stored != wanted:
        raise CommandError(
            f"[{who}] a resumed run must have the settings of its checkpoint {path}: got "
            f"{wanted}, stored are {stored}. Give the stored ones, or another "
            "--checkpoint-dir."
        )


def resume_command(arguments: Iterable[str]) -> str:
    """What was typed, without the option that ends a run early, and with --resume.

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
    return shlex.join(["samegrad", *kept, "--resume"])
