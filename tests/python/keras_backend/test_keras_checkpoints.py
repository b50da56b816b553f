"""tf.train.Checkpoint of Keras's models and optimizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_programs import fingerprint, images, keras

import samegrad as tf

layers = keras.layers


def _trained(epochs: int, folder: Path | None = None, *, save: bool = False) -> Any:
    """A model with dropout, batch normalization and Adam, trained on 2 replicas."""
    keras.utils.set_random_seed(5)
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        model = keras.Sequential([
            layers.Conv2D(3, 3), layers.BatchNormalization(), layers.Flatten(),
            layers.Dropout(0.4), layers.Dense(2),
        ])  # fmt: skip
        model.compile(keras.optimizers.Adam(0.01), loss="mse")
    checkpoint = tf.train.Checkpoint(model=model)
    if folder is not None and not save:
        checkpoint.restore(str(folder / "c"))  # before any variable is there
    x, y = (part.astype("float32") for part in images(12))
    model.fit(x, y, batch_size=4, epochs=epochs, shuffle=False, verbose=0)
    if save and folder is not None:
        checkpoint.write(str(folder / "c"))
    return model


def test_training_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path: Path) -> None:
    whole = fingerprint(_trained(3))
    _trained(1, tmp_path, save=True)
    assert fingerprint(_trained(2, tmp_path)) == whole


@pytest.mark.parametrize("loss_scale", [False, True])
def test_an_optimizer_alone_is_restored_before_its_first_step(
    tmp_path: Path, loss_scale: bool
) -> None:
    def make() -> tuple[Any, Any]:
        inner = keras.optimizers.Adam(0.1)
        made = keras.optimizers.LossScaleOptimizer(inner) if loss_scale else inner
        return keras.Variable(np.ones((2, 2), np.float32), name="w"), made

    def step(variable: Any, optimizer: Any, number: int) -> None:
        optimizer.apply_gradients([(tf.fill((2, 2), 0.5 * number), variable)])

    weight, optimizer = make()
    step(weight, optimizer, 1)
    tf.train.Checkpoint(w=weight, o=optimizer).write(str(tmp_path / "c"))
    step(weight, optimizer, 2)
    again, other = make()
    tf.train.Checkpoint(w=again, o=other).restore(str(tmp_path / "c"))
    step(again, other, 2)
    np.testing.assert_array_equal(again.numpy(), weight.numpy())
