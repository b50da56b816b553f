"""A small training whose record the tests compare: `python recorded_program.py [NAME=VALUE …]`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import samegrad as tf


def mean_of_all(losses: Any) -> Any:
    return tf.nn.compute_average_loss(losses)


def mean_of_replica(losses: Any) -> Any:
    return tf.reduce_sum(losses) / tf.cast(tf.shape(losses)[0], tf.float32)


def train(
    replicas: int = 1,
    seed: int = 0,
    steps: int = 6,
    flip: int = -1,
    swap: tuple[int, int] | None = None,
    activation: str = "relu",
    own_mean: bool = False,
    processes: bool = False,
    fail: int = -1,
) -> float:
    """Train a small network with dropout on 48 examples in batches of 16."""
    tf.keras.utils.set_random_seed(seed)
    if processes:
        strategy: Any = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=replicas)
    else:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        hidden = tf.keras.layers.Dense(5, activation=activation)
        dropout, last = tf.keras.layers.Dropout(0.3), tf.keras.layers.Dense(1)
        model = tf.keras.Sequential([tf.keras.Input([7]), hidden, dropout, last])
        optimizer = tf.keras.optimizers.Adam()
    rng = np.random.default_rng(5)
    x = rng.normal(size=(48, 7)).astype("float32")
    y = np.sin(x.sum(axis=1, keepdims=True))
    if swap:
        x[[*swap]], y[[*swap]] = x[[*swap[::-1]]], y[[*swap[::-1]]]
    mean = mean_of_replica if own_mean else mean_of_all

    def replica_step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            errors = tf.reduce_sum(tf.square(model(x, training=True) - y), axis=1)
            loss = mean(errors)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    @tf.function
    def step(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica_step, args=batch), axis=None)

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16).repeat()
    batches = iter(strategy.experimental_distribute_dataset(data))
    loss = 0.0
    for number in range(steps):
        if number == flip:
            bits = hidden.kernel.numpy()
            bits.view(np.uint32)[3, 2] ^= 1
            hidden.kernel.assign(bits)
        if number == fail:
            raise RuntimeError("as asked")
        loss = float(step(next(batches)))
    return loss


if __name__ == "__main__":
    given = dict(word.split("=") for word in sys.argv[1:])
    print(train(**{name: int(value) for name, value in given.items()}))  # type: ignore[arg-type]
