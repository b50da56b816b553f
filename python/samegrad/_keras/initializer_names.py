"""Keras's initializers under the names that TensorFlow itself has for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._keras import register

keras = register.load()
initializers = keras.initializers


@keras.saving.register_keras_serializable("samegrad")
class constant_initializer(initializers.Constant):  # type: ignore[misc,name-defined]  # noqa: N801
    """A number for all weights, or as many numbers as there are weights, in any shape.

    Example:
        >>> import samegrad as tf
        >>> tf.constant_initializer([[1.0, 2.0]])([2, 1]).numpy().ravel()
        array([1., 2.], dtype=float32)
    """

    def __call__(self, shape: Any, dtype: Any = None, **options: Any) -> Any:
        value = np.asarray(self.value)
        if not hasattr(shape, "__iter__"):
            raise TypeError(
                f"[constant_initializer] shape must be a list of sizes: got {shown(shape)}; pass "
                "[2, 3]."
            )
        sizes = tuple(shape)
        if value.size == 1 and value.ndim < 2:
            value = value.reshape(())  # for all
        elif value.shape != sizes:
            if value.size != np.prod(sizes):
                raise ValueError(
                    f"[constant_initializer] value must have one number for each of the weights of "
                    f"shape {sizes}: got {shown(self.value)}."
                )
            value = value.reshape(sizes)
        return initializers.Constant(value)(shape, dtype, **options)


ones_initializer = initializers.Ones
random_normal_initializer = initializers.RandomNormal
random_uniform_initializer = initializers.RandomUniform
zeros_initializer = initializers.Zeros

__all__ = [
    "constant_initializer", "ones_initializer", "random_normal_initializer",
    "random_uniform_initializer", "zeros_initializer",
]  # fmt: skip
