"""Examples are where the value says, however the step is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf

RNG = np.random.default_rng(3)
X = RNG.normal(size=(37, 5)).astype(np.float32)
Y = RNG.integers(0, 3, size=37)


def gradients_of(model: Any, x: Any, y: Any) -> list[Any]:
    with tf.GradientTape() as tape:
        losses = tf.keras.losses.sparse_categorical_crossentropy(y, model(x), from_logits=True)
        loss = tf.nn.compute_average_loss(losses)
    return [loss, *tape.gradient(loss, model.trainable_variables)]


def network() -> Any:
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(19, "tanh"), tf.keras.layers.Dense(3)])
    model(X[:1])
    return model


def same_bits(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x.numpy(), y.numpy())


@pytest.mark.parametrize("size", [1, 6, 37])
def test_plain_arrays_have_the_bits_of_eager_code_in_a_function(size: int) -> None:
    model = network()
    eager = gradients_of(model, X[:size], Y[:size])
    as_arguments = tf.function(lambda x, y: gradients_of(model, x, y))(X[:size], Y[:size])
    as_constants = tf.function(lambda: gradients_of(model, X[:size], Y[:size]))()
    same_bits(eager, as_arguments)
    same_bits(eager, as_constants)


def test_plain_arrays_have_the_bits_of_a_dataset() -> None:
    model = network()
    (batch,) = tf.data.Dataset.from_tensor_slices((X, Y)).batch(37)
    step = tf.function(lambda x, y: gradients_of(model, x, y))
    same_bits(step(*batch), step(X, Y))


@pytest.mark.parametrize("replicas", [2, 3])
def test_rows_given_by_a_function_have_the_bits_of_a_dataset(replicas: int) -> None:
    model = network()
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    rows = 36
    data = tf.data.Dataset.from_tensor_slices((X[:rows], Y[:rows])).batch(rows)
    (batch,) = strategy.experimental_distribute_dataset(data)
    own = rows // replicas

    def part(of: np.ndarray) -> Any:
        return strategy.experimental_distribute_values_from_function(
            lambda c: tf.constant(of[c.replica_id_in_sync_group * own :][:own])
        )

    def summed(x: Any, y: Any) -> Any:
        context = tf.distribute.get_replica_context()
        return [context.all_reduce("sum", g) for g in gradients_of(model, x, y)]

    given = strategy.run(summed, (part(X), part(Y)))
    for a, b in zip(given, strategy.run(summed, batch), strict=True):
        same_bits(strategy.experimental_local_results(a), strategy.experimental_local_results(b))
