"""Write a checkpoint of the present versions of the numerics, if `checkpoints/` has none.

    python tests/unit/train/write_checkpoints.py

Each folder is a small model and its optimizer after three steps. Builds of reduction orders 1 and 2
no longer exist: a build of order 4 wrote their folders, with the provider values of the older ones.

If you raise `kReductionOrder` or `kFunctionVersion` in `cpp/base`, run this command and commit the
new folder.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import samegrad as tf
from samegrad._base.numerics import numerics

FOLDER = pathlib.Path(__file__).parent / "checkpoints"


def name_of(versions: Mapping[str, int]) -> str:
    """Return the name of the folder of these versions."""
    return f"reduction-{versions['reduction_order']}-functions-{versions['function_version']}"


def training() -> tuple[tf.train.Checkpoint, Any]:
    """Return a checkpoint of a model with its optimizer, and a training step."""
    tf.random.set_seed(4)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4), tf.keras.layers.Dense(1)])
    model.build((None, 3))
    optimizer = tf.keras.optimizers.Adam(0.1)
    optimizer.build(model.trainable_variables)
    rows = tf.reshape(tf.range(24, dtype="float32"), [8, 3]) / 24.0

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(rows) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    return tf.train.Checkpoint(model=model, optimizer=optimizer), step


def main() -> None:
    """Write the folder of these versions unless it exists."""
    target = FOLDER / name_of(numerics())
    if target.exists():
        return
    checkpoint, step = training()
    for _ in range(3):
        step()
    checkpoint.write(target)


if __name__ == "__main__":
    main()
