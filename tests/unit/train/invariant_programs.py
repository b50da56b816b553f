"""Programs for test_replica_invariance.py, which other processes import as well."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import samegrad as tf

X = np.random.default_rng(0).normal(size=(11, 3)).astype("float32")
data = (X, X.sum(axis=1, keepdims=True))


def as_dataset() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(data).shuffle(11).batch(4)


def as_dict() -> dict[str, np.ndarray]:
    return {"x": X, "y": data[1]}


def no_rows() -> Any:
    return X[:0], X[:0]


def model() -> tf.keras.Model:
    made = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(4, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dropout(0.3),
            tf.keras.layers.Dense(1),
        ]
    )
    made.compile("adam", "mse", metrics=["mae"])
    return made


def _loop(mean: bool = False, statistic: bool = False, start: float = 0.0) -> Any:
    w = tf.Variable(np.full((3, 1), start, np.float32))
    optimizer = tf.keras.optimizers.Adam(0.1)
    total = tf.keras.metrics.Mean()

    def step(x: Any, y: Any) -> None:
        if statistic:
            x = x - tf.reduce_mean(x, axis=0)  # of the examples of a replica
        with tf.GradientTape() as tape:
            losses = tf.reduce_sum(tf.square(x @ w - y), axis=1)
            loss = tf.reduce_mean(losses) if mean else tf.nn.compute_average_loss(losses)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        total.update_state(losses)

    return step, {"w": w, "optimizer": optimizer, "total": total}


def loop() -> Any:
    return _loop()


def of_a_dict() -> Any:
    step, state = _loop()
    return (lambda batch: step(batch["x"], batch["y"])), state


def local_mean() -> Any:
    return _loop(mean=True)


def local_statistic() -> Any:
    return _loop(statistic=True)


def seeded_by_python() -> Any:
    return _loop(start=random.random() + np.random.rand())


def unrepeatable() -> Any:
    return _loop(start=random.SystemRandom().random())


def raises() -> Any:
    raise KeyError("no such layer")


def raises_elsewhere() -> Any:
    if tf.distribute.mpi.size() > 1:
        raise KeyError("no such layer")
    return _loop()


def leaves() -> Any:
    raise SystemExit(0)


def uncompiled() -> Any:
    return tf.keras.Sequential([tf.keras.layers.Dense(1)])


def nothing() -> None:
    return None


def without_state() -> Any:
    return (lambda x, y: None), []


class Made:
    @staticmethod
    def loop() -> Any:
        return _loop()


class Centred(tf.keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return x - tf.reduce_max(x, axis=0)  # of the examples of a replica


def model_with_a_statistic() -> tf.keras.Model:
    made = tf.keras.Sequential([Centred(), tf.keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made
