"""Fits that are killed and started again, as processes of their own.

`python backup_programs.py SCENARIO FOLDER PLACES SAVE_FREQ`: the scenario runs without an
interruption and without backups, then again and again in forked processes, each of which is killed
at the next of the places (a call of a callback, or `disk` and the number of a call that changes the
disk), until it comes to its end. Prints both results as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import samegrad as tf

sys.path.append(str(Path(__file__).parents[1] / "unit" / "train"))
import killing

ROWS = 23  # batches of 4: the last one has 3
keras = tf.keras


def rows() -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(5)
    return (
        draws.normal(size=(ROWS, 4)).astype(np.float32),
        draws.normal(size=(ROWS, 1)).astype(np.float32),
    )


def compiled(**options: Any) -> Any:
    model = keras.Sequential(
        [
            keras.layers.Dense(6, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"], **options)
    return model


def dataset(**shuffling: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(rows()).shuffle(ROWS, **shuffling).batch(4)


class Rows(keras.utils.PyDataset):  # type: ignore[name-defined]
    """Shuffles itself at the end of an epoch, as tutorials do, and draws in __getitem__."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.order = np.arange(ROWS)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        taken = self.order[4 * number : 4 * number + 4]
        noise = np.random.normal(size=(len(taken), 4)).astype(np.float32)
        return rows()[0][taken] + noise, rows()[1][taken]

    def on_epoch_end(self) -> None:
        np.random.shuffle(self.order)


def generated() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    draws = np.random.default_rng(9)
    while True:
        x = draws.normal(size=(4, 4)).astype(np.float32)
        yield x, x.sum(axis=1, keepdims=True)


def _fit(x: Any, y: Any = None, model: Any = None, calls: Any = (), **options: Any) -> Any:
    model = compiled() if model is None else model
    history = model.fit(x, y, verbose=0, callbacks=list(calls), **{"epochs": 3, **options})
    return model, history


def arrays(calls: Any) -> Any:
    return _fit(*rows(), batch_size=4, calls=calls)


def batches_shuffled(calls: Any) -> Any:
    return _fit(*rows(), batch_size=4, calls=calls, shuffle="batch")


def validated(calls: Any) -> Any:
    """Callbacks that count, in every order; validation data that are shuffled."""
    others = [
        keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, factor=0.5, min_delta=9.0),
        keras.callbacks.EarlyStopping(patience=9, restore_best_weights=True),
    ]
    options = {"validation_data": dataset(), "initial_epoch": 1, "epochs": 4}
    return _fit(*rows(), batch_size=4, calls=[others[0], *calls, others[1]], **options)


def schedule(calls: Any) -> Any:
    """A callback that changes the state at the beginning of an epoch."""
    rate = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    return _fit(*rows(), batch_size=4, calls=[*calls, rate])


def seeded_dataset(calls: Any) -> Any:
    return _fit(dataset(seed=3), calls=calls)


def reshuffled(calls: Any) -> Any:
    return _fit(dataset(), calls=calls)


def repeated(calls: Any) -> Any:
    """Epochs that end within a pass through the data."""
    return _fit(dataset().repeat(), calls=calls, steps_per_epoch=4)


def distributed(calls: Any) -> Any:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        model = compiled()
    return _fit(strategy.experimental_distribute_dataset(dataset()), model=model, calls=calls)


def several_steps(calls: Any) -> Any:
    return _fit(*rows(), batch_size=4, calls=calls, model=compiled(steps_per_execution=4))


def py_dataset(calls: Any) -> Any:
    return _fit(Rows(), calls=calls, shuffle=True)


class Ordered(Rows):
    def __getitem__(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        taken = self.order[4 * number : 4 * number + 4]
        return rows()[0][taken], rows()[1][taken]


def workers(calls: Any) -> Any:
    return _fit(Ordered(workers=2), calls=calls, shuffle=True)


def generator(calls: Any) -> Any:
    return _fit(generated(), calls=calls, steps_per_epoch=5)


def mapped(calls: Any) -> Any:
    """Elements that Python makes, and that draw."""
    data = dataset(seed=1).map(lambda x, y: (x + tf.random.normal((4,)), y))
    return _fit(data, calls=calls)


class KillAt(keras.callbacks.Callback):  # type: ignore[name-defined]
    """Kills the process when so many batches and epochs have begun or ended."""

    def __init__(self, place: int) -> None:
        super().__init__()
        self.left = place

    def _count(self, *_: Any, **__: Any) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    on_train_batch_begin = on_train_batch_end = on_epoch_begin = on_epoch_end = _count


def digest(model: Any, history: Any) -> dict[str, Any]:
    last = {name: values[-1:] for name, values in history.history.items()}
    return {
        "bits": tf.fingerprint(model),
        "last": last,
        "epoch": history.epoch,
        "history": history.history,
        "step": int(model.optimizer.iterations),
    }


def child(run: Callable[[], None], report: Path) -> dict[str, Any] | None:
    """What a run in a process of its own has reported; None: it was killed."""
    process = os.fork()
    if process == 0:
        try:
            run()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(int(not report.exists()))
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    assert status == 0, f"status {status}"
    return json.loads(report.read_text())


def main(scenario: str, folder: Path, places: list[str], save_freq: Any) -> None:
    def run(name: str, place: str) -> Callable[[], None]:
        def inside() -> None:
            keras.utils.set_random_seed(7)
            calls = [KillAt(0 if place.startswith("disk") else int(place))]
            if name == "resumed":
                options = {"save_freq": save_freq, "double_checkpoint": True}
                calls.insert(0, keras.callbacks.BackupAndRestore(folder / "backup", **options))
            if place.startswith("disk"):
                killing.die_at(int(place[4:]))
            result = digest(*globals()[scenario](calls))
            (folder / name).write_text(json.dumps(result))

        return inside

    whole = child(run("whole", "0"), folder / "whole")
    killed, resumed = 0, None
    for place in [*places, "0"]:
        resumed = child(run("resumed", place), folder / "resumed")
        if resumed is not None:
            break
        killed += 1
    assert not (folder / "backup").exists()
    print(json.dumps({"whole": whole, "resumed": resumed, "killed": killed}))


if __name__ == "__main__":
    saves: Any = "epoch" if sys.argv[4] == "epoch" else int(sys.argv[4])
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(","), saves)
