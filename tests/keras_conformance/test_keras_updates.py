"""Updates of all variables in one go have the bits of Keras's own, variable by variable."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from keras_overhead import examples
from keras_pairs import PAIRS, SMALL

import samegrad as tf
from samegrad.keras import optimizers

CASES: list[tuple[Any, dict[str, Any]]] = [
    (optimizers.Adam, {}),
    (optimizers.Adam, {"amsgrad": True, "learning_rate": 0.1, "epsilon": 0.01}),
    (optimizers.Adam, {"clipnorm": 0.5, "use_ema": True}),
    (optimizers.Adam, {"gradient_accumulation_steps": 2}),
    (optimizers.AdamW, {"weight_decay": 0.1}),
    (optimizers.SGD, {}),
    (optimizers.SGD, {"momentum": 0.9}),
    (optimizers.SGD, {"momentum": 0.9, "nesterov": True, "learning_rate": 0.1}),
]
SHAPES = [(3, 2), (2,), (), (0, 4)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """What `update_all` said, call by call."""
    from samegrad._keras import optimizer, updates

    said: list[bool] = []

    def update_all(*args: Any) -> bool:
        said.append(updates.update_all(*args))
        return said[-1]

    monkeypatch.setattr(optimizer, "update_all", update_all)
    return said


def of_keras(cls: Any) -> Any:
    """The same optimizer, updated variable by variable."""

    def update_step(self: Any, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super(own, self).update_step(gradient, variable, learning_rate)

    own = type(cls.__name__, (cls,), {"update_step": update_step})
    return own


def trained(
    cls: Any, options: dict[str, Any], dtypes: tuple[str, ...], form: Callable[[Any], Any]
) -> list[bytes]:
    """The bits of variables and slots after three steps."""
    rng = np.random.default_rng(0)
    kinds = [(shape, dtypes[i % len(dtypes)]) for i, shape in enumerate(SHAPES)]
    variables = [tf.keras.Variable(rng.normal(size=s), dtype=d) for s, d in kinds]
    optimizer = cls(**options)
    step = form(lambda *gs: optimizer.apply_gradients(zip(gs, variables, strict=True)))
    for _ in range(3):
        step(*(tf.cast(tf.constant(rng.normal(size=s)), d) for s, d in kinds))
    return [np.asarray(v).tobytes() for v in (*variables, *optimizer.variables)]


@pytest.mark.parametrize("form", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtypes", [("float32",), ("float64", "float32")], ids=["one", "two"])
@pytest.mark.parametrize(("cls", "options"), CASES)
def test_the_bits_are_those_of_keras(
    cls: Any, options: dict[str, Any], dtypes: tuple[str, ...], form: Any, taken: list[bool]
) -> None:
    together = trained(cls, options, dtypes, form)
    assert taken and all(taken)
    taken.clear()
    assert trained(of_keras(cls), options, dtypes, form) == together
    assert taken and not any(taken)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_replicas_take_the_same_way_and_have_the_same_bits(
    replicas: int, taken: list[bool]
) -> None:
    def bits(cls: Any) -> list[bytes]:
        strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
        with strategy.scope():
            tf.keras.utils.set_random_seed(0)
            model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
            model.compile(optimizer=cls(0.1), loss="mse")
        x = np.random.default_rng(1).normal(size=(12, 3)).astype("float32")
        model.fit(x, x[:, :2], batch_size=5, epochs=2, shuffle=False, verbose=0)
        return [v.numpy().tobytes() for v in (*model.variables, *model.optimizer.variables)]

    together = bits(optimizers.Adam)
    assert taken and all(taken)
    assert bits(of_keras(optimizers.Adam)) == together


class OwnAssignments(optimizers.SGD):
    """Halves what it adds."""

    def assign_sub(self, variable: Any, value: Any) -> None:
        variable.assign_sub(value / 2)


class OwnVariable(tf.keras.Variable):
    """Counts what is assigned."""

    count = 0

    def assign(self, value: Any) -> Any:
        type(self).count += 1
        return super().assign(value)


def test_what_a_program_overrides_is_called(taken: list[bool]) -> None:
    variable = tf.keras.Variable([1.0, 2.0])
    OwnAssignments(1.0).apply([tf.constant([1.0, 1.0])], [variable])
    np.testing.assert_array_equal(variable, [0.5, 1.5])
    own = OwnVariable([1.0])
    optimizers.SGD(1.0).apply([tf.constant([1.0])], [own])
    assert OwnVariable.count == 1 and taken == [False]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_updated_variable_by_variable(dtype: str, taken: list[bool]) -> None:
    variable = tf.keras.Variable([1.0, 2.0], dtype=dtype)
    optimizers.SGD(0.5).apply([tf.cast([1.0, -1.0], dtype)], [variable])
    np.testing.assert_array_equal(tf.cast(variable, "float32"), [0.5, 2.5])
    assert taken == [False]


def test_a_gradient_of_another_shape_is_refused_as_ever() -> None:
    variable = tf.keras.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match="must match"):
        optimizers.SGD(1.0).apply([tf.ones((3, 2))], [variable])
    np.testing.assert_array_equal(variable, [1.0, 2.0])


def test_numbers_that_a_program_changes_between_steps_hold(taken: list[bool]) -> None:
    variable, gradient = tf.keras.Variable([0.0]), tf.constant([1.0])
    optimizer = optimizers.SGD(1.0)
    optimizer.apply([gradient], [variable])
    optimizer.learning_rate = 0.5
    optimizer.apply([gradient], [variable])
    np.testing.assert_array_equal(variable, [-1.5])
    assert taken == [True, True]


def calls_of(step: Any, batch: Any) -> int:
    """How many functions of Python the first call of a compiled step enters."""
    compiled, count = tf.function(step), 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        compiled(*batch)
    finally:
        sys.setprofile(before)
    return count


# What Keras calls beside the mathematics is mostly per layer, and per variable less than once.
@pytest.mark.parametrize(
    ("name", "most"), [("cnn", 2.1), ("normalized", 2.15), ("transformer", 2.2), ("lstm", 2.3)]
)
def test_a_first_call_enters_few_functions_more_than_that_of_the_written_step(
    name: str, most: float
) -> None:
    counts = []
    for i in range(2):  # the first one imports what is needed
        sizes = dataclasses.replace(SMALL, units=SMALL.units * (i + 1))
        pair = PAIRS[name](tf, sizes)
        batch = examples(pair.inputs), examples(pair.labels)
        counts = [calls_of(model.step, batch) for model in (pair.of_keras, pair.written)]
    assert 500 < counts[1] < counts[0] < most * counts[1]
