"""keras.backend.linalg: derivatives along a direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """What a function returns, and its derivative along the tangents.

    The gradient of <u, f(x)> by x is linear in u; its own gradient by u along the tangents is what
    is wanted.

    Args:
        fun: Takes as many tensors as there are primals.
        primals: The arguments.
        tangents: As many, the direction.
        has_aux: Whether `fun` returns a pair, whose second part is handed on.
    """
    points = [convert_to_tensor(x) for x in tree.flatten(primals)]
    directions = [
        convert_to_tensor(t, p._dtype) for t, p in zip(tree.flatten(tangents), points, strict=True)
    ]
    arguments = tree.pack_sequence_as(primals, points)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            inner.watch(points)
            made = fun(*arguments)
            value, aux = made if has_aux else (made, None)
            results: list[Tensor] = [convert_to_tensor(x) for x in tree.flatten(value)]
        weights = [tf.zeros_like(x) for x in results]
        outer.watch(weights)
        slopes = inner.gradient(results, points, output_gradients=weights)
        pairs = [(g, t) for g, t in zip(slopes, directions, strict=True) if g is not None]
    found = [None] * len(weights)
    if pairs:
        gradients, along = zip(*pairs, strict=True)
        found = outer.gradient(list(gradients), weights, output_gradients=list(along))
    flat = [tf.zeros_like(x) if d is None else d for x, d in zip(results, found, strict=True)]
    derivative = tree.pack_sequence_as(value, flat)
    return (value, derivative, aux) if has_aux else (value, derivative)
