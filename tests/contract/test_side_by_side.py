"""Many small operations in one step, and large ones on plain arrays: all threads, the same bits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plans import steps_of

import samegrad as tf
from samegrad._function import trace as _trace
from samegrad.testing import assert_same_bits

COUNT, SIZE = 300, 500


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.threading.set_intra_op_parallelism_threads(0)
    _trace.OPTIONS.join_small_nodes = True


def small_variables(count: int = COUNT) -> list[Any]:
    rng = np.random.default_rng(0)
    return [tf.Variable(rng.normal(size=SIZE - i % 7).astype(np.float32)) for i in range(count)]


def train(
    replicas: int = 1, clip: bool = False, averages: bool = False
) -> tuple[list[np.ndarray], str]:
    """Variables and slots after two steps of Adam, and the plan of a step."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        variables = small_variables()
        means = [tf.Variable(np.zeros(v.shape, np.float32)) for v in variables] if averages else []
        optimizer = tf.keras.optimizers.Adam(0.1, global_clipnorm=1.0 if clip else None)

    @tf.function
    def step() -> None:
        def update() -> None:
            with tf.GradientTape() as tape:
                loss = tf.add_n([tf.reduce_sum(tf.sin(v) * v) for v in variables])
            gradients = tape.gradient(loss, variables)
            if averages:  # of what the variables were before the step
                for mean, v in zip(means, variables, strict=True):
                    mean.assign(0.9 * mean + 0.1 * v)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        strategy.run(update)

    for _ in range(2):
        step()
    return [v.numpy() for v in [*variables, *optimizer.variables, *means]], str(step.explain())


def joined(plan: str) -> list[str]:
    return steps_of(plan, "once, side by side")


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_updates_of_small_variables_are_one_step(replicas: int) -> None:
    _, plan = train(replicas)
    updates = joined(plan)[-1]
    assert len(re.findall(r"fused_elementwise .*sqrt", updates)) == COUNT


@pytest.mark.parametrize("kind", [{}, {"clip": True}, {"averages": True}, {"replicas": 2}])
def test_the_plan_without_it_has_the_same_bits(kind: Any) -> None:
    expected, plan = train(**kind)
    _trace.OPTIONS.join_small_nodes = False
    found, other = train(**kind)
    assert joined(plan) and not joined(other)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_no_bit(threads: int) -> None:
    expected, _ = train(averages=True)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    assert_same_bits(train(averages=True)[0], expected)


def test_variables_that_change_places_keep_their_numbers() -> None:
    variables = small_variables(400)
    before = [v.numpy() for v in variables]

    @tf.function
    def turn() -> None:
        values = [v.read_value() for v in variables]
        for i, v in enumerate(variables):
            other = values[i ^ 7 if (i ^ 7) < len(values) and i % 7 == (i ^ 7) % 7 else i]
            v.assign(other * 2.0)

    turn()
    for i, v in enumerate(variables):
        j = i ^ 7 if (i ^ 7) < len(before) and i % 7 == (i ^ 7) % 7 else i
        np.testing.assert_array_equal(v.numpy(), before[j] * np.float32(2))


def test_few_small_operations_are_one_step_too() -> None:
    variables = small_variables(5)
    before = [v.numpy() for v in variables]

    @tf.function
    def step() -> None:
        for v in variables:
            v.assign_sub(0.1 * v)

    step()
    (together,) = joined(str(step.explain()))
    assert together.count("fused_elementwise") == len(variables)
    assert len(step.explain().steps) == 1
    for v, old in zip(variables, before, strict=True):
        np.testing.assert_array_equal(v.numpy(), old - np.float32(0.1) * old)


X = np.random.default_rng(1).normal(size=(700, 801)).astype(np.float32)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": tf.tanh,
    "add": lambda x: x + x,
    "number": lambda x: x * 3.0,
    "column": lambda x: x - x[0],
    "row": lambda x: x - x[:, :1],
    "where": lambda x: tf.where(x > 0, x, tf.constant(-1.0)),
    "cast": lambda x: tf.cast(x, "float64"),
    "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax,
    "one row": lambda x: tf.exp(tf.reshape(x, [1, -1])),
    "three axes": lambda x: tf.reshape(x, [7, 100, 801]) * x[:100],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_large_plain_arrays_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    run = tf.function(FUNCTIONS[name])
    tf.config.threading.set_intra_op_parallelism_threads(1)
    expected = np.asarray(run(tf.constant(X)))
    for threads in (2, 3, 7):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        np.testing.assert_array_equal(np.asarray(run(tf.constant(X))), expected)
        np.testing.assert_array_equal(np.asarray(FUNCTIONS[name](tf.constant(X))), expected)


def test_filters_of_images_without_examples_have_the_same_bits_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(2)
    images = tf.constant(rng.normal(size=(9, 12, 12, 16)).astype(np.float32))
    filters = tf.Variable(rng.normal(size=(3, 3, 16, 200)).astype(np.float32))

    @tf.function
    def gradient() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(tf.nn.conv2d(images, filters, 1, "SAME")))
        return tape.gradient(loss, filters)

    tf.config.threading.set_intra_op_parallelism_threads(1)
    expected = np.asarray(gradient())
    for threads in (2, 5):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        np.testing.assert_array_equal(np.asarray(gradient()), expected)
