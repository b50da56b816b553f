"""A model with a recurrent layer takes a plain tensor, whatever kind of model it is.

Batch, steps, columns and units are all five: nothing but where a value comes from tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_feeding import alone, check, eager, on_replicas

import samegrad as tf

layers, keras = tf.keras.layers, tf.keras
SIZE = 5
RNG = np.random.default_rng(11)
SERIES = RNG.normal(size=(SIZE, SIZE, SIZE)).astype(np.float32)
SERIES[1, 3:] = SERIES[4, :2] = 0.0  # steps that a mask leaves out


def stacked() -> Any:
    return layers.RNN([layers.LSTMCell(SIZE), layers.GRUCell(SIZE)], return_sequences=True)


RECURRENT: dict[str, Callable[[], Any]] = {
    "LSTM": lambda: layers.LSTM(SIZE),
    "GRU": lambda: layers.GRU(SIZE, return_sequences=True),
    "SimpleRNN": lambda: layers.SimpleRNN(SIZE, go_backwards=True),
    "unrolled": lambda: layers.GRU(SIZE, unroll=True),
    "with states": lambda: layers.GRU(SIZE, return_state=True),
    "stateful": lambda: layers.LSTM(SIZE, stateful=True),
    "Bidirectional": lambda: layers.Bidirectional(layers.LSTM(SIZE, return_sequences=True)),
    "stacked cells": stacked,
    "TimeDistributed": lambda: layers.TimeDistributed(layers.Dense(SIZE, "tanh")),
}


class Subclassed(keras.Model):  # type: ignore[misc,name-defined]
    """Calls the layer."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def call(self, x: Any) -> Any:
        """The layer's outputs."""
        return self.layer(x)


def functional(layer: Any, **options: Any) -> Any:
    given = keras.Input((SIZE, SIZE), **options)
    return keras.Model(given, layer(given))


MODELS: dict[str, Callable[[Any], Any]] = {
    "Sequential": lambda layer: keras.Sequential([layer]),
    "Sequential with Input": lambda layer: keras.Sequential([keras.Input((SIZE, SIZE)), layer]),
    "functional": functional,
    "functional of one batch size": lambda layer: functional(layer, batch_size=SIZE),
    "subclassed": Subclassed,
    "model in a model": lambda layer: Subclassed(functional(layer)),
    "with a mask": lambda layer: keras.Sequential([layers.Masking(), layer]),
}


# Keras wants to know the batch size of a stateful layer before.
MEMBERS = [
    (name, kind)
    for name in RECURRENT
    for kind in MODELS
    if name != "stateful" or kind not in ("Sequential with Input", "functional", "model in a model")
]


@pytest.mark.parametrize(("name", "kind"), MEMBERS, ids=str)
def test_a_recurrent_model_takes_plain_tensors(name: str, kind: str) -> None:
    keras.utils.set_random_seed(3)
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        layer = RECURRENT[name]()
        model = MODELS[kind](layer)
        model(SERIES)
    states = layer.states if name == "stateful" else []
    for state in states:
        state.assign(tf.zeros_like(state))
    kept = SimpleNamespace(
        variables=[*model.variables, *states],
        non_trainable_variables=[*model.non_trainable_variables, *states],
    )

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            results = tf.nest.flatten(model(x))
            rows = [tf.reduce_sum(tf.sin(y), list(range(1, len(y.shape)))) for y in results]
            loss = tf.nn.compute_average_loss(tf.add_n(rows))
        gradients = tape.gradient(loss, model.trainable_variables)
        context = tf.distribute.get_replica_context()
        return results, gradients if context is None else context.all_reduce("sum", gradients)

    start = [variable.numpy() for variable in kept.variables]
    expected = check(kept, alone(step, (SERIES,)), start)
    check(kept, eager(step, (SERIES,)), start, expected, 1e-5)
    check(kept, on_replicas(strategy, step, (SERIES,), False), start, expected, 1e-5)
    if not states:  # which are those of one batch
        check(kept, on_replicas(strategy, step, (SERIES,), True), start, tolerance=1e-5)


def test_a_stateful_layer_in_a_model_has_the_weights_of_one_alone() -> None:
    found = []
    for around in (lambda layer: layer, Subclassed):
        keras.utils.set_random_seed(3)
        model = around(layers.LSTM(SIZE, stateful=True))
        found.append([model(SERIES).numpy(), *(weight.numpy() for weight in model.weights[:3])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_layer_called_before_its_function_is_traced() -> None:
    layer = layers.LSTM(SIZE)
    model = keras.Sequential([keras.Input((SIZE, SIZE)), layer])
    expected = model(SERIES).numpy()
    np.testing.assert_array_equal(tf.function(lambda x: model(x))(SERIES), expected)
    np.testing.assert_array_equal(tf.function(lambda x: layer(x))(tf.constant(SERIES)), expected)


@pytest.mark.parametrize("unroll", [False, True])
def test_first_states_have_the_examples_of_the_inputs(unroll: bool) -> None:
    x = RNG.normal(size=(203, 4, 6)).astype(np.float32)
    keras.utils.set_random_seed(3)
    model = keras.Sequential([layers.GRU(7, unroll=unroll), layers.Dense(2)])
    model(x)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(tf.sin(model(x)), 1))
        return [loss], tape.gradient(loss, model.trainable_variables)

    start = [variable.numpy() for variable in model.variables]
    expected = check(model, alone(step, (x,)), start)
    check(model, eager(step, (x,)), start, expected)


STATEFUL: dict[str, Callable[[], Any]] = {
    "SimpleRNN": lambda: layers.SimpleRNN(4, stateful=True),
    "LSTM": lambda: layers.LSTM(4, stateful=True, unroll=True),
    "GRU": lambda: layers.GRU(4, stateful=True),
    "GRU, reset before": lambda: layers.GRU(4, stateful=True, reset_after=False),
    "Bidirectional": lambda: layers.Bidirectional(layers.LSTM(4, stateful=True)),
    "stacked cells": lambda: layers.RNN(
        [layers.LSTMCell(4), layers.SimpleRNNCell(4)], stateful=True
    ),
}


@pytest.mark.parametrize("name", STATEFUL)
def test_states_of_the_batch_keep_the_bits_on_any_replicas(name: str) -> None:
    rows, series = 7, RNG.normal(size=(21, SIZE, 3)).astype(np.float32)
    targets = RNG.normal(size=(21, 2)).astype(np.float32)
    found = []
    for replicas in (1, 2, 3, 8):
        keras.utils.set_random_seed(3)
        with tf.distribute.MirroredStrategy(replicas=replicas).scope():
            model = keras.Sequential(
                [keras.Input(batch_shape=(rows, SIZE, 3)), STATEFUL[name](), layers.Dense(2)]
            )
            model.compile(keras.optimizers.Adam(0.05), "mse")
        history = model.fit(series, targets, rows, epochs=2, shuffle=False, verbose=0).history
        found.append((history["loss"], [v.numpy() for v in model.variables]))
    (losses, values), *others = found
    for other_losses, other_values in others:
        assert losses == other_losses
        for value, other in zip(values, other_values, strict=True):
            np.testing.assert_array_equal(value, other)
