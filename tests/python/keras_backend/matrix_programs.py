"""Steps over shares of a batch, and the same steps on one device without a strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras_programs import keras, shared

import samegrad as tf

SHARES = [[4, 4], [3, 2], [1, 0], [2, 1, 1, 1]]
Step = Callable[..., dict[str, Any]]


def public_classes(module: Any) -> set[str]:
    """The names of the public classes of a module of Keras."""
    return {
        name for name, value in vars(module).items() if isinstance(value, type) and name[0] != "_"
    }


def total(sizes: Sequence[int]) -> int:
    """How many examples the replicas have together."""
    return sum(sizes)


def on_one_device(step: Step, arrays: dict[str, Any]) -> dict[str, Any]:
    """What a step returns for the whole batch, eagerly and without a strategy."""
    tensors = {name: tf.convert_to_tensor(array) for name, array in arrays.items()}
    return {name: np.asarray(value) for name, value in step(**tensors).items()}


def on_replicas(
    step: Step, arrays: dict[str, Any], sizes: Sequence[int], *, traced: bool = True
) -> dict[str, Any]:
    """The sums over the replicas of what a step returns for their shares."""
    strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))

    def run(**parts: Any) -> dict[str, Any]:
        found = strategy.run(step, kwargs=parts)
        return {name: strategy.reduce("SUM", part, axis=None) for name, part in found.items()}

    parts = {name: shared(array, sizes) for name, array in arrays.items()}
    found = (tf.function(run) if traced else run)(**parts)
    return {name: np.asarray(value) for name, value in found.items()}


def assert_near(found: dict[str, Any], wanted: dict[str, Any], who: Any = "") -> None:
    """Each value is as wanted to 1e-12 of the largest number in it."""
    assert found.keys() == wanted.keys(), who
    wrong = {}
    for name, value in wanted.items():
        scale = max(1.0, float(np.max(np.abs(value), initial=0.0)))
        equal = found[name].shape == value.shape
        if not equal or not np.allclose(
            found[name], value, rtol=0, atol=1e-12 * scale, equal_nan=True
        ):
            wrong[name] = (found[name].tolist(), value.tolist())
    assert not wrong, (who, wrong)


def assert_finite(values: dict[str, Any], who: Any = "") -> None:
    """A comparison of what is no number would show nothing."""
    wrong = [name for name, value in values.items() if not np.all(np.isfinite(value))]
    assert not wrong, (who, wrong)


def masked(tensor: Any, mask: Any) -> Any:
    """The tensor with a mask of Keras; None is none."""
    if mask is not None:
        keras.src.backend.set_keras_mask(tensor, mask)
    return tensor
