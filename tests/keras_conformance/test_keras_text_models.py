"""Models that get strings: TensorFlow's losses, and the same weights on any number of replicas."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
from text_model_programs import BATCH, PROGRAMS, TARGETS, TEXTS, built, losses, sequential

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_text_models.json").read_text())


def replicas(count: int) -> Any:
    return tf.distribute.MirroredStrategy(replicas=count)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_model_of_strings_trains_as_tensorflows_and_as_on_replicas(name: str) -> None:
    model, given = built(tf, name)
    outputs = model.predict(given, batch_size=BATCH, verbose=0)
    np.testing.assert_allclose(np.ravel(outputs), RECORDED[name]["outputs"], 1e-5, 1e-6)
    np.testing.assert_allclose(losses(tf, model, given), RECORDED[name]["losses"], 1e-5)
    other, given = built(tf, name, replicas(3))
    losses(tf, other, given)
    for one, several in zip(model.trainable_weights, other.trainable_weights, strict=True):
        assert one.numpy().tobytes() == several.numpy().tobytes()


def vectorized() -> tuple[Any, Any]:
    return built(tf, "vectorization first")


def test_methods_of_one_batch_and_of_all_agree() -> None:
    model, given = vectorized()
    expected = model.predict(given, verbose=0)
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(5)
    generator = ((batch.numpy(),) for batch in dataset)
    for found in (
        model(given), model(np.array(TEXTS)), model.predict_on_batch(given),
        model.predict(np.array(TEXTS), verbose=0), model.predict(dataset, verbose=0),
        model.predict(generator, verbose=0), tf.function(model)(given),
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, 1e-6)
    loss = model.evaluate(given, TARGETS, verbose=0)
    assert model.test_on_batch(given, TARGETS) == pytest.approx(loss)
    assert model.train_on_batch(np.array(TEXTS, object), TARGETS) == pytest.approx(loss)
    assert model.evaluate(given, TARGETS, verbose=0) < loss


@pytest.mark.parametrize("options", [{"run_eagerly": True}, {"steps_per_execution": 2}], ids=str)
def test_compile_options_change_no_bit(options: dict[str, Any]) -> None:
    model, given = vectorized()
    losses(tf, model, given)
    other, _ = vectorized()
    other.compile("sgd", "mse", **options)
    losses(tf, other, given)
    for one, two in zip(model.get_weights(), other.get_weights(), strict=True):
        assert one.tobytes() == two.tobytes()


def test_fit_builds_the_model_and_validates() -> None:
    model, given = PROGRAMS["subclass that reads strings"](tf)
    model.compile("sgd", "mse")
    history = model.fit(
        tf.constant(given), TARGETS, validation_split=0.5, epochs=2, verbose=0, batch_size=4
    ).history
    assert len(history["val_loss"]) == 2
    assert all(layer.built for layer in model.parts)


def test_weights_are_made_by_the_strings_of_the_batch() -> None:
    number = tf.keras.layers.Lambda(lambda x: tf.strings.to_number(x)[:, None], output_shape=(1,))
    given, dense = tf.keras.Input((), dtype="string"), tf.keras.layers.Dense(1)
    model = tf.keras.Sequential([given, number, dense])
    model.compile("sgd", "mse")
    model.fit(tf.constant(["1.5", "2"]), np.ones((2, 1)), verbose=0, epochs=2)
    assert model.predict(tf.constant(["3.5"]), verbose=0).shape == (1, 1)


def test_masks_reach_later_layers() -> None:
    model, given = built(tf, "recurrent")
    padded = tf.constant([*TEXTS[:2], "a " * 30])
    np.testing.assert_array_equal(
        model.predict(padded, verbose=0)[:2], model.predict(given[:2], verbose=0)
    )


def test_a_model_of_strings_is_saved_and_loaded(tmp_path: Any) -> None:
    for name in ("vectorization first", "several inputs", "hashed strings with salt"):
        model, given = built(tf, name)
        model.save(tmp_path / "model.keras")
        loaded = tf.keras.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(
            loaded.predict(given, verbose=0), model.predict(given, verbose=0)
        )


def test_export_names_the_input_of_strings(tmp_path: Any) -> None:
    model, _ = built(tf, "several inputs")
    for export in (model.export, lambda path: tf.saved_model.save(model, path)):
        with pytest.raises(ValueError, match=r"numbers: got strings for input '(texts|colours)'"):
            export(str(tmp_path / "served"))
    model, _ = built(tf, "subclass")
    with pytest.raises(TypeError, match="takes no numbers"):
        model.export(str(tmp_path / "served"), verbose=False)


class Own(tf.keras.layers.Layer):
    """A layer whose call a test gives."""

    def __init__(self, read: Any, trains: bool = False) -> None:
        super().__init__(dtype="string", trainable=trains)
        self.read = read
        self.dense = tf.keras.layers.Dense(1, dtype="float32") if trains else None

    def call(self, x: Any) -> Any:
        return self.read(self, x)


REJECTED = {
    "values that are read beside weights": (
        lambda layer, x: layer.dense(x.numpy() == b"a"), True,
        "layers with weights get numbers",
    ),
    "ragged tensors": (
        lambda layer, x: layer.dense(tf.strings.length(tf.strings.split(x))), True,
        "dense tensors",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_strings_that_no_step_has_are_named(name: str) -> None:
    read, trains, message = REJECTED[name]
    layer = Own(read, trains)
    if trains:
        layer.dense.build((None, 1))
    model = tf.keras.Sequential([layer])
    model.compile("sgd", "mse")
    model.built = True
    with pytest.raises(TypeError, match=message):
        model.predict(tf.constant(TEXTS), verbose=0)


def test_strings_that_a_step_computes_with_are_named() -> None:
    class Hashed(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.hashing = tf.keras.layers.Hashing(3)

        def call(self, x: Any) -> Any:
            return self.hashing(x + 1)

    with pytest.raises(TypeError, match="got a tensor that the step computes"):
        Hashed().predict(np.arange(4), verbose=0)


def test_a_layer_of_strings_rejects_numbers() -> None:
    model, _ = sequential(lambda tf: [tf.keras.layers.TextVectorization()])(tf)
    with pytest.raises(TypeError, match="strings are needed: got"):
        model(tf.ones((2, 1)))
    with pytest.raises(TypeError, match="takes no numbers"):
        model.layers[0](tf.ones((2, 1)))
