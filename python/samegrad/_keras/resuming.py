"""State that a fit stores and restores, so that it resumes as if it had not been interrupted.

The trainer calls a `Backups` between its callbacks: a state is stored when all callbacks of a batch
or an epoch have run, and taken back after those of the beginning.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from samegrad._keras import random_states
from samegrad._keras.data_pass import described
from samegrad._keras.random_states import StateTable

Json = dict[str, Any]
_BAR = "ProgbarLogger"
# What of Keras's callbacks changes while a fit runs.
_FIELDS = (
    "wait", "stopped_epoch", "best", "best_epoch", "best_weights", "cooldown_counter",
    "_batches_seen_since_last_saving", "_last_batch_seen", "_current_epoch",
    "_ema_weights_in_model", "_global_train_batch", "_global_test_batch",
    "_previous_epoch_iterations", "_train_accumulated_time",
)  # fmt: skip


class Backups:
    """The BackupAndRestore callbacks of a fit.

    Args:
        model: Which is trained.
        calls: The CallbackList.
        batches: The EpochIterator of the training.
        validation: That of the validation, or None.
    """

    def __init__(self, model: Any, calls: Any, batches: Any, validation: Any) -> None:
        self._model, self._calls = model, calls
        self._data = {"data": batches}
        if validation is not None:
            self._data["validation"] = validation
        self._backups = [c for c in calls.callbacks if hasattr(c, "_samegrad_backup")]
        self.step_logs: Any = {}
        for part in self._data.values() if self._backups else ():
            part.record()
        for backup in self._backups:
            backup._samegrad_fit = self

    def begin(self, first_epoch: int) -> int:
        """Take back what the callbacks found; store the beginning where they found nothing.

        Args:
            first_epoch: Of this fit, if it is not resumed.

        Returns:
            The epoch that is next.
        """
        found = [backup for backup in self._backups if backup._found is not None]
        if not found:
            for backup in self._backups:
                backup._current_epoch = first_epoch
                backup._store(0, first=True)
            return first_epoch
        stored = found[-1]._found
        for name, part in self._data.items():
            if name in stored.place:
                part.go_to(stored.place[name], stored.states)
        self._set_rest(stored)
        return int(stored.place["epoch"])

    def begin_epoch(self) -> Any:
        """Take back the middle of an epoch, after the callbacks of its beginning.

        Returns:
            The logs of its last step.
        """
        for backup in reversed(self._backups):
            stored, backup._found = backup._found, None
            if stored is not None and stored.place["data"]["step"]:
                stored.restore()  # what callbacks did at the beginning of the epoch, they did then
                self._set_rest(stored)
                return _values_of(stored.place["logs"], stored.kept)
        return {}

    def save_due(self, step: int, logs: Any) -> None:
        """Store the backups that callbacks have requested.

        A fit that is about to stop is not stored: the last steps are repeated, and stop it again.

        Args:
            step: The next step of this epoch; 0 between two epochs.
            logs: Of the last step.
        """
        for backup in self._backups:
            if backup._due and not self._model.stop_training:
                self.step_logs = logs
                backup._store(step)
            backup._due = False

    def end(self) -> None:
        """The fit is over, or was interrupted."""
        for backup in self._backups:
            backup._samegrad_fit = backup._found = None
            backup._due = False

    @functools.cached_property
    def description(self) -> Json:
        """Describe model, optimizer and data, to identify them in messages."""
        model = self._model
        found: Json = {
            "model": [f"{v.name} {tuple(v.shape)} {v.dtype}" for v in model.weights],
            "optimizer": _kind(model.optimizer),
            "metrics": [f"{v.name} {tuple(v.shape)}" for m in model.metrics for v in m.variables],
        }
        for name, part in self._data.items():
            found[name] = described(part.data_adapter) | {
                "steps_per_epoch": part.steps_per_epoch,
                "steps_per_execution": part.steps_per_execution,
            }
        return found

    def place(self, epoch: int, step: int, table: StateTable, kept: list[Any]) -> Json:
        """Everything but the variables.

        Args:
            epoch: Which is next, or goes on.
            step: Its next one.
            table: Gets the random states.
            kept: Gets the arrays.
        """
        found: Json = {
            "epoch": epoch,
            "now": table.place_of(random_states.words()),
            "engine": random_states.engine_state(),
            "logs": _plain(self.step_logs, kept) if step else {},
            "callbacks": [_state_of(callback, kept) for callback in self._calls.callbacks],
        }
        for name, part in self._data.items():
            found[name] = part.place(step if name == "data" else 0, table)
        return found

    def _set_rest(self, stored: Any) -> None:
        # A progress bar says what is there; whether it is shown (on which rank) does not matter.
        place = stored.place
        own = [c for c in self._calls.callbacks if type(c).__name__ != _BAR]
        states = [state for state in place["callbacks"] if state["kind"] != _BAR]
        if [state["kind"] for state in states] == [type(c).__name__ for c in own]:
            for callback, state in zip(own, states, strict=True):
                if not hasattr(callback, "_samegrad_backup"):
                    vars(callback).update(_values_of(state["values"], stored.kept))
        random_states.set_words(stored.states[place["now"]])
        random_states.set_engine_state(place["engine"])


def differences(stored: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """Describe the differences of two descriptions.

    Example:
        >>> differences({"optimizer": "SGD"}, {"optimizer": "Adam"})
        ['optimizer: SGD in the backup, Adam now']
    """
    found = []
    for name in [*stored, *(name for name in present if name not in stored)]:
        old, new = stored.get(name), present.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += [f"{name}: {text}" for text in differences(old, new)]
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            pairs = [(i, *pair) for i, pair in enumerate(zip(old, new, strict=True))]
            number, was, now = next(pair for pair in pairs if pair[1] != pair[2])
            found.append(f"{name}[{number}]: {was} in the backup, {now} now")
        elif isinstance(old, list) and isinstance(new, list):
            found.append(f"{name}: {len(old)} variables in the backup, {len(new)} now")
        else:
            found.append(f"{name}: {old} in the backup, {new} now")
    return found


def _kind(optimizer: Any) -> str:
    if optimizer is None:
        return "None"
    inner = getattr(optimizer, "inner_optimizer", None)
    name = type(optimizer).__name__
    return name if inner is None else f"{name} of {_kind(inner)}"


def _state_of(callback: Any, kept: list[Any]) -> Json:
    """The numbers of a callback, as JSON knows them."""
    values = {}
    if type(callback).__module__.startswith(("keras.src.", "samegrad.")):
        fields = {name: getattr(callback, name) for name in _FIELDS if hasattr(callback, name)}
        values = _plain(fields, kept)
    return {"kind": type(callback).__name__, "values": values}


def _plain(value: Any, kept: list[Any]) -> Any:
    """Numbers and structures of them, as JSON knows them; arrays are kept, and named by place."""
    if isinstance(value, Mapping):
        return {name: _plain(part, kept) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part, kept) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    array = np.asarray(value)
    if not array.ndim:
        return array.item()
    kept.append(array.copy())
    return {"array": len(kept) - 1}


def _values_of(value: Any, kept: list[Any]) -> Any:
    if isinstance(value, list):
        return [_values_of(part, kept) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return kept[value["array"]]
    return {name: _values_of(part, kept) for name, part in value.items()}
