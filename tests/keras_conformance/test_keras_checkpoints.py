"""tf.train.Checkpoint of Keras's models and optimizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_programs import images, keras

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
    whole = tf.fingerprint(_trained(3).variables)
    _trained(1, tmp_path, save=True)
    assert tf.fingerprint(_trained(2, tmp_path).variables) == whole


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


def _plain(built: bool, replicas: int = 1, units: int = 3) -> Any:
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        head = [keras.Input((4,))] if built else []
        hidden = [layers.Dense(units, activation="relu"), layers.BatchNormalization()]
        model = keras.Sequential([*head, *hidden, layers.Dense(2)])
        model.compile(keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    return model


def _fit(model: Any) -> Any:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(7, 4)).astype("float32"), rng.normal(size=(7, 2)).astype("float32")
    model.fit(x, y, batch_size=4, epochs=1, shuffle=False, verbose=0)
    return model


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_model_and_optimizer_are_restored_into_another_number_of_replicas(
    tmp_path: Path, built: bool, replicas: int
) -> None:
    keras.utils.set_random_seed(1)
    model = _fit(_plain(True, 2))
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "c")
    other = _plain(built, replicas)
    status = tf.train.Checkpoint(model=other, optimizer=other.optimizer).restore(path)
    status.assert_nontrivial_match() if built else status.expect_partial()
    _fit(model)
    _fit(other)
    status.assert_consumed()
    assert int(other.optimizer.iterations) == int(model.optimizer.iterations) == 4
    for found, expected in zip(other.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_part_of_a_checkpoint_is_restored(tmp_path: Path) -> None:
    model = _fit(_plain(True))
    path = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(tmp_path / "c")
    other = keras.Sequential([keras.Input((4,)), *_plain(False).layers])
    status = tf.train.Checkpoint(model=other).restore(path).expect_partial()
    status.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match="every value of .* must have an object"):
        status.assert_consumed()
    for found, expected in zip(other.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_model_of_other_sizes_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    model = _fit(_plain(True))
    path = tf.train.Checkpoint(model=model).save(tmp_path / "c")
    other = _plain(True, units=5)
    before = tf.fingerprint(other.variables)
    with pytest.raises(ValueError, match="shape"):
        tf.train.Checkpoint(model=other).restore(path)
    assert tf.fingerprint(other.variables) == before


@pytest.mark.parametrize("built", [False, True])
def test_checkpoint_holds_the_optimizers_of_a_multi_optimizer(tmp_path, built):
    optimizers = tf.keras.optimizers

    def trained(steps):
        w, b = tf.Variable([1.0, 2.0], name="w"), tf.Variable([3.0], name="b")
        chosen = optimizers.OptimizerMap(optimizers.Adam(0.1))
        chosen["b"] = optimizers.Adam(0.2)
        optimizer = optimizers.MultiOptimizer(chosen)

        def step():
            optimizer.apply_gradients([(tf.constant([0.5, 1.0]), w), (tf.constant([2.0]), b)])

        for _ in range(steps):
            step()
        return step, {"w": w, "b": b, "optimizer": optimizer}

    step, state = trained(3)
    path = tf.train.Checkpoint(**state).write(tmp_path / "ckpt")
    again, restored = trained(built)
    tf.train.Checkpoint(**restored).restore(path)
    for one in (step, again):
        one()
    for name in ("w", "b"):
        assert restored[name].numpy().tolist() == state[name].numpy().tolist()
    assert tf.fingerprint(restored) == tf.fingerprint(state)
