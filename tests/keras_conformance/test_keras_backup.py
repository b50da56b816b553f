"""BackupAndRestore: a fit that was interrupted anywhere ends with the bits of one that was not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.train import CorruptCheckpointError, _state_file

keras = tf.keras
_PROGRAM = Path(__file__).with_name("backup_programs.py")


def _run(scenario: str, folder: Path, places: str, save_freq: str = "1") -> Any:
    done = subprocess.run(
        [sys.executable, _PROGRAM, scenario, folder, places, save_freq],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def _check(found: Any, killed: int) -> None:
    whole, resumed = found["whole"], found["resumed"]
    assert found["killed"] == killed
    assert resumed["bits"] == whole["bits"]
    epochs = len(resumed["epoch"])
    assert 0 < epochs < len(whole["epoch"])  # it went on, and did not begin anew
    assert resumed["epoch"] == whole["epoch"][-epochs:]
    for name, values in whole["history"].items():
        assert resumed["history"][name] == values[-epochs:], name


@pytest.mark.parametrize(
    "scenario",
    [
        "arrays", "batches_shuffled", "validated", "schedule", "seeded_dataset", "reshuffled",
        "repeated", "distributed", "py_dataset", "workers", "generator", "mapped",
    ],
)  # fmt: skip
def test_a_fit_killed_three_times_in_its_epochs_has_the_bits_of_one(
    scenario: str, tmp_path: Path
) -> None:
    _check(_run(scenario, tmp_path, "8,14,9"), 3)


def test_killed_between_executions_of_several_steps(tmp_path: Path) -> None:
    _check(_run("several_steps", tmp_path, "11,3"), 2)


@pytest.mark.parametrize("save_freq", ["epoch", "2"])
def test_killed_where_there_is_no_backup_of_the_last_step(save_freq: str, tmp_path: Path) -> None:
    _check(_run("reshuffled", tmp_path, "20,7,9,13", save_freq), 4)


def test_killed_while_backups_are_written_and_deleted(tmp_path: Path) -> None:
    """Each process gets a little further before it is killed, in the midst of a write."""
    places = ",".join(f"disk{n}" for n in range(40, 120, 9))
    found = _run("reshuffled", tmp_path, places)
    assert found["killed"] >= 4
    assert found["resumed"]["bits"] == found["whole"]["bits"]


# In one process.


class Interrupt(keras.callbacks.Callback):  # type: ignore[name-defined]
    def __init__(self, epoch: int, batch: int, error: type[BaseException] = RuntimeError) -> None:
        super().__init__()
        self.at, self.error, self.epoch = (epoch, batch), error, 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if (self.epoch, batch) == self.at:
            raise self.error


def _model(units: int = 3) -> Any:
    model = keras.Sequential(
        [keras.layers.Input((4,)), keras.layers.Dense(units), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    return model


def _rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(seed)
    return draws.normal(size=(10, 4)), draws.normal(size=(10, 1))


def _fit(model: Any, *calls: Any, data: Any = None, **options: Any) -> Any:
    x, y = _rows() if data is None else data
    options = {"batch_size": 4, "epochs": 3, "verbose": 0, **options}
    return model.fit(x, y, callbacks=list(calls), **options)


def _weights(model: Any) -> list[Any]:
    return [w.tolist() for w in [*model.get_weights(), *map(np.asarray, model.optimizer.variables)]]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(("epoch", "batch"), [(0, 0), (0, 2), (1, 1), (2, 2)])
def test_an_exception_and_the_same_model_again(
    epoch: int, batch: int, error: type[BaseException], tmp_path: Path
) -> None:
    keras.utils.set_random_seed(1)
    whole = _model()
    history = _fit(whole)
    keras.utils.set_random_seed(1)
    model = _model()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", save_freq=1)
    with pytest.raises(error):
        _fit(model, backup, Interrupt(epoch, batch, error))
    model.predict(_rows()[0], verbose=0)  # usable in between; it draws nothing
    resumed = _fit(model, backup)
    assert _weights(model) == _weights(whole)
    assert resumed.history["loss"] == history.history["loss"][-len(resumed.epoch) :]
    assert resumed.epoch == list(range(epoch, 3))
    assert _fit(model, backup).epoch == [0, 1, 2]  # nothing is left of what was resumed


def test_a_fit_interrupted_before_its_first_backup_goes_on_with_its_first_weights(
    tmp_path: Path,
) -> None:
    keras.utils.set_random_seed(1)
    whole = _model()
    _fit(whole)
    keras.utils.set_random_seed(1)
    with pytest.raises(RuntimeError):
        _fit(_model(), keras.callbacks.BackupAndRestore(tmp_path / "backup"), Interrupt(0, 1))
    keras.utils.set_random_seed(2)  # a program that sets no seed
    model = _model()
    _fit(model, keras.callbacks.BackupAndRestore(tmp_path / "backup"))
    assert _weights(model) == _weights(whole)


def test_a_later_callback_of_the_epoch_is_in_the_backup(tmp_path: Path) -> None:
    """One that follows in the list has changed the rate before the state is stored."""
    model = _model()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)

    def halve(epoch: int, logs: Any) -> None:
        model.optimizer.learning_rate = float(model.optimizer.learning_rate) / 2

    _fit(model, backup, keras.callbacks.LambdaCallback(on_epoch_end=halve), epochs=1)
    rate = float(model.optimizer.learning_rate)
    model.optimizer.learning_rate = 9.0
    _fit(model, backup, epochs=1)  # all of it is done: only taken back
    assert float(model.optimizer.learning_rate) == rate == pytest.approx(0.0005)


def test_it_is_kept_where_it_is_not_to_be_deleted(tmp_path: Path) -> None:
    model = _model()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)
    assert _fit(model, backup, epochs=2).epoch == [0, 1]
    assert _fit(model, backup, epochs=5).epoch == [2, 3, 4]
    assert _fit(model, backup, epochs=5).epoch == []
    deleting = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    _fit(model, deleting, epochs=5)
    assert not (tmp_path / "backup").exists()


def _interrupted(folder: Path, **options: Any) -> None:
    backup = keras.callbacks.BackupAndRestore(folder, save_freq=1, **options)
    with pytest.raises(RuntimeError):
        _fit(_model(), backup, Interrupt(1, 2))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model": lambda: _model(5)}, r"model\[0\]: kernel \(4, 3\) float32 in the backup, kern"),
        ({"optimizer": "sgd"}, "optimizer: Adam in the backup, SGD now"),
        ({"data": _rows(1)}, r"data: arrays\[0\]: \(10, 4\) float64"),
        ({"batch_size": 5}, "data: batch_size: 4 in the backup, 5 now"),
        ({"shuffle": False}, "data: shuffle: True in the backup, False now"),
        ({"steps_per_epoch": 2}, "data: steps_per_epoch: None in the backup, 2 now"),
    ],
)
def test_a_backup_of_something_else_is_refused_and_says_what(
    change: dict[str, Any], named: str, tmp_path: Path
) -> None:
    _interrupted(tmp_path / "backup")
    model = change.pop("model", _model)()
    if "optimizer" in change:
        model.compile(change.pop("optimizer"), "mse")
    before = [w.tolist() for w in model.get_weights()]
    with pytest.raises(ValueError, match=named) as caught:
        _fit(model, keras.callbacks.BackupAndRestore(tmp_path / "backup"), **change)
    assert "[BackupAndRestore]" in str(caught.value)
    assert "delete" in str(caught.value)
    assert [w.tolist() for w in model.get_weights()] == before
    assert _state_file.latest_checkpoint(tmp_path / "backup") is not None


def test_a_backup_of_the_beginning_is_no_hindrance_for_another_model(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        _fit(_model(), keras.callbacks.BackupAndRestore(tmp_path / "backup"), Interrupt(0, 1))
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    assert _fit(_model(5), backup).epoch == [0, 1, 2]


def test_a_beginning_in_a_later_epoch_is_taken_back(tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    whole = _model()
    _fit(whole, initial_epoch=1)
    keras.utils.set_random_seed(1)
    model = _model()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    with pytest.raises(RuntimeError):
        _fit(model, backup, Interrupt(1, 1), initial_epoch=1)
    assert _fit(model, backup, initial_epoch=1).epoch == [1, 2]
    assert _weights(model) == _weights(whole)


def test_a_damaged_backup_is_refused_and_the_one_before_is_taken(tmp_path: Path) -> None:
    for double in (False, True):
        folder = tmp_path / str(double)
        _interrupted(folder, double_checkpoint=double)
        backup = keras.callbacks.BackupAndRestore(folder, double_checkpoint=double)
        Path(backup._weights_path).write_bytes(b"0")
        if double:
            assert _fit(_model(), backup).epoch == [1, 2]
        else:
            with pytest.raises(CorruptCheckpointError, match=r"\[BackupAndRestore\].*Delete"):
                _fit(_model(), backup)


def test_what_is_no_backup_is_ignored_or_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert _fit(_model(), keras.callbacks.BackupAndRestore(tmp_path / "empty")).epoch == [0, 1, 2]
    tf.train.Checkpoint(step=3).save(tmp_path / "other" / "ckpt")
    with pytest.raises(ValueError, match="a checkpoint of something else"):
        _fit(_model(), keras.callbacks.BackupAndRestore(tmp_path / "other"))


@pytest.mark.parametrize("distributed", [False, True])
def test_other_replicas_go_on_with_the_same_bits(distributed: bool, tmp_path: Path) -> None:
    draws = np.random.default_rng(0)
    data = draws.normal(size=(32, 4)), draws.normal(size=(32, 1))
    found = []
    for second in (1, 4):
        for replicas in (2, second):
            keras.utils.set_random_seed(1)
            strategy = tf.distribute.MirroredStrategy(replicas=replicas)
            with strategy.scope():
                model = _model()
            dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(32).batch(16)
            folder = tmp_path / str(second)
            backup = keras.callbacks.BackupAndRestore(folder, save_freq=1)
            interrupt = Interrupt(1, 0) if not folder.exists() else Interrupt(9, 9)
            try:
                if distributed:
                    shared = strategy.experimental_distribute_dataset(dataset)
                    model.fit(shared, callbacks=[backup, interrupt], epochs=3, verbose=0)
                else:
                    _fit(model, backup, interrupt, data=data, batch_size=16)
            except RuntimeError:
                continue
            found.append(_weights(model))
    assert len(found) == 2
    assert found[0] == found[1]


def test_generators_that_end_early_are_refused(tmp_path: Path) -> None:
    def batches(count: int) -> Any:
        for _ in range(count):
            yield tuple(part[:2] for part in _rows())

    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup", save_freq=1)
    options = {"verbose": 0, "epochs": 2, "steps_per_epoch": 6}
    with pytest.raises(RuntimeError):
        _model().fit(batches(12), callbacks=[backup, Interrupt(1, 4)], **options)
    with pytest.raises(ValueError, match=r"has taken 10 batches of them: got 4"):
        _model().fit(batches(4), callbacks=[backup], **options)


def test_a_loop_of_the_programs_own_stores_and_takes_back(tmp_path: Path) -> None:
    model = _model()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    calls = keras.callbacks.CallbackList([backup], model=model)
    calls.on_train_begin()
    calls.on_epoch_begin(0)
    model.train_on_batch(*_rows())
    calls.on_epoch_end(0)
    stored = _weights(model)
    model.train_on_batch(*_rows())
    assert _weights(model) != stored
    calls.on_train_begin()
    assert _weights(model) == stored
    assert backup._current_epoch == 1
