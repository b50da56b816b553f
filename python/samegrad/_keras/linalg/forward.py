"""keras.backend.linalg: derivatives along a direction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keras.src import tree

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """Return a function's result, and its derivative along the tangents.

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
    with tf.autodiff.ForwardAccumulator(points, directions) as accumulator:
        made = fun(*tree.pack_sequence_as(primals, points))
        value, aux = made if has_aux else (made, None)
        results: list[Tensor] = [convert_to_tensor(x) for x in tree.flatten(value)]
    flat = accumulator.jvp(results, unconnected_gradients="zero")
    derivative = tree.pack_sequence_as(value, flat)
    return (value, derivative, aux) if has_aux else (value, derivative)
