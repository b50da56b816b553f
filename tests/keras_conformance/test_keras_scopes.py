"""An interrupt in a scope of Keras leaves no scope on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from inject import NO_INSTRUCTIONS, count_instructions, run_injected
from long_interrupts import places
from program import scopes_of_keras

import samegrad as tf
from samegrad import keras
from samegrad.keras import layers

X = np.ones((4, 3), "float32")


def layer_call() -> Callable[[], object]:
    layer = layers.Dense(2, activation="relu", dtype="mixed_float16")
    return lambda: layer(tf.constant(X))


def model_call() -> Callable[[], object]:
    model = keras.Sequential([layers.Dense(2), layers.Dropout(0.5), layers.Dense(1)])
    return lambda: model(tf.constant(X), training=True)


def functional() -> Callable[[], object]:
    def make() -> object:
        given = keras.Input((3,))
        return keras.Model(given, layers.Dense(2)(given) + 1.0)

    return make


def update() -> Callable[[], object]:
    variable = keras.Variable([1.0, 2.0])
    optimizer = keras.optimizers.AdamW()
    return lambda: optimizer.apply([tf.constant([1.0, 1.0])], [variable])


def loss_call() -> Callable[[], object]:
    loss = keras.losses.MeanSquaredError()
    return lambda: loss(X, X)


def metric() -> Callable[[], object]:
    return lambda: keras.metrics.Mean().update_state(1.0)


def copied() -> Callable[[], object]:
    config = keras.Sequential([keras.Input((3,)), layers.Dense(2)]).get_config()
    return lambda: keras.Sequential.from_config(config)


def trained() -> Callable[[], object]:
    model = keras.Sequential([layers.Dense(1)])
    model.compile("adam", "mse")
    return lambda: model.fit(X, X[:, :1], batch_size=2, verbose=0)


CALLS = [layer_call, model_call, functional, update, loss_call, metric, copied, trained]


class _AtExits:
    """Raises at the beginning of one of the calls that end a scope of Keras."""

    _ENDS = ("__exit__", "_maybe_reset_call_context")

    def __init__(self, at: int) -> None:
        self.count, self._at = 0, at

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if code.co_name in self._ENDS and "keras" in code.co_filename:
            self.count += 1
            if self.count == self._at:
                raise KeyboardInterrupt


def interrupted_at_ends(prepare: Callable[[], Callable[[], object]]) -> Iterator[None]:
    """The call, interrupted at the end of one scope after the other, until there are no more."""
    for at in range(1, 200):
        call, ends = prepare(), _AtExits(at)
        sys.settrace(ends)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        if ends.count < at:
            assert at > 1, "the call has no scopes"
            return
        yield


@pytest.mark.parametrize("prepare", CALLS)
def test_an_interrupt_at_the_end_of_a_scope(prepare: Callable[[], Callable[[], object]]) -> None:
    for _ in interrupted_at_ends(prepare):
        assert scopes_of_keras() == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("prepare", CALLS)
def test_an_interrupt_anywhere(
    prepare: Callable[[], Callable[[], object]], error: type[BaseException]
) -> None:
    prepare()()  # what is imported now is not interrupted
    if not (total := count_instructions(prepare())):
        pytest.skip(NO_INSTRUCTIONS)
    for at in places(total, 25, seed=0):
        run_injected(prepare(), at, error)
        assert scopes_of_keras() == {}, f"at {at} of {total}"


def test_scopes_of_the_program_stay() -> None:
    layer = layer_call()
    with keras.name_scope("mine"), keras.utils.custom_object_scope({"own": layer}):
        run_injected(layer, 900)
        assert keras.Variable(1.0, name="v").path == "mine/v"
        assert keras.saving.get_registered_object("own") is layer
    assert keras.Variable(1.0, name="v").path == "v" and scopes_of_keras() == {}


def test_layers_track_again_after_an_interrupt() -> None:
    for _ in interrupted_at_ends(functional):
        layer = layers.Layer()
        layer.inner = layers.Dense(1)
        assert layer._layers == [layer.inner]
