"""Constraints that left Keras with version 3."""

from __future__ import annotations

from typing import Any

from keras.src import ops
from keras.src.constraints.constraints import Constraint
from keras.src.saving import register_keras_serializable

__all__ = ["RadialConstraint", "radial_constraint"]


@register_keras_serializable("samegrad")
class RadialConstraint(Constraint):  # type: ignore[misc]
    """Every square ring around the middle of a kernel has one value.

    Which entry of the diagonal a ring has is as in TensorFlow 2.15, where the class comes from.

    Example:
        >>> import numpy as np
        >>> kernel = np.arange(9.0).reshape(3, 3, 1, 1)
        >>> np.asarray(RadialConstraint()(kernel))[:, :, 0, 0]
        array([[4., 4., 4.],
               [4., 0., 4.],
               [4., 4., 4.]])
    """

    def __call__(self, w: Any) -> Any:
        """The kernel with equal values on each ring.

        Args:
            w: [height, width, channels, filters], height and width equal.

        Raises:
            ValueError: Another shape.
        """
        shape = tuple(w.shape)
        if len(shape) != 4 or shape[0] != shape[1]:
            raise ValueError(
                f"[RadialConstraint] kernels are [size, size, channels, filters]: got {shape}; "
                "use it for the kernel of a Conv2D layer with equal sides."
            )
        size = shape[0]
        return ops.stack(
            [
                ops.stack([w[place, place] for place in _places(size, row)], axis=0)
                for row in range(size)
            ],
            axis=0,
        )


def _places(size: int, row: int) -> list[int]:
    """For each column, the place on the diagonal whose value the ring has."""
    start = size // 2

    def ring(place: int) -> int:
        return place - start if place >= start else start - (1 - size % 2) - place

    def diagonal(number: int) -> int:
        # As TensorFlow does it: of an odd size, each value is one ring further out.
        return start - 1 if number == 0 else start + number - size % 2

    return [diagonal(max(ring(row), ring(column))) for column in range(size)]


radial_constraint = RadialConstraint
