"""First and second derivatives beside central differences, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import samegrad as tf

STEP = 1e-5


def weights_of(shape: Sequence[int], seed: int) -> np.ndarray:
    """Another number for each element."""
    return np.random.default_rng(seed).uniform(0.5, 1.5, size=tuple(shape))


def differences(fn: Callable[[list[np.ndarray]], float], xs: list[np.ndarray]) -> list[np.ndarray]:
    """The slope along each element of each array."""
    slopes = [np.zeros_like(x) for x in xs]
    for x, slope in zip(xs, slopes, strict=True):
        for place in np.ndindex(x.shape):
            before = x[place]
            x[place] = before + STEP
            above = fn(xs)
            x[place] = before - STEP
            slope[place] = (above - fn(xs)) / (2 * STEP)
            x[place] = before
    return slopes


def check_derivatives(
    fn: Callable[..., Any], *arrays: np.ndarray, traced: bool = False, tolerance: float = 1e-6
) -> None:
    """The gradient of Σ w · fn(x), and that of Σ v · gradient, agree with differences."""

    def value(*xs: Any) -> Any:
        y = fn(*xs)
        return tf.reduce_sum(y * weights_of(y.shape, 0))

    def first(*xs: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = value(*xs)
        return tape.gradient(y, xs, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    def of_first(*xs: Any) -> Any:
        parts = [tf.reduce_sum(g * weights_of(g.shape, k)) for k, g in enumerate(first(*xs))]
        return tf.add_n(parts)

    def second(*xs: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = of_first(*xs)
        return tape.gradient(y, xs, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    xs = [np.array(x, np.float64) for x in arrays]
    wrapped = tf.function if traced else lambda f: f
    for scalar, gradient in ((value, first), (of_first, second)):
        run = wrapped(scalar)
        expected = differences(lambda v, run=run: float(run(*map(tf.constant, v))), xs)
        found = wrapped(gradient)(*map(tf.constant, xs))
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got.numpy(), wanted, rtol=tolerance, atol=tolerance)
