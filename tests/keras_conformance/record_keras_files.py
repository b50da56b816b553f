"""Records files that TensorFlow's Keras writes: `python record_keras_files.py FOLDER`.

Run it where Keras 3.15 is installed on TensorFlow; test_keras_saving.py loads them on samegrad.
With `--read FILE` it loads a file that samegrad wrote, and prints its predictions as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

INPUTS = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
TARGETS = np.linspace(0, 1, 6, dtype="float32").reshape(3, 2)


def model_of(keras: Any) -> Any:
    """Dense, batch normalization, dense: compiled with Adam, and trained for two steps."""
    model = keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(3, activation="relu"),
        keras.layers.BatchNormalization(), keras.layers.Dense(2),
    ])  # fmt: skip
    rng = np.random.default_rng(0)
    for weight in model.trainable_weights:
        weight.assign(0.5 + 0.2 * rng.normal(size=weight.shape))
    model.compile(keras.optimizers.Adam(0.1), loss="mse", metrics=["mae"])
    model.fit(INPUTS, TARGETS, batch_size=3, epochs=2, verbose=0, shuffle=False)
    return model


def goes_on(model: Any) -> list[np.ndarray]:
    """The weights after two more steps."""
    model.fit(INPUTS, TARGETS, batch_size=3, epochs=2, verbose=0, shuffle=False)
    weights: list[np.ndarray] = model.get_weights()
    return weights


def main(folder: Path) -> None:
    """Writes the files, what the model predicts, and its weights two steps later."""
    import tensorflow as tf

    model = model_of(tf.keras)
    for name in ("tensorflow.keras", "tensorflow.h5"):
        model.save(folder / name)
    model.save_weights(folder / "tensorflow.weights.h5")
    predictions = model.predict(INPUTS, verbose=0)
    later = {f"later_{i}": weight for i, weight in enumerate(goes_on(model))}
    np.savez_compressed(folder / "tensorflow.npz", predictions=predictions, **later)


def read(path: str) -> None:
    """Prints what the model in a file predicts."""
    import tensorflow as tf

    model = tf.keras.models.load_model(path)
    print(json.dumps(model.predict(INPUTS, verbose=0).tolist()))


if __name__ == "__main__":
    if sys.argv[1] == "--read":
        read(sys.argv[2])
    else:
        main(Path(sys.argv[1]))
