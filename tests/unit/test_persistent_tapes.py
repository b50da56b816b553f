"""Gradients that a persistent tape gives many times: its record stays as long as the program's."""

from __future__ import annotations

import resource

import numpy as np
import pytest

import samegrad as tf


def test_many_gradients_keep_no_memory() -> None:
    x = tf.Variable(np.ones(1 << 20, np.float32))  # 4 MiB
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(x * x * x)
    tape.gradient(y, x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):  # 400 MiB of gradients, and as much of products
        tape.gradient(y, x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_later_gradients_are_equal() -> None:
    x, v = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sin(x) * v + x
    first = [g.numpy() for g in tape.gradient(y, [x, v])]
    for _ in range(3):
        again = tape.gradient(y, [x, v])
        np.testing.assert_array_equal([g.numpy() for g in again], first)


def test_a_tape_that_goes_on_reads_gradients_as_constants() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    slope = tape.gradient(y, x)
    with tape:
        z = y * slope + x
    assert float(tape.gradient(z, x)) == 2 * 3.0 * 6.0 + 1.0
    assert float(tape.gradient(z, x)) == 37.0
    assert tape.gradient(slope, x) is None
    assert float(tape.gradient(y, x)) == 6.0


def test_seeds_are_no_values_of_a_tape_that_goes_on() -> None:
    x, seed = tf.constant(3.0), tf.constant(10.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x, output_gradients=seed)) == 60.0
    with tape:
        others = [x * float(i) for i in range(5)]  # values where the seed was
        z = others[4] * seed
        tape.watch(seed)
        w = seed * seed
    assert float(tape.gradient(z, x)) == 40.0
    assert float(tape.gradient(w, seed)) == 20.0
    assert float(tape.gradient(y, x, output_gradients=seed)) == 60.0
    assert tape.gradient(w, x) is None


def test_unknown_sources_stay_unknown() -> None:
    x, other = tf.constant(3.0), tf.constant(5.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, other) is None
    with tape:
        z = y * other
    assert float(tape.gradient(z, x)) == 30.0
    assert tape.gradient(z, other) is None


def test_a_function_of_the_program_may_keep_what_it_is_given() -> None:
    kept = []

    @tf.custom_gradient
    def twice(x: tf.Tensor) -> tuple[tf.Tensor, object]:
        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            kept.append(upstream)
            return upstream * 2.0

        return x * 2.0, gradient

    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = twice(x) * 5.0
    for _ in range(3):
        assert float(tape.gradient(y, x)) == 10.0
    with tape:
        z = x * kept[0] + x * x + kept[1] * kept[2]
    assert float(tape.gradient(z, x)) == 11.0
    assert float(z) == 15.0 + 9.0 + 25.0


@pytest.mark.parametrize("persistent", [False, True])
def test_an_outer_tape_records_the_backward_pass(persistent: bool) -> None:
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=persistent) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = x * x * x
        slope = inner.gradient(y, x)
        again = inner.gradient(y, x)
        total = slope + again
    assert float(outer.gradient(total, x)) == 2 * 6 * 3.0
    assert float(inner.gradient(y, x)) == 27.0


def test_compiled_steps_are_differentiated_again() -> None:
    f = tf.function(lambda x: tf.exp(x) * x)
    x = tf.constant([0.5, 1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x) * x
    first = tape.gradient(y, x).numpy()
    for _ in range(3):
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), first)
    with tape:
        z = f(y)
    np.testing.assert_allclose(
        tape.gradient(z, x), (np.exp(y) * y + np.exp(y)).numpy() * first, rtol=1e-6
    )
