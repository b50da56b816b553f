"""Inverses and solutions of complex matrices: NumPy's, with the slopes of finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf

RNG = np.random.default_rng(5)


def _numbers(*shape):
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


A, B = _numbers(2, 3, 3), _numbers(2, 3, 2)
ADJOINT = np.swapaxes(A.conj(), -1, -2)
FUNCTIONS = {
    "inv": (lambda a: tf.linalg.inv(a), np.linalg.inv(A)),
    "inv of adjoints": (lambda a: tf.linalg.inv(a, adjoint=True), np.linalg.inv(ADJOINT)),
    "solve": (lambda a: tf.linalg.solve(a, B), np.linalg.solve(A, B)),
    "solve of adjoints": (
        lambda a: tf.linalg.solve(a, B, adjoint=True), np.linalg.solve(ADJOINT, B),
    ),
    "solve for one right side": (lambda a: tf.linalg.solve(a, B[0]), np.linalg.solve(A, B[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_equations_are_solved(name):
    function, expected = FUNCTIONS[name]
    for run in (function, tf.function(function)):
        found = run(tf.constant(A))
        assert found.dtype == tf.complex128
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_complex_equations_are_finite_differences(name):
    function, weights = FUNCTIONS[name][0], _numbers(*FUNCTIONS[name][1].shape)

    def loss(a):
        return tf.reduce_sum(tf.math.real(function(a) * weights))

    x = tf.constant(A)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(x)
    found = tape.gradient(value, x).numpy()
    for index in [(0, 0, 1), (1, 2, 0), (1, 1, 1)]:
        slopes = []
        for step in (1e-6, 1e-6j):
            moved = np.zeros_like(A)
            moved[index] = step
            slopes.append(float(loss(tf.constant(A + moved)) - loss(tf.constant(A - moved))) / 2e-6)
        np.testing.assert_allclose(found[index], complex(*slopes), rtol=1e-6, atol=1e-7)


def test_complex64_stays():
    found = tf.linalg.inv(A.astype("complex64"))
    assert found.dtype == tf.complex64
    np.testing.assert_allclose(found.numpy(), np.linalg.inv(A), rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tf.linalg.inv(A[0, :2]), ValueError, r"square: got shape \(2, 3\)"),
        (lambda: tf.linalg.solve(A[0, 0], B), ValueError, r"2 axes: got shape \(3,\)"),
        (lambda: tf.linalg.inv(0j * A), tf.errors.InvalidArgumentError, "must have an inverse"),
        (lambda: tf.linalg.det(A), TypeError, r"\[det\] real numbers are needed"),
    ],
)
def test_wrong_complex_matrices_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
