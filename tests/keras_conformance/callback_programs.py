"""Fits with each of Keras's callbacks, which run on TensorFlow and on samegrad alike.

`record_keras_callbacks.py` records what TensorFlow gives; `test_keras_callbacks.py` compares.
"""

from __future__ import annotations

import csv
import http.server
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROWS, BATCH = 22, 8  # the last batch has 6
DATA = np.random.default_rng(11)
X, Y = DATA.normal(size=(ROWS, 3)), DATA.normal(size=(ROWS, 1))
CLASSES = (Y[:, 0] > 0).astype("int32")
KERNELS = [DATA.normal(size=(3, 4)), DATA.normal(size=4), DATA.normal(size=(4, 1)), np.zeros(1)]
PROGRAMS: dict[str, Callable[..., dict[str, Any]]] = {}


def program(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    PROGRAMS[function.__name__] = function
    return function


class Fit:
    """A model with fixed weights, and what its fits gave.

    Args:
        keras: The package.
        kind: float32 or float64.
        compiling: For `compile`.
    """

    def __init__(self, keras: Any, kind: str, **compiling: Any) -> None:
        self.keras, self.kind = keras, kind
        dense = keras.layers.Dense
        self.model = keras.Sequential(
            [keras.layers.Input((3,), dtype=kind), dense(4, activation="tanh", dtype=kind),
             dense(1, dtype=kind)]
        )  # fmt: skip
        self.model.set_weights([kernel.astype(kind) for kernel in KERNELS])
        rate = compiling.pop("rate", 0.1)
        options = {"optimizer": keras.optimizers.SGD(rate), "loss": "mse", "metrics": ["mae"]}
        self.model.compile(**{**options, **compiling})

    def __call__(self, *callbacks: Any, **options: Any) -> dict[str, Any]:
        x, y = options.pop("data", (X, Y))
        options = {"batch_size": BATCH, "epochs": 4, "verbose": 0, "shuffle": False, **options}
        data = x.astype(self.kind), y.astype(self.kind) if y.dtype.kind == "f" else y
        history = self.model.fit(*data, callbacks=list(callbacks), **options)
        return self.found(history)

    def found(self, history: Any) -> dict[str, Any]:
        weights = np.concatenate([w.ravel() for w in self.model.get_weights()])
        return {
            "history": {
                name: [float(v) for v in values] for name, values in history.history.items()
            },
            "epoch": list(history.epoch),
            "weights": weights.astype(float).tolist(),
            "steps": int(self.model.optimizer.iterations),
        }


def validation(kind: str) -> tuple[np.ndarray, np.ndarray]:
    return X[:7].astype(kind), Y[:7].astype(kind) + 1


@program
def plain(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    return Fit(keras, kind)()


@program
def validated_every_second_epoch(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    return Fit(keras, kind)(validation_data=validation(kind), validation_freq=2)


@program
def validated_in_listed_epochs(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    fit = Fit(keras, kind)
    return fit(validation_split=0.25, validation_freq=[1, 4], validation_batch_size=3)


@program
def class_weights(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    fit = Fit(keras, kind, loss=loss, weighted_metrics=["mae"])
    return fit(data=(X, CLASSES), class_weight={0: 0.3, 1: 2.5})


@program
def class_weights_and_sample_weights(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    try:
        Fit(keras, kind)(data=(X, CLASSES), class_weight={0: 0.3, 1: 2.5}, sample_weight=Y[:, 0])
    except ValueError as error:
        return {"error": str(error)}
    return {}


@program
def sample_weights(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    fit = Fit(keras, kind, weighted_metrics=["mse"])
    return fit(sample_weight=np.abs(Y[:, 0]).astype(kind))


@program
def early_stopping(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    stop = keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True)
    fit = Fit(keras, kind, rate=0.4)
    found = fit(stop, validation_data=validation(kind), epochs=20)
    return found | {"stopped": [stop.stopped_epoch, stop.best_epoch], "best": float(stop.best)}


@program
def reduced_rate(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    plateau = keras.callbacks.ReduceLROnPlateau(
        monitor="loss", factor=0.5, patience=1, min_delta=0.05, cooldown=1, min_lr=0.02
    )
    return Fit(keras, kind)(plateau, epochs=10)


@program
def scheduled_rate(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    return Fit(keras, kind)(keras.callbacks.LearningRateScheduler(lambda n, rate: rate * 0.9**n))


@program
def best_checkpoints(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    path = folder / "{epoch:02d}.weights.h5"
    save = keras.callbacks.ModelCheckpoint(
        path, monitor="val_loss", save_best_only=True, save_weights_only=True
    )
    fit = Fit(keras, kind, rate=0.4)
    found = fit(save, validation_data=validation(kind), epochs=6)
    fit.model.load_weights(sorted(folder.iterdir())[-1])
    best = np.concatenate([w.ravel() for w in fit.model.get_weights()]).astype(float)
    return found | {"files": sorted(p.name for p in folder.iterdir()), "best": best.tolist()}


@program
def checkpoints_by_batches(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    path = folder / "{epoch:02d}-{batch:02d}.weights.h5"
    save = keras.callbacks.ModelCheckpoint(path, save_freq=4, save_weights_only=True)
    found = Fit(keras, kind)(save)
    return found | {"files": sorted(p.name for p in folder.iterdir())}


@program
def csv_twice(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    fit, path = Fit(keras, kind), folder / "log.csv"
    fit(keras.callbacks.CSVLogger(path))
    found = fit(keras.callbacks.CSVLogger(path, append=True), epochs=2)
    rows = list(csv.reader(path.open()))
    return found | {"rows": [[_number(cell) for cell in row] for row in rows]}


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


@program
def calls(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    seen: list[str] = []
    every = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: seen.append(f"begin {epoch} {sorted(logs or {})}"),
        on_epoch_end=lambda epoch, logs: seen.append(f"end {epoch} {sorted(logs)}"),
        on_train_batch_begin=lambda batch, logs: seen.append(f"batch {batch} {sorted(logs or {})}"),
        on_train_batch_end=lambda batch, logs: seen.append(f"done {batch} {sorted(logs)}"),
        on_train_begin=lambda logs: seen.append(f"train {sorted(logs or {})}"),
        on_train_end=lambda logs: seen.append(f"trained {sorted(logs)}"),
    )
    found = Fit(keras, kind)(every, validation_data=validation(kind), epochs=2)
    return found | {"calls": seen}


@program
def several_steps(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    seen: list[str] = []
    every = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: seen.append(f"batch {batch}"),
        on_train_batch_end=lambda batch, logs: seen.append(f"done {batch}"),
    )
    return Fit(keras, kind, steps_per_execution=2)(every, epochs=2, batch_size=4) | {"calls": seen}


@program
def terminated_on_nan(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    x = X.copy()
    x[BATCH] = np.nan  # in the second batch
    found = Fit(keras, kind)(keras.callbacks.TerminateOnNaN(), data=(x, Y))
    return {"epoch": found["epoch"], "steps": found["steps"]}


@program
def remote(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    received: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append([self.path, json.loads(body)])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        root = f"http://127.0.0.1:{server.server_port}"
        monitor = keras.callbacks.RemoteMonitor(root=root, path="/log/", send_as_json=True)
        found = Fit(keras, kind)(monitor, epochs=2)
    finally:
        server.shutdown()
        server.server_close()
    return found | {
        "paths": [path for path, _ in received],
        "sent": [[body["epoch"], body["loss"], body["mae"]] for _, body in received],
    }


@program
def averaged_weights(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.8)
    swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)
    return Fit(keras, kind, optimizer=optimizer)(swap, validation_data=validation(kind))


@program
def twice(keras: Any, kind: str, folder: Path) -> dict[str, Any]:
    fit = Fit(keras, kind)
    first = fit(epochs=2)
    return {"first": first["history"], "second": fit(epochs=4, initial_epoch=2)}


def run(keras: Any, name: str, kind: str, folder: Path) -> dict[str, Any]:
    """What a program gives.

    Args:
        keras: The package.
        name: Of the program.
        kind: float32 or float64, of everything.
        folder: Empty.
    """
    before = keras.config.floatx()
    keras.config.set_floatx(kind)
    try:
        return PROGRAMS[name](keras, kind, folder)
    finally:
        keras.config.set_floatx(before)
