"""Functions that are traced once for all lengths, beside one trace for each length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import samegrad as tf
from samegrad._base.tree import flatten
from samegrad._tensor.per_replica import PerReplica

LENGTHS = (3, 5, 700, 2, 4)


def values(result: Any) -> list[np.ndarray]:
    """All tensors of a result, of all replicas."""
    parts = []
    for leaf in flatten(result):
        parts += leaf.values if isinstance(leaf, PerReplica) else [leaf]
    return [np.array(part.numpy()) if hasattr(part, "numpy") else part for part in parts]


def same_bits(a: Any, b: Any) -> bool:
    """Whether two results are equal to the bit."""
    first, second = values(a), values(b)
    return len(first) == len(second) and all(
        np.shape(x) == np.shape(y) and np.asarray(x).tobytes() == np.asarray(y).tobytes()
        for x, y in zip(first, second, strict=True)
    )


def text(rng: np.random.Generator, rows: int, length: int) -> np.ndarray:
    """Numbers of sentences of one length."""
    return rng.normal(size=(rows, length)).astype(np.float32)


class Traced:
    """A function that is traced for open sizes, and for each shape by itself.

    Args:
        fn: The function.
        specs: Of its arguments, with None.
    """

    def __init__(self, fn: Callable[..., Any], *specs: tf.TensorSpec) -> None:
        self.runs = 0
        self._fn, self._specs = fn, specs

        def counted(*args: Any) -> Any:
            self.runs += 1
            return fn(*args)

        self.open = tf.function(counted, input_signature=list(specs))

    def alone(self, *arrays: np.ndarray) -> Any:
        """A function with numbers for all sizes but that of the examples."""
        specs = [
            tf.TensorSpec([known and size for known, size in _pairs(spec, array)], spec.dtype)
            for spec, array in zip(self._specs, arrays, strict=True)
        ]
        return tf.function(self._fn, input_signature=specs)

    def check(self, calls: Sequence[Sequence[np.ndarray]], state: Sequence[Any] = ()) -> None:
        """The same bits as one trace for each length; each call begins with this state."""
        before = [variable.numpy() for variable in state]
        for arrays in calls:
            tensors = [tf.constant(array) for array in arrays]
            alone = self.alone(*arrays)
            results = []
            for function in (self.open, alone):
                for variable, value in zip(state, before, strict=True):
                    variable.assign(value)
                tf.random.set_seed(3)
                results.append(function(*tensors))
            assert same_bits(*results), [np.shape(array) for array in arrays]


def _pairs(spec: tf.TensorSpec, array: np.ndarray) -> list[tuple[Any, int]]:
    """Of each axis: whether its size becomes a number, and the size."""
    open_axes = [size is None for size in spec.shape]
    first = open_axes and open_axes[0]
    return [
        (None if axis == 0 and first else True, size) for axis, size in enumerate(np.shape(array))
    ]
