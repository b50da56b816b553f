"""Layers and steps that need a size from a value: Python runs them on one replica."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf

keras = tf.keras
layers = keras.layers
RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(10, 8, 8, 3)).astype(np.float32)
CLASSES = RANDOM.integers(0, 3, 10)


class Masked(layers.Layer):
    def call(self, x):
        return tf.boolean_mask(x, tf.reduce_mean(x, [1, 2, 3]) > -9.0)


class Distinct(layers.Layer):
    def call(self, x):
        signs = tf.unique(tf.reshape(tf.sign(x), [-1])).y
        return x * tf.cast(tf.size(signs), x.dtype)


class Range(layers.Layer):
    def call(self, x):
        n = tf.cast(tf.reduce_sum(tf.abs(tf.sign(x[0]))), tf.int32)
        return x + tf.cast(tf.reduce_max(tf.range(n)), x.dtype) * 1e-3


FALLING: dict[str, Callable[[], list[Any]]] = {
    "RandomWidth and RandomHeight": lambda: [
        layers.RandomWidth(0.3), layers.RandomHeight(0.3), layers.Resizing(8, 8)
    ],
    "boolean_mask": lambda: [Masked()],
    "unique": lambda: [Distinct()],
    "range of a count": lambda: [Range()],
}  # fmt: skip
FIXED: dict[str, Callable[[], list[Any]]] = {
    "RandomCrop": lambda: [layers.RandomCrop(6, 6), layers.Resizing(8, 8)],
    "RandomTranslation": lambda: [layers.RandomTranslation(0.2, 0.2)],
    "RandomZoom": lambda: [layers.RandomZoom(0.2)],
}


def compiled_model(first: Callable[[], list[Any]], strategy: Any = None) -> Any:
    keras.utils.set_random_seed(3)
    with (strategy or tf.distribute.get_strategy()).scope():
        model = keras.Sequential([*first(), layers.Flatten(), layers.Dropout(0.2), layers.Dense(3)])
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def trained(first: Callable[[], list[Any]], strategy: Any = None) -> Any:
    model = compiled_model(first, strategy)
    history = model.fit(IMAGES, CLASSES, batch_size=4, epochs=2, verbose=0).history["loss"]
    loss = model.evaluate(IMAGES, CLASSES, batch_size=4, verbose=0)
    return history, loss, model.predict(IMAGES, batch_size=4, verbose=0).tolist()


@pytest.mark.parametrize("name", FALLING)
def test_layers_of_drawn_sizes_train_on_one_replica_as_eager_steps_do(name: str) -> None:
    model = compiled_model(FALLING[name])
    expected = []
    for _ in range(2):
        model.reset_metrics()
        for begin in (0, 4, 8):
            part = slice(begin, begin + 4)
            model.train_step((tf.constant(IMAGES[part]), tf.constant(CLASSES[part])))
        expected.append(float(model.metrics[0].result()))
    fitted = compiled_model(FALLING[name]).fit(
        IMAGES, CLASSES, batch_size=4, epochs=2, shuffle=False, verbose=0
    )
    assert fitted.history["loss"] == expected
    one = tf.distribute.MirroredStrategy(replicas=1)
    assert trained(FALLING[name], one) == trained(FALLING[name])


@pytest.mark.parametrize("name", FALLING)
def test_layers_of_drawn_sizes_are_refused_on_several_replicas(name: str) -> None:
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match="has a value only when the step runs|does not know"):
        trained(FALLING[name], two)


@pytest.mark.parametrize("name", FIXED)
def test_layers_of_drawn_places_train_on_any_replicas(name: str) -> None:
    assert trained(FIXED[name]) == trained(FIXED[name], tf.distribute.MirroredStrategy(replicas=2))


def test_functional_models_leave_sizes_that_follow_from_values_open() -> None:
    x = keras.Input([8, 8, 3])
    flat = Masked()(x)
    assert flat.shape == (None, 8, 8, 3)
    kept = layers.Lambda(lambda x: tf.boolean_mask(x, x[0, :, 0, 0] > 0.5, axis=1))(x)
    assert kept.shape == (None, None, 8, 3)
    outputs = layers.Dense(2)(layers.GlobalAveragePooling2D()(kept))
    model = keras.Model(x, outputs)
    assert model.predict(np.abs(IMAGES) + 0.5, verbose=0).shape == (10, 2)


class Counts(keras.Model):
    def train_step(self, data):
        x, _ = data
        return {"s": tf.reduce_sum(tf.cast(tf.range(tf.size(x)), tf.float32))}


def test_range_of_a_count_of_examples_in_a_train_step() -> None:
    model = Counts()
    model.compile()
    history = model.fit(np.ones((4, 3)), np.ones((4, 1)), batch_size=4, verbose=0).history
    assert np.ravel(history["s"]).tolist() == [66.0]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("layer", [layers.Embedding, layers.CategoryEncoding])
def test_layers_take_a_range_of_a_size(layer: Any, axis: int) -> None:
    class Positions(keras.Model):
        def __init__(self):
            super().__init__()
            sizes = (20, 4) if layer is layers.Embedding else (20,)
            self.positions, self.head = layer(*sizes), layers.Dense(2)

        def call(self, x):
            n = tf.shape(x)[axis]
            return self.head(x) + tf.reduce_sum(tf.cast(self.positions(tf.range(n)), tf.float32))

    model = Positions()
    model.compile("sgd", "mse")
    model.fit(np.ones((4, 5), np.float32), np.ones((4, 2), np.float32), verbose=0)
    step = tf.function(model, input_signature=[tf.TensorSpec([None, None])])
    np.testing.assert_array_equal(step(tf.ones([3, 5])), model(tf.ones([3, 5])))
