"""Losses as older programs spell them: names, and lists of numbers in the place of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src import tree
from keras.src.losses.losses import huber, kl_divergence, log_cosh

__all__ = ["huber_loss", "kl_divergence", "log_cosh"]

huber_loss = huber


def arrays(*values: Any) -> tuple[Any, ...]:
    """The values; a list of numbers, which Keras 3 takes for a structure, as an array.

    Args:
        *values: Labels and predictions.

    Example:
        >>> arrays([[1, 0]], None)
        (array([[1, 0]]), None)
    """
    return tuple(_array(value) for value in values)


def _array(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    leaves = tree.flatten(value)
    if not leaves or not all(isinstance(leaf, int | float | np.number) for leaf in leaves):
        return value
    found = np.asarray(value)
    return found.astype("float32") if found.dtype == np.float64 else found
