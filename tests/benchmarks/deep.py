"""What the first step of a deep model costs: tracing, gradients, passes, plan, and the step.

    python tests/benchmarks/deep.py 1000 3000

Prints for each number of layers what building, tracing (forward, gradient, update) and compiling
took, in milliseconds of this thread's processor time, which other programs disturb less than the
clock; the time for each layer tells whether all of it is linear.
"""

from __future__ import annotations

import itertools
import sys
import time

import numpy as np

import samegrad as tf

WIDTH = 16
PARTS = ("build", "forward", "gradient", "update", "compile and run")


class Chain(tf.keras.Model):
    """Layers one after the other; graphs of Keras end at about 990, where Python's calls do."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.hidden = [tf.keras.layers.Dense(WIDTH, activation="relu") for _ in range(count)]

    def call(self, x):
        for layer in self.hidden:
            x = layer(x)
        return x


def first_step(layers: int) -> list[float]:
    """Milliseconds of the parts."""
    at = [time.thread_time()]
    strategy = tf.distribute.MirroredStrategy(["cpu:0"])
    with strategy.scope():
        model = Chain(layers)
        model(tf.constant(np.ones((8, WIDTH), np.float32)))
        optimizer = tf.keras.optimizers.Adam()
    at.append(time.thread_time())

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x))
        at.append(time.thread_time())
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables)
        at.append(time.thread_time())
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        at.append(time.thread_time())
        return loss

    step(tf.constant(np.ones((8, WIDTH), np.float32)))
    at.append(time.thread_time())
    return [1e3 * (b - a) for a, b in itertools.pairwise(at)]


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    for count in map(int, sys.argv[1:] or ["1000"]):
        parts = first_step(count)
        named = ", ".join(f"{name} {ms:.0f}" for name, ms in zip(PARTS, parts, strict=True))
        total = sum(parts[1:])
        print(f"{count} layers: {named} ms; first step {total:.0f} ms, {total / count:.3f} each")
