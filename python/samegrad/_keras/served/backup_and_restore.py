"""keras.src.callbacks.backup_and_restore: backups that a fit goes on from to the bit."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from keras.src.api_export import keras_export
from keras.src.callbacks.callback import Callback

from samegrad._context import state as _context
from samegrad._keras.random_states import StateTable
from samegrad._keras.resuming import Backups, differences
from samegrad.distribute._job import on_first_rank
from samegrad.train import (
    Checkpoint,
    CheckpointManager,
    CorruptCheckpointError,
    _state_file,
    _storage,
)

_NAME = "backup"


@keras_export("keras.callbacks.BackupAndRestore")
class BackupAndRestore(Callback):  # type: ignore[misc]
    """Stores the state of a `fit`, so that one that was interrupted goes on.

    A `fit` that was killed at any moment, or left by an exception, and is started again by the same
    program ends with the bits of weights, optimizer and, for the epochs that are left, History of
    one that was not interrupted, in the middle of an epoch too: stored are the weights, the
    optimizer, seeds and metrics, the epoch and its next step, the place in the data, the random
    states of NumPy, Python and samegrad, and what Keras's own callbacks count. A state is stored
    when all callbacks of a batch or an epoch have run. It is a `tf.train.Checkpoint`, which is in
    place as a whole or not at all; the beginning of a `fit` is stored as well.

    What the data have to be: * Arrays, with any `shuffle`: nothing further. What is behind is not
    copied again. * `tf.data` datasets, distributed or not: what `tf.train.Checkpoint` promises of
    their iterators. They are positioned, not read again, where their source can be. * A
    `PyDataset`: made as at first, by a program that is started again. The calls of its
    `on_epoch_begin` and `on_epoch_end` are repeated with the same random states; the batches of the
    present epoch that were taken are asked for again. What else changes it, such as a generator of
    its own that `__getitem__` draws from in earlier epochs, does not come back; with several
    workers, nor does what they draw. * A Python generator: made as at first. What was taken is
    taken again and thrown away, so it has to give the same again; the random states are those that
    the present pass through it began with.

    With another number of replicas it goes on as well. Callbacks of the program's own keep what
    they count for themselves.

    Args:
        backup_dir: A folder of this callback alone.
        save_freq: "epoch", or after how many batches a state is stored.
        double_checkpoint: Whether the last state but one is kept, which is taken where the last
            one is damaged.
        delete_checkpoint: Whether the folder is deleted at the end of `fit`.

    Raises:
        ValueError: `backup_dir` is empty, `save_freq` neither "epoch" nor an integer; at the
            beginning of `fit`: the backup is of another model, optimizer or other data, which are
            named, or damaged (`CorruptCheckpointError`).

    Example:
        >>> import numpy as np, samegrad as tf, tempfile
        >>> model = tf.keras.Sequential([tf.keras.layers.Input((2,)), tf.keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> class Interrupt(tf.keras.callbacks.Callback):
        ...     def on_train_batch_end(self, batch, logs=None):
        ...         if batch == 1:
        ...             raise KeyboardInterrupt
        >>> x, y = np.ones((8, 2), "float32"), np.ones((8, 1), "float32")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     backup = tf.keras.callbacks.BackupAndRestore(folder + "/backup", save_freq=1)
        ...     try:
        ...         model.fit(x, y, 2, epochs=2, verbose=0, callbacks=[backup, Interrupt()])
        ...     except KeyboardInterrupt:
        ...         history = model.fit(x, y, 2, epochs=2, verbose=0, callbacks=[backup])
        >>> history.epoch, int(model.optimizer.iterations)
        ([0, 1], 8)
    """

    _samegrad_backup = True

    def __init__(
        self,
        backup_dir: Any,
        save_freq: Any = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
    ) -> None:
        super().__init__()
        self.save_freq = save_freq
        self.double_checkpoint = double_checkpoint
        self.delete_checkpoint = delete_checkpoint
        self._batches_seen_since_last_saving = 0
        self._last_batch_seen = 0
        self._current_epoch = 0
        if not backup_dir:
            raise ValueError("Empty `backup_dir` argument passed")
        self.backup_dir = os.fspath(backup_dir)
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(
                "Invalid value for argument `save_freq`. "
                f"Received: save_freq={save_freq}. "
                "Expected either 'epoch' or an integer value."
            )
        self._samegrad_fit: Backups | None = None
        self._found: _Stored | None = None
        self._due = False

    # The files of the last two states, by the names that Keras's callback has for its own.

    @property
    def _weights_path(self) -> str:
        return self._file_of(-1, "arrays-*")

    @property
    def _training_metadata_path(self) -> str:
        return self._file_of(-1, "manifest.json")

    @property
    def _prev_weights_path(self) -> str:
        return self._file_of(-2, "arrays-*")

    @property
    def _prev_training_metadata_path(self) -> str:
        return self._file_of(-2, "manifest.json")

    def _file_of(self, number: int, pattern: str) -> str:
        kept = _state_file.all_checkpoints(self.backup_dir)
        files = list(Path(kept[number]).glob(pattern)) if len(kept) >= -number else []
        return str(files[0]) if files else os.path.join(self.backup_dir, "absent")

    def on_train_begin(self, logs: Any = None) -> None:
        """Take back the state that an interrupted `fit` has stored."""
        if not self.model.built:
            raise ValueError(
                "To use the BackupAndRestore callback, "
                "you model must be built before you call `fit()`. "
                f"Model {self.model} is unbuilt. You can build it "
                "beforehand by calling it on a batch of data."
            )
        self._found = None
        self._batches_seen_since_last_saving = self._last_batch_seen = 0
        kept = _state_file.all_checkpoints(self.backup_dir)
        for number, path in enumerate(reversed(kept)):
            try:
                self._found = self._read(path)
                break
            except (CorruptCheckpointError, FileNotFoundError) as error:
                if number + 1 < len(kept):
                    continue
                raise CorruptCheckpointError(
                    f"[BackupAndRestore] a backup must be whole: got {error!s:.300} Delete "
                    f"{self.backup_dir} to begin anew."
                ) from error
        if self._found is not None:
            self._current_epoch = self._found.place["epoch"]
            if self._samegrad_fit is None:  # a loop of the program's own
                self.model._initial_epoch = self._current_epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note which epoch it is."""
        self._current_epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Ask for a backup where it is time for one."""
        if self._should_save_on_batch(batch):
            self._ask(batch + 1, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Ask for a backup, if they are made by epochs."""
        self._current_epoch = epoch + 1
        self._last_batch_seen = 0
        if self.save_freq == "epoch":
            self._ask(0, logs)

    def on_train_end(self, logs: Any = None) -> None:
        """Delete the backups."""
        if self.delete_checkpoint:
            on_first_rank("the end of the backups", self._delete)

    def _delete(self) -> None:
        if os.path.exists(self.backup_dir):
            _state_file.forget_all(self.backup_dir)  # no half of a backup is found, if killed here
            shutil.rmtree(self.backup_dir)

    def _should_save_on_batch(self, batch: int) -> bool:
        """Tell if a batch is due, as Keras does."""
        if self.save_freq == "epoch" or not self.save_freq:
            return False
        seen = batch - self._last_batch_seen if batch > self._last_batch_seen else batch + 1
        self._batches_seen_since_last_saving += seen
        self._last_batch_seen = batch
        if self._batches_seen_since_last_saving >= self.save_freq:
            self._batches_seen_since_last_saving = 0
            return True
        return False

    def _ask(self, step: int, logs: Any) -> None:
        if self._samegrad_fit is None:
            self._store(0)
        else:
            self._due = True

    def _objects(self) -> dict[str, Any]:
        metrics = [list(metric.variables) for metric in self.model.metrics]
        return {"model": self.model, "metrics": metrics}

    def _store(self, step: int, first: bool = False) -> None:
        """Write the present state.

        Args:
            step: The next one of the present epoch; 0: the epoch begins.
            first: Whether nothing was trained yet.
        """
        table, kept = StateTable(), list[Any]()
        if self._samegrad_fit is None:
            place, of = {"epoch": self._current_epoch}, {}
        else:
            place = self._samegrad_fit.place(self._current_epoch, step, table, kept)
            of = self._samegrad_fit.description
        text = json.dumps({"place": place, "of": of, "counts": self._counts(), "first": first})
        checkpoint = Checkpoint(
            **self._objects(), fit=text, states=table.array(), kept=_Arrays(kept)
        )
        latest = _state_file.latest_checkpoint(self.backup_dir)
        number = 1 if latest is None else int(latest.rpartition("-")[2]) + 1
        keep = 2 if self.double_checkpoint else 1
        CheckpointManager(checkpoint, self.backup_dir, keep, checkpoint_name=_NAME).save(number)

    def _counts(self) -> list[int]:
        return [self._batches_seen_since_last_saving, self._last_batch_seen]

    def _read(self, path: str) -> _Stored | None:
        """Take a state back.

        Raises:
            CorruptCheckpointError: It is damaged.
            ValueError: It is of something else. Nothing has changed then.
        """
        arrays, manifest = _storage.load(path)
        try:
            fit = json.loads(manifest["values"]["fit"])  # type: ignore[index, call-overload, arg-type]
            place, of, counts, first = (fit[key] for key in ("place", "of", "counts", "first"))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"[BackupAndRestore] backup_dir must hold backups of a fit alone: got {path}, a "
                "checkpoint of something else; choose another folder."
            ) from error
        others = (
            []
            if self._samegrad_fit is None
            else differences(of, json.loads(json.dumps(self._samegrad_fit.description)))
        )
        if others and first:
            return None  # nothing is lost
        if others:
            raise ValueError(
                "[BackupAndRestore] the backup must be of this model, optimizer and data: got "
                f"{'; '.join(others[:4])}; run what was interrupted, or delete {self.backup_dir}."
            )
        stored = _Stored(self, path, place, arrays)
        stored.restore()
        self._batches_seen_since_last_saving, self._last_batch_seen = counts
        return stored


class _Stored:
    """A state that was found."""

    def __init__(self, backup: Any, path: str, place: Any, arrays: dict[str, Any]) -> None:
        self.place, self._path, self._backup = place, path, backup
        self.name = os.path.basename(path)
        self.states = arrays["states"]
        count = sum(name.startswith("kept/") for name in arrays)
        self.kept = [arrays[f"kept/{number}"] for number in range(count)]

    def restore(self) -> None:
        """Give the variables their values."""
        model = self._backup.model
        if model.optimizer is not None and not model.optimizer.built:
            with _context.init_scope():
                model.optimizer.build(model.trainable_variables)
        Checkpoint(**self._backup._objects()).restore(self._path).expect_partial()


class _Arrays:
    """Arrays in a checkpoint, by their places."""

    def __init__(self, arrays: list[np.ndarray[Any, Any]]) -> None:
        self._arrays = arrays

    def _checkpoint_state(self) -> dict[str, Any]:
        return {str(number): array for number, array in enumerate(self._arrays)}

    def _restore_state(self, values: Any) -> None:
        raise AssertionError("the arrays of a backup are read as such")
