"""Derivatives along a direction are those of differences, and nest."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

RNG = np.random.default_rng(5)
X, V, W = RNG.normal(size=(3, 2, 3))
TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
Accumulator = tf.autodiff.ForwardAccumulator


def program(x):
    return tf.tanh(tf.matmul(x, x, transpose_b=True)) * tf.reduce_sum(tf.exp(x), axis=1)


def differences(fn, x, v, step=1e-6):
    return (fn(x + step * v).numpy() - fn(x - step * v).numpy()) / (2 * step)


def along(x, v):
    with Accumulator(x, v) as accumulator:
        y = program(x)
    return accumulator.jvp(y)


def run(fn, traced, *operands):
    return (tf.function(fn) if traced else fn)(*map(tf.constant, operands)).numpy()


@TRACED
def test_the_derivative_along_a_direction(traced):
    np.testing.assert_allclose(run(along, traced, X, V), differences(program, X, V), rtol=1e-7)


@TRACED
def test_forwards_over_backwards_is_a_product_with_the_hessian(traced):
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(program(x))
        return tape.gradient(y, x)

    def product(x, v):
        with Accumulator(x, v) as accumulator:
            g = slope(x)
        return accumulator.jvp(g)

    expected = differences(lambda x: slope(tf.constant(x)), X, V)
    np.testing.assert_allclose(run(product, traced, X, V), expected, rtol=1e-6, atol=1e-8)


@TRACED
def test_forwards_over_forwards(traced):
    def twice(x, v, w):
        with Accumulator(x, w) as outer:
            inner = along(x, v)
        return outer.jvp(inner)

    expected = differences(lambda x: along(tf.constant(x), tf.constant(V)), X, W)
    np.testing.assert_allclose(run(twice, traced, X, V, W), expected, rtol=1e-6, atol=1e-8)


@TRACED
def test_backwards_over_forwards(traced):
    def slope(x, v):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(along(x, v))
        return tape.gradient(y, x)

    found = run(slope, traced, X, V)
    for place in np.ndindex(X.shape):
        unit = np.zeros_like(X)
        unit[place] = 1
        expected = differences(
            lambda x: tf.reduce_sum(along(tf.constant(x), tf.constant(V))), X, unit
        )
        np.testing.assert_allclose(found[place], expected, rtol=1e-6, atol=1e-7)


def test_variables_structures_and_what_is_not_connected():
    w = tf.Variable([1.0, 2.0])
    x = tf.constant([3.0, 4.0])
    with Accumulator([w, x], [tf.constant([1.0, 0.0]), tf.constant([0.0, 1.0])]) as accumulator:
        y = {"product": w * x, "square": tf.square(w), "other": tf.constant(1.0)}
        inside = accumulator.jvp(y["square"])
    found = accumulator.jvp(y)
    np.testing.assert_array_equal(found["product"].numpy(), [3, 2])
    np.testing.assert_array_equal(found["square"].numpy(), [2, 0])
    np.testing.assert_array_equal(inside.numpy(), [2, 0])
    assert found["other"] is None
    assert float(accumulator.jvp(y["other"], unconnected_gradients="zero")) == 0
    np.testing.assert_array_equal(accumulator.jvp(x).numpy(), [0, 1])


def test_a_tangent_has_the_shape_of_its_primal():
    with pytest.raises(ValueError, match=r"shape of its primal: got \(1,\) for \(2,\)"):
        Accumulator(tf.ones(2), tf.ones(1))
    with pytest.raises(ValueError, match="each primal has a tangent: got 2 and 1"):
        Accumulator([tf.ones(2), tf.ones(1)], [tf.ones(2)])
