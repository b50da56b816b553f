"""Updates outside of functions are compiled from the third one on, with the bits of eager ops."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._keras import compiled_updates
from samegrad.keras import optimizers

# All that need no other optimizer and no arguments.
NAMES = ("Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "Ftrl", "Lamb", "Lion",
         "Muon", "Nadam", "RMSprop", "SGD")  # fmt: skip
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("Adam", {"amsgrad": True, "clipnorm": 0.5}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("SGD", {"use_ema": True, "ema_overwrite_frequency": 2}),
    ("Adam", {"gradient_accumulation_steps": 2}),
    ("Adam", {"learning_rate": optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)}),
]
STEPS = 6


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows with each compiled program, to its number of variables."""
    made: list[int] = []
    compile_update = compiled_updates._compiled

    def noted(optimizer: Any, update: Any, variables: Any) -> Callable[..., Any]:
        made.append(len(variables))
        return compile_update(optimizer, update, variables)

    monkeypatch.setattr(compiled_updates, "_compiled", noted)
    return made


def variables(dtype: str = "float32") -> list[tf.Variable]:
    rng = np.random.default_rng(1)
    return [tf.Variable(rng.normal(size=shape).astype(dtype)) for shape in ((3, 4), (4,), ())]


def gradients(of: list[tf.Variable], step: int) -> list[tf.Tensor]:
    rng = np.random.default_rng(step)
    return [tf.constant(rng.normal(size=v.shape).astype(v.dtype.name)) for v in of]


def state_after(optimizer: Any, weights: list[tf.Variable], steps: int = STEPS) -> list[bytes]:
    for step in range(steps):
        optimizer.apply_gradients(zip(gradients(weights, step), weights, strict=True))
    return state(optimizer, weights)


def state(optimizer: Any, weights: list[tf.Variable]) -> list[bytes]:
    return [np.asarray(v).tobytes() for v in [*weights, *optimizer.variables]]


def by_ops(optimizer: Any, weights: list[tf.Variable], steps: int = STEPS) -> list[bytes]:
    tf.config.run_functions_eagerly(True)
    try:
        return state_after(optimizer, weights, steps)
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_are_those_of_eager_ops(
    compiled: list[int], name: str, options: dict[str, Any], dtype: str
) -> None:
    if name == "Muon" and dtype == "float64":
        pytest.skip("Keras multiplies float64 by float32 there")
    make = getattr(optimizers, name)
    found = state_after(make(**options), variables(dtype))
    assert compiled == [3]
    assert found == by_ops(make(**options), variables(dtype))
    assert compiled == [3]


def test_a_changed_attribute_is_read(compiled: list[int]) -> None:
    def train(run: Callable[..., Any]) -> list[bytes]:
        weights, optimizer = variables(), optimizers.Adam(0.1)
        run(optimizer, weights, 4)
        optimizer.beta_1 = 0.5
        run(optimizer, weights, 4)
        optimizer.learning_rate = 0.01
        return run(optimizer, weights, 2)

    assert train(state_after) == train(by_ops)
    assert compiled == [3, 3]  # the learning rate is an argument


def test_sets_of_variables_have_programs_of_their_own(compiled: list[int]) -> None:
    def train(run: Callable[..., Any]) -> list[bytes]:
        weights, optimizer = variables(), optimizers.Adam(0.1)
        optimizer.build(weights)
        for _ in range(4):
            run(optimizer, weights[:1], 1)
            run(optimizer, weights[1:], 1)
        return state(optimizer, weights)

    assert train(state_after) == train(by_ops)
    assert compiled == [1, 2]


def test_variables_that_join_later_are_updated(compiled: list[int]) -> None:
    def train(run: Callable[..., Any]) -> list[bytes]:
        weights, optimizer = variables(), optimizers.Adam(0.1)
        run(optimizer, weights[:2], 4)
        return run(optimizer, weights, 4)

    assert train(state_after) == train(by_ops)
    assert compiled == [2, 3]


def test_a_variable_without_gradient_stays(compiled: list[int]) -> None:
    weights, optimizer = variables(), optimizers.Adam(0.1)
    before = weights[1].numpy().tobytes()
    for step in range(4):
        given = gradients(weights, step)
        optimizer.apply_gradients(zip([given[0], None, given[2]], weights, strict=True))
    assert weights[1].numpy().tobytes() == before
    assert compiled == [2]


def test_restored_state_is_used(compiled: list[int]) -> None:
    weights, optimizer = variables(), optimizers.Adam(0.1)
    state_after(optimizer, weights, 3)
    values = [v.numpy() for v in weights]
    optimizer.save_own_variables(store := {})
    expected = state_after(optimizer, weights, 2)
    optimizer.load_own_variables(store)
    for v, value in zip(weights, values, strict=True):
        v.assign(value)
    assert state_after(optimizer, weights, 2) == expected
    assert compiled == [3]


def test_an_update_of_the_program_runs_in_each_step(compiled: list[int]) -> None:
    calls = []

    class Own(optimizers.SGD):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            calls.append(float(gradient))
            super().update_step(gradient, variable, learning_rate)

    v, optimizer = tf.Variable(1.0), Own(0.1)
    for step in range(5):
        optimizer.apply_gradients([(tf.constant(float(step)), v)])
    assert calls == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert compiled == []


def test_an_update_under_a_tape_is_differentiated(compiled: list[int]) -> None:
    v, optimizer = tf.Variable(1.0), optimizers.SGD(0.5)
    x = tf.constant(2.0)
    for _ in range(5):
        v.assign(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            optimizer.apply_gradients([(x * x, v)])
            loss = v * 3.0
        assert float(v) == -1.0
        del loss, tape
    assert compiled == []


def test_an_optimizer_is_freed_with_its_programs(compiled: list[int]) -> None:
    weights, optimizer = variables(), optimizers.Adam(0.1)
    state_after(optimizer, weights, 4)
    gone = weakref.ref(optimizer), weakref.ref(weights[0])
    before = len(compiled_updates._programs)
    del optimizer, weights
    gc.collect()
    assert [each() for each in gone] == [None, None]
    assert len(compiled_updates._programs) < before


def test_programs_of_an_optimizer_are_few(compiled: list[int]) -> None:
    v, optimizer = tf.Variable(1.0), optimizers.SGD(0.5, momentum=0.5)
    for i in range(20):
        optimizer.momentum = 0.5 + i / 100
        for _ in range(3):
            optimizer.apply_gradients([(tf.constant(1.0), v)])
    assert len(compiled) == 20
    programs = compiled_updates._programs.get(optimizer)
    assert programs is not None and len(programs) <= 8
