"""Custom training loops of tf.distribute, in samegrad: each replica applies its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from eval_case import decorator

import samegrad as tf
from samegrad.testing.adapters import samegrad_step

BUILDS: dict[str, Callable[[], Any]] = {}  # by name, for the check of traces
RATE = 0.5


def vectors() -> tuple[np.ndarray, ...]:
    """Features and targets."""
    rng = np.random.default_rng(61)
    return rng.normal(size=(12, 6)).astype("float32"), rng.normal(size=(12, 2)).astype("float32")


COUNTS = [2.0, 1.0, 4.0, 3.0, 1.0, 5.0, 2.0, 3.0, 1.0, 4.0, 2.0, 1.0]


def weighted() -> tuple[np.ndarray, ...]:
    """Features, targets, and what each example counts."""
    return *vectors(), np.array(COUNTS, "float32")


def text() -> tuple[np.ndarray, ...]:
    """Tokens, targets, and 1 for tokens that count."""
    rng = np.random.default_rng(62)
    mask = (np.arange(5) < np.array(COUNTS)[:, None]).astype("float32")
    x, y = rng.normal(size=(12, 5, 6)), rng.normal(size=(12, 5, 2))
    return x.astype("float32"), y.astype("float32"), mask


class Net:
    """Two layers of variables."""

    def __init__(self) -> None:
        rng = np.random.default_rng(63)
        self.one = tf.Variable(rng.normal(size=(6, 8)).astype("float32") / 3)
        self.two = tf.Variable(rng.normal(size=(8, 2)).astype("float32") / 3)
        self.variables = [self.one, self.two]

    def __call__(self, x: Any) -> Any:
        return tf.matmul(tf.tanh(tf.matmul(x, self.one)), self.two)

    def losses(self, x: Any, y: Any) -> Any:
        """One for each example or token."""
        return tf.reduce_sum(tf.square(self(x) - y), axis=-1)


def replicas() -> int:
    """R."""
    return tf.distribute.get_strategy().num_replicas_in_sync


def summed(value: Any) -> Any:
    """The sum over replicas."""
    return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, value)


def _of_a_loss(loss: Callable[..., Any], settings: dict[str, Any]) -> Callable[[], Any]:
    batch, limit = settings.pop("batch", vectors), settings.pop("limit", lambda grads: grads)

    def build() -> Any:
        net = Net()
        optimizer = tf.keras.optimizers.SGD(RATE)

        def replica_step(*parts: Any) -> Any:
            with tf.GradientTape() as tape:
                value = loss(net, *parts)
                value, said = value if isinstance(value, tuple) else (value, None)
            grads = limit(tape.gradient(value, net.variables))
            optimizer.apply_gradients(zip(grads, net.variables, strict=True))
            return said

        return replica_step, net.variables

    BUILDS[f"{loss.__module__}.{loss.__name__}"] = build
    return lambda: (samegrad_step(build), batch())


case = decorator(_of_a_loss)  # of loss(net, *batch): the loss, and what a replica reports


def size(x: Any) -> Any:
    """The number of examples of a replica."""
    return tf.cast(tf.shape(x)[0], "float32")


__all__ = [
    "COUNTS", "Any", "Net", "case", "np", "replicas", "size", "summed", "text", "tf", "vectors",
    "weighted",
]  # fmt: skip
