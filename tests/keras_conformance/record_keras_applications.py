"""Records gradients of `keras.applications`: `python record_keras_applications.py FILE.npz`.

Run it where Keras 3.15 is installed on TensorFlow; test_keras_applications.py compares with it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

NAMES = ("DenseNet121", "ResNet50", "MobileNetV2", "EfficientNetB0")
CLASSES = 10


def examples(count: int, size: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Images without a pattern, values 0 to 255, and their classes."""
    rng = np.random.default_rng(5)
    images = rng.uniform(0, 255, (count, size, size, 3)).astype(dtype)
    return images, rng.integers(0, CLASSES, count)


def drawn(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """The value of a weight, by its name and shape."""
    values: np.ndarray = 0.1 * rng.standard_normal(shape)
    if name in ("gamma", "moving_variance"):
        values = 1 + np.abs(values)
    elif name.endswith("kernel"):
        fans = shape[:2] if name.startswith("depthwise") else shape[:-1]
        values *= 10 * np.sqrt(2 / np.prod(fans))
    return values


def application(keras: Any, name: str, size: int, drop: bool = False) -> Any:
    """A model of `keras.applications` with drawn weights; without `drop`, nothing is dropped."""
    model = getattr(keras.applications, name)(
        weights=None, input_shape=(size, size, 3), classes=CLASSES
    )
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dropout) and not drop:
            layer.rate = 0
    rng = np.random.default_rng(8)
    for layer in model.layers:
        if isinstance(layer, keras.layers.Normalization):
            continue  # not adapted: mean 0 and variance 1
        for weight in layer.weights:
            weight.assign(drawn(weight.name, tuple(weight.shape), rng))
    return model


def figures(gradients: list[np.ndarray]) -> np.ndarray:
    """For each gradient its norm and projections: on ones, and on two random directions."""
    rows = []
    for i, gradient in enumerate(gradients):
        rng = np.random.default_rng(100 + i)
        flat = np.asarray(gradient, "float64").ravel()
        on = []
        for _ in range(2):
            direction = rng.standard_normal(flat.size)
            on.append(flat @ direction / np.linalg.norm(direction))
        rows.append([np.linalg.norm(flat), flat.sum() / np.sqrt(flat.size), *on])
    return np.array(rows)


def recorded(keras: Any, tf: Any, name: str) -> dict[str, np.ndarray]:
    """The loss, the figures of all gradients and those of the moving statistics after one batch."""
    model = application(keras, name, 64)
    losses = keras.losses.SparseCategoricalCrossentropy()

    @tf.function  # type: ignore[untyped-decorator]
    def step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = losses(labels, model(images, training=True))
        return loss, tape.gradient(loss, model.trainable_variables)

    loss, gradients = step(*map(tf.constant, examples(16, 64, "float64")))
    moved = [w for w in model.non_trainable_variables if w.name.startswith("moving")]
    return {
        f"{name} loss": np.array(float(loss)),
        f"{name} gradients": figures([g.numpy() for g in gradients]),
        f"{name} statistics": figures([np.asarray(w.value) for w in moved]),
    }


def main(path: str) -> None:
    """Writes them."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import tensorflow as tf

    keras.config.set_floatx("float64")
    found: dict[str, np.ndarray] = {}
    for name in NAMES:
        found |= recorded(keras, tf, name)
    np.savez_compressed(path, **found)  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1])
