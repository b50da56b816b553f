"""What tests of the backend's functions share: traces with any number of examples, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import tree

import samegrad as tf


def arrays(result: Any) -> list[Any]:
    """The tensors of a structure as arrays."""
    return [np.asarray(x) for x in tree.flatten(result)]


def same_when_traced(function: Callable[..., Any], *xs: Any, tolerance: float = 1e-6) -> None:
    """A traced function, whose number of examples is not known, returns what eager code does."""
    signature = [tf.TensorSpec((None, *x.shape[1:]), x.dtype) for x in map(np.asarray, xs)]
    traced = tf.function(function, input_signature=signature)
    for eager, found in zip(arrays(function(*xs)), arrays(traced(*xs)), strict=True):
        assert found.dtype == eager.dtype
        np.testing.assert_allclose(found, eager, rtol=tolerance, atol=tolerance)


def check_gradients(function: Callable[..., Any], *xs: Any, tolerance: float = 1e-6) -> None:
    """The gradients of weighted sums of the results are those of central differences."""
    points = [tf.constant(np.asarray(x, "float64")) for x in xs]
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=x.shape) for x in arrays(function(*points))]

    def total(*values: Any) -> Any:
        results = tree.flatten(function(*values))
        return sum(tf.reduce_sum(y * w) for y, w in zip(results, weights, strict=True))

    with tf.GradientTape() as tape:
        tape.watch(points)
        value = total(*points)
    for i, found in enumerate(tape.gradient(value, points)):
        np.testing.assert_allclose(
            found.numpy(), _differences(total, points, i), rtol=tolerance, atol=tolerance
        )


def _differences(total: Callable[..., Any], points: list[Any], which: int) -> Any:
    base = points[which].numpy()
    slopes = np.zeros_like(base)
    for place in np.ndindex(*base.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = base.copy()
            moved[place] += step
            values = [tf.constant(moved) if i == which else x for i, x in enumerate(points)]
            ends.append(float(total(*values)))
        slopes[place] = (ends[0] - ends[1]) / 2e-5
    return slopes
