"""Loops are differentiable to any order."""

import numpy as np
import pytest

import samegrad as tf

rng = np.random.default_rng(8)


def loop(x, rounds):
    def body(i, h):
        return i + 1, tf.sin(h) * x + tf.cast(i, x.dtype) * h

    return tf.while_loop(lambda i, h: i < rounds, body, [tf.constant(0), x])[1]


def unrolled(x, rounds):
    h = x
    for i in range(rounds):
        h = tf.sin(h) * x + float(i) * h
    return h


def derivatives(make, values, rounds, order):
    @tf.function
    def program(x):
        def walk(k):
            if k == 0:
                return tf.reduce_sum(make(x, rounds) ** 2)
            with tf.GradientTape() as t:
                t.watch(x)
                y = walk(k - 1)
            g = t.gradient(y, x)
            return tf.reduce_sum(g * g) if k < order else g

        return walk(order)

    return program(tf.constant(values)).numpy()


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_a_loop_has_the_derivatives_of_its_rounds_written_out(rounds, order):
    values = rng.normal(size=11) * 0.3
    expected = derivatives(unrolled, values, rounds, order)
    assert np.allclose(derivatives(loop, values, rounds, order), expected, rtol=1e-9)


def test_weights_that_the_loop_reads():
    w = tf.Variable(rng.normal(size=(4, 4)) * 0.4)
    x = tf.constant(rng.normal(size=(9, 4)))

    def penalty(written_out):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as t:
                h, i = x, tf.constant(0)
                if written_out:
                    for _ in range(4):
                        h = tf.tanh(h @ w)
                else:
                    while i < 4:
                        h = tf.tanh(h @ w)
                        i += 1
                y = tf.reduce_sum(h * h)
            g = t.gradient(y, w)
            loss = tf.reduce_sum(g * g) + y
        return outer.gradient(loss, w)

    found = tf.function(lambda: penalty(False))().numpy()
    assert np.allclose(found, tf.function(lambda: penalty(True))().numpy(), rtol=1e-9)


def test_loops_in_loops():
    @tf.function
    def program(x, written_out):
        def inner(h):
            return tf.sin(h) * x

        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as t:
                t.watch(x)
                if written_out:
                    h = x
                    for _ in range(3):
                        for _ in range(2):
                            h = inner(h)
                        h = h * h + x
                else:
                    h, i = x, tf.constant(0)
                    while i < 3:
                        j = tf.constant(0)
                        while j < 2:
                            h = inner(h)
                            j += 1
                        h = h * h + x
                        i += 1
                y = tf.reduce_sum(h)
            g = t.gradient(y, x)
            loss = tf.reduce_sum(g * g * g)
        return outer.gradient(loss, x)

    x = tf.constant(rng.normal(size=7) * 0.5)
    found, expected = program(x, False).numpy(), program(x, True).numpy()
    assert np.allclose(found, expected, rtol=1e-9)


def test_two_gradients_of_one_loop():
    @tf.function
    def program(x, make):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as t:
                t.watch(x)
                h = loop(x, 4) if make else unrolled(x, 4)
                a, b = tf.reduce_sum(h), tf.reduce_sum(h * h)
            total = tf.reduce_sum(t.gradient(a, x) * t.gradient(b, x))
        return outer.gradient(total, x)

    x = tf.constant(rng.normal(size=5) * 0.3)
    assert np.allclose(program(x, True).numpy(), program(x, False).numpy(), rtol=1e-9)


def test_rounds_of_each_replica():
    strategy = tf.distribute.MirroredStrategy(replicas=3)

    def step(make):
        n = tf.distribute.get_replica_context().replica_id_in_sync_group
        x = tf.cast(n, tf.float64) * 0.2 + 0.5
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as t:
                t.watch(x)
                y = make(x, n)
            g = t.gradient(y, x)
        return outer.gradient(g, x)

    def looped(x, n):
        return tf.while_loop(
            lambda i, h: i <= tf.cast(n, tf.int32),
            lambda i, h: (i + 1, tf.sin(h) * x + h * h),
            [tf.constant(0), x],
        )[1]

    found = tf.function(lambda: strategy.run(step, (looped,)))()
    for n, g in enumerate(found.values):
        x = tf.constant(n * 0.2 + 0.5, tf.float64)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as t:
                t.watch(x)
                h = x
                for _ in range(n + 1):
                    h = tf.sin(h) * x + h * h
            g2 = t.gradient(h, x)
        assert np.isclose(float(g), float(outer.gradient(g2, x)), rtol=1e-9)


def test_draws_in_rounds_are_the_same_in_the_second_derivative():
    @tf.function
    def program(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as t:
                t.watch(x)
                h, i, factors = x, tf.constant(0), tf.ones_like(x)
                while i < 3:
                    r = tf.random.uniform([5], dtype=tf.float64) + 0.5
                    h, factors = h * r, factors * r
                    i += 1
                y = tf.reduce_sum(h**3) / 3.0
            g = t.gradient(y, x)  # factors^3 x^2
        return outer.gradient(g, x), 2.0 * factors**3 * x

    second, expected = program(tf.constant(rng.normal(size=5)))
    assert np.allclose(second.numpy(), expected.numpy(), rtol=1e-12)
