"""What holds for every layer; a new one is tested as soon as it is public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from public_classes import public_classes

import samegrad as tf

layers = tf.keras.layers
# What the constructors must be told; a layer that needs nothing has no entry.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Activation": {"activation": "tanh"},
    "Conv2D": {"filters": 3, "kernel_size": 3, "activation": "relu"},
    "Dense": {"units": 3},
    "Dropout": {"rate": 0.5},
    "InputLayer": {"input_shape": (6, 6, 2)},
    "Lambda": {"function": lambda x: x * 2.0},
    "Reshape": {"target_shape": (9, 8)},
}
TAKES_SEVERAL = {"Add", "Concatenate"}
NOT_IN_CONFIG = {"Lambda"}  # a function of Python
NAMES = public_classes(layers, layers.Layer)


def create(name: str) -> Any:
    tf.random.set_seed(5)
    return getattr(layers, name)(**ARGUMENTS.get(name, {}))


def images(rows: int = 12) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(rows, 6, 6, 2)).astype(np.float32)


def call(name: str, layer: Any, x: Any, **options: Any) -> Any:
    return layer([x, x * 0.5] if name in TAKES_SEVERAL else x, **options)


@pytest.mark.parametrize("name", NAMES)
def test_its_configuration_makes_an_equal_one(name: str) -> None:
    layer = create(name)
    if name in NOT_IN_CONFIG:
        pytest.skip("its configuration holds a function")
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_argument_is_named(name: str) -> None:
    with pytest.raises(TypeError, match="colour"):
        getattr(layers, name)(**ARGUMENTS.get(name, {}), colour="red")


@pytest.mark.parametrize("name", NAMES)
def test_the_shape_of_its_result_is_known_before(name: str) -> None:
    layer, x = create(name), images()
    shape = (None, *x.shape[1:])
    told = layer.compute_output_shape([shape, shape] if name in TAKES_SEVERAL else shape)
    found = call(name, layer, tf.constant(x)).shape
    assert tuple(told)[1:] == tuple(found)[1:]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_does_not_depend_on_the_others(name: str) -> None:
    layer, x = create(name), images()
    whole = call(name, layer, tf.constant(x)).numpy()
    parts = [call(name, layer, tf.constant(part)).numpy() for part in (x[:5], x[5:])]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def gradients(name: str, replicas: int) -> list[np.ndarray]:
    """Of the mean of all squares, for what goes in (per row) and the weights, while training."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        layer = create(name)
        call(name, layer, tf.constant(images()))
    x = images()
    dataset = tf.data.Dataset.from_tensor_slices(x).batch(len(x))
    (batch,) = strategy.experimental_distribute_dataset(dataset)

    def step(rows: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(rows)
            result = call(name, layer, rows, training=True)
            squares = tf.reshape(tf.square(result), (tf.shape(result)[0], -1))
            loss = tf.nn.compute_average_loss(tf.reduce_sum(squares, axis=1))
        of_rows, of_weights = tape.gradient(loss, [rows, layer.trainable_variables])
        total = tf.distribute.get_replica_context().all_reduce("sum", of_weights)
        return of_rows, total

    of_rows, of_weights = strategy.run(step, args=(batch,))
    parts = strategy.experimental_local_results(of_rows)
    first = [strategy.experimental_local_results(g)[0].numpy() for g in of_weights]
    return [np.concatenate([part.numpy() for part in parts]), *first]


@pytest.mark.parametrize("name", NAMES)
def test_gradients_on_replicas_have_the_bits_of_one_device(name: str) -> None:
    expected = gradients(name, 1)
    assert all(np.isfinite(g).all() for g in expected)
    for replicas in (2, 4):
        for one, other in zip(expected, gradients(name, replicas), strict=True):
            np.testing.assert_array_equal(one, other)
