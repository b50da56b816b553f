"""Records what Keras 2 computes and Keras 3 does not have: `python record_keras_older.py FILE.npz`.

Run it where tf_keras, the last of Keras 2, is installed; test_keras_older_names.py compares.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

LOCAL: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "one": ("LocallyConnected1D", (3, 7, 2), {"filters": 4, "kernel_size": 3}),
    "one_strided": (
        "LocallyConnected1D",
        (2, 8, 3),
        {"filters": 2, "kernel_size": 2, "strides": 2, "use_bias": False, "activation": "tanh"},
    ),
    "two": ("LocallyConnected2D", (2, 5, 6, 2), {"filters": 3, "kernel_size": (2, 3)}),
    "two_strided": (
        "LocallyConnected2D",
        (2, 7, 5, 1),
        {"filters": 2, "kernel_size": 3, "strides": (2, 1), "activation": "relu"},
    ),
    "two_first": (
        "LocallyConnected2D",
        (2, 3, 5, 4),
        {"filters": 2, "kernel_size": 2, "data_format": "channels_first"},
    ),
}
SIZES = (2, 3, 4, 5, 6)


def kernel(size: int) -> np.ndarray:
    """A kernel [size, size, 2, 3] whose entries all differ."""
    return np.arange(size * size * 6, dtype="float32").reshape(size, size, 2, 3)


def values(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Values of a weight or an input."""
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def main(path: str) -> None:
    """Writes outputs and gradients."""
    import tensorflow as tf
    import tf_keras

    found: dict[str, Any] = {}
    for size in SIZES:
        constraint = tf_keras.constraints.RadialConstraint()
        found[f"radial_{size}"] = constraint(tf.constant(kernel(size))).numpy()
    for name, (kind, shape, arguments) in LOCAL.items():
        layer = getattr(tf_keras.layers, kind)(**arguments)
        x = tf.constant(values(shape, 0))
        layer.build(shape)
        layer.set_weights([values(w.shape, i + 1) for i, w in enumerate(layer.weights)])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            loss = tf.reduce_sum(y * y)
        found[f"{name}_output"] = y.numpy()
        for i, gradient in enumerate(tape.gradient(loss, [x, *layer.weights])):
            found[f"{name}_gradient_{i}"] = gradient.numpy()
    np.savez_compressed(path, **found)


if __name__ == "__main__":
    main(sys.argv[1])
