"""Models of Keras, and their training on shares of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import samegrad as tf
from samegrad import _core
from samegrad._keras import register
from samegrad._tensor.per_replica import PerReplica

keras = register.load()
layers = keras.layers


def with_weights(model: Any) -> Any:
    """The model with weights that no generator of seeds decides."""
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        value = 0.3 * rng.normal(size=tuple(variable.shape))
        variable.assign(value + 1.0 if "gamma" in variable.path else value)
    return model


def image_model() -> Any:
    """Convolution with L2, batch normalization, penalized outputs: (n, 4, 4, 2) to (n, 2)."""
    penalty = keras.regularizers.L2(0.01)
    return with_weights(
        keras.Sequential([
            keras.Input((4, 4, 2)),
            layers.Conv2D(3, 3, padding="same", kernel_regularizer=penalty, use_bias=False,
                          kernel_initializer="zeros"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(2, kernel_initializer="zeros", activity_regularizer=penalty),
        ])
    )  # fmt: skip


def text_model() -> Any:
    """A masked embedding and a dense layer for each token: (n, 4) to (n, 4, 1)."""
    return with_weights(
        keras.Sequential(
            [
                keras.Input((4,), dtype="int32"),
                layers.Embedding(5, 3, mask_zero=True, embeddings_initializer="zeros"),
                layers.Dense(1, kernel_initializer="zeros", kernel_regularizer="l2"),
            ]
        )
    )


def images(count: int = 5) -> tuple[Any, Any]:
    """Inputs and targets for `image_model`."""
    rng = np.random.default_rng(2)
    return rng.normal(size=(count, 4, 4, 2)), rng.normal(size=(count, 2))


def texts() -> tuple[Any, Any]:
    """Five sequences, padded with zeros, and targets for `text_model`."""
    tokens = [[1, 2, 3, 0], [4, 1, 0, 0], [2, 2, 2, 2], [3, 0, 0, 0], [1, 4, 0, 0]]
    return np.array(tokens), np.random.default_rng(3).normal(size=(5, 4, 1))


def shared(array: Any, sizes: Sequence[int]) -> Any:
    """The rows of an array, so many for each replica."""
    tensor = tf.convert_to_tensor(array)._as_examples(0, 1)
    if len(sizes) == 1:
        return tensor
    return PerReplica(_core.split_rows(tensor, [0, *np.cumsum(sizes)]))


def train_in_a_loop(
    make_model: Callable[[], Any],
    make_optimizer: Callable[[], Any],
    loss: Any,
    data: tuple[Any, Any],
    sizes: Sequence[int],
    steps: int = 3,
) -> tuple[list[float], list[Any]]:
    """The losses and variables of a custom loop; `sizes`: how many examples each replica has."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))
    with strategy.scope():
        model, optimizer = make_model(), make_optimizer()

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
            value += tf.nn.scale_regularization_loss(model.losses)
            scaled = optimizer.scale_loss(value)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(scaled, weights), weights, strict=True))
        return value

    @tf.function
    def run(x: Any, y: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, (x, y)), axis=None)

    x, y = (shared(part, sizes) for part in data)
    found = [float(run(x, y)) for _ in range(steps)]
    return found, [variable.numpy() for variable in model.variables]


def train_by_fit(
    make_model: Callable[[], Any],
    data: tuple[Any, Any],
    replicas: int,
    *,
    batch_size: int | None = None,
    epochs: int = 3,
    **compiled: Any,
) -> tuple[dict[str, list[float]], Any]:
    """The history of `fit`, and the model."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        model = make_model()
        model.compile(**compiled)
    x, y = data
    history = model.fit(
        x, y, batch_size=batch_size or len(x), epochs=epochs, verbose=0, shuffle=False
    )
    return history.history, model
