"""The shape of a model's input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad._dtypes import DTypeLike
from samegrad._tensor import Tensor
from samegrad.keras.layers._layer import Layer


class InputLayer(Layer):
    """Says what shape a `Sequential` gets, so that it has its weights before the first call.

    Args:
        input_shape: Sizes of one example.
        batch_size: Not used: any number of examples will do.
        dtype: Of the input.
        name: Of the layer.

    Raises:
        ValueError: No shape is given.

    Example:
        >>> InputLayer(input_shape=(28, 28, 1)).batch_input_shape
        (None, 28, 28, 1)
    """

    def __init__(
        self,
        input_shape: Sequence[int | None] | None = None,
        batch_size: int | None = None,
        dtype: DTypeLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        if input_shape is None and "batch_input_shape" not in kwargs:
            raise ValueError("[InputLayer] input_shape is needed, e.g. input_shape=(28, 28, 1).")
        if input_shape is not None:
            kwargs["input_shape"] = input_shape
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.built = True

    @property
    def batch_input_shape(self) -> tuple[int | None, ...]:
        """The shape with None for the examples in front."""
        return self._batch_input_shape or ()

    def call(self, inputs: Tensor) -> Tensor:
        return inputs


def Input(  # noqa: N802 - TensorFlow's name
    shape: Sequence[int | None] | None = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: DTypeLike | None = None,
) -> InputLayer:
    """The input of a `Sequential`, as its first element.

    Args:
        shape: Sizes of one example.
        batch_size: Not used: any number of examples will do.
        name: Of the layer.
        dtype: Of the input.

    Returns:
        An `InputLayer`.

    Raises:
        ValueError: No shape is given.

    Example:
        >>> import samegrad as tf
        >>> model = tf.keras.Sequential([tf.keras.Input(shape=(3,)), tf.keras.layers.Dense(2)])
        >>> model.count_params()
        8
    """
    return InputLayer(shape, batch_size, dtype, name)
