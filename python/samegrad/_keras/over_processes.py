"""A fit by the processes of a job: rank 0 writes and speaks, all decide alike.

Metrics are equal on all ranks, so that callbacks which decide by them (EarlyStopping,
ReduceLROnPlateau) decide alike wherever they run. Keras's callbacks that write files or lines run
on rank 0; on the others stand-ins of their names take their places, so that a backup finds as many.
A class that a program derives from them runs on all ranks, for it may do what all must do together;
those of ModelCheckpoint and CSVLogger write nothing there, others see to it by themselves.
"""

from __future__ import annotations

import os
from typing import Any

from keras.src import callbacks as callbacks_module
from keras.src import tree

from samegrad.distribute import _job

_WRITERS: tuple[type[Any], ...] = (
    callbacks_module.CSVLogger, callbacks_module.ProgbarLogger, callbacks_module.RemoteMonitor,
    callbacks_module.TensorBoard,
    *(getattr(callbacks_module, name) for name in ("OrbaxCheckpoint",)
      if hasattr(callbacks_module, name)),
)  # fmt: skip


def is_silent(strategy: Any) -> bool:
    """Tell if another process writes and prints for the strategy."""
    job = _job.current()
    return bool(strategy.processes) and job is not None and job.rank > 0


def silent(given: Any) -> list[Any]:
    """Callbacks for a process that writes and says nothing.

    Args:
        given: A callback, a structure of them, or None.
    """
    return [_silent(callback) for callback in tree.flatten(given) if callback is not None]


def _silent(callback: Any) -> Any:
    if type(callback) in _WRITERS:
        return type(type(callback).__name__, (callbacks_module.Callback,), {})()
    own = (callbacks_module.CSVLogger, callbacks_module.ModelCheckpoint)
    keras_own = type(callback).__module__.startswith("keras.src.")
    if (keras_own or isinstance(callback, own)) and hasattr(callback, "verbose"):
        callback.verbose = 0
    if isinstance(callback, callbacks_module.CSVLogger):
        callback.filename = os.devnull
    if isinstance(callback, callbacks_module.ModelCheckpoint):
        _only_monitor(callback)
    return callback


def _only_monitor(callback: Any) -> None:
    """Lets a ModelCheckpoint note the best value, and save nothing."""
    decide = type(callback)._should_save_model

    def should_save(*args: Any, **options: Any) -> bool:
        decide(callback, *args, **options)
        return False

    callback._should_save_model = should_save


def any_stops(strategy: Any, stops: bool) -> bool:
    """Tell if training stops on one process at least: then it does on all.

    All come here at the end of an epoch, when what rank 0 writes has been written.
    """
    if not strategy.processes:
        return stops
    return any(_job.gathered("the end of an epoch of fit", bool(stops)))


def check_all_stop(strategy: Any) -> None:
    """Check that all processes stop after this batch; only stopping processes call it.

    To ask all of them after each batch would cost a message each.

    Raises:
        ValueError: Others go on with the next batch. They raise it, too, and name this call.
    """
    if not strategy.processes:
        return
    try:
        _job.called("stop_training within an epoch of fit")
    except ValueError as error:
        raise ValueError(
            "[fit] within an epoch stop_training must be set after the same batch on all "
            f"processes: got it on rank {_rank()}, while others went on; set it in on_epoch_end, "
            "where one that stops stops all, or by what all know, as logs are."
        ) from error


def _rank() -> int:
    job = _job.current()
    return job.rank if job else 0


def check_backups(strategy: Any, calls: Any) -> None:
    """Check that all processes have found the same backup, if they look for one.

    Raises:
        ValueError: They have not, on all of them.
    """
    backups = [each for each in calls.callbacks if hasattr(each, "_samegrad_backup")]
    if not strategy.processes or not backups:
        return
    own = [each._found and each._found.name for each in backups]
    found = _job.gathered("the backups of a fit", own)
    if any(other != found[0] for other in found):
        told = ", ".join(
            f"{' and '.join(name or 'none' for name in names)} on rank {rank}"
            for rank, names in enumerate(found)
        )
        raise ValueError(
            f"[BackupAndRestore] all processes must find the same backup: got {told}; let "
            "backup_dir be a folder that all of them see, or delete it on all to begin anew."
        )


__all__ = ["any_stops", "check_all_stop", "check_backups", "is_silent", "silent"]
