"""Gradients of several global batches, summed and divided once."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import all_reduce_sum


class Accumulator:
    """Sums of gradients over replicas and batches, and what they are to be divided by.

    Batches of other lengths and sizes count as much as what is in them: the mean is that of one
    batch that holds them all. In a checkpoint as `variables` of it.

    Args:
        variables: Whose gradients; one more array is kept for each.
    """

    def __init__(self, variables: list[Any]) -> None:
        self._sums = [
            tf.Variable(tf.zeros(v.shape, v.dtype), trainable=False, name=f"{v.name}_sum")
            for v in variables
        ]
        self._count = tf.Variable(np.float64(0.0), trainable=False, name="count")

    @property
    def variables(self) -> list[Any]:
        """The sums, and last what they are divided by."""
        return [*self._sums, self._count]

    def add(self, gradients: list[Any], count: Tensor) -> None:
        """Adds what the replicas have; called by each of them.

        Args:
            gradients: Of the replica's sum of losses, one per variable.
            count: The replica's share of what the sums are divided by.
        """
        sums = all_reduce_sum([*gradients, tf.cast(count, "float64")])
        for held, more in zip(self.variables, sums, strict=True):
            held.assign_add(more)

    def take(self) -> list[Tensor]:
        """The mean of all that was added since the last time; zeros if that counts nothing."""
        count = self._count.read_value()
        means = [tf.math.divide_no_nan(s.read_value(), tf.cast(count, s.dtype)) for s in self._sums]
        self.clear()
        return means

    def clear(self) -> None:
        """Forgets what was added."""
        for held in self.variables:
            held.assign(tf.zeros_like(held))
