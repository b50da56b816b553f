"""The base of all models."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._boundary import inside
from samegrad.keras.layers._calls import shape_of, traced_on
from samegrad.keras.layers._layer import Layer


class Model(Layer):
    """A layer made of layers: subclass it, make the layers in `__init__`, use them in `call`.

    Args:
        **kwargs: As of `Layer`.

    Raises:
        TypeError: Inputs and outputs are given: models are made by `Sequential` or subclassing.

    Example:
        >>> import samegrad as tf
        >>> class Perceptron(tf.keras.Model):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.hidden = tf.keras.layers.Dense(4, activation="relu")
        ...         self.out = tf.keras.layers.Dense(2)
        ...     def call(self, inputs):
        ...         return self.out(self.hidden(inputs))
        >>> model = Perceptron()
        >>> model([[1.0, 2.0, 3.0]]).shape, len(model.trainable_variables)
        ((1, 2), 4)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or "inputs" in kwargs or "outputs" in kwargs:
            raise TypeError(
                f"[{type(self).__name__}] models are made with samegrad.keras.Sequential or by "
                "subclassing samegrad.keras.Model: got inputs and outputs."
            )
        super().__init__(**kwargs)

    @property
    def layers(self) -> list[Layer]:
        """The layers one level below."""
        return self._sublayers()

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """One of `layers`, by its name or its place.

        Raises:
            ValueError: There is no such layer.
        """
        if index is not None and -len(self.layers) <= index < len(self.layers):
            return self.layers[index]
        for layer in self.layers:
            if index is None and layer.name == name:
                return layer
        raise ValueError(
            f"[{self.name}] no such layer: got name={name!r}, index={index}; there are "
            f"{', '.join(layer.name for layer in self.layers)}."
        )

    def build(self, input_shape: Any) -> None:
        """Creates all weights, by a call on an input of that shape which computes nothing.

        Args:
            input_shape: (None, sizes of one example...), or several such shapes in a list or dict.

        Raises:
            ValueError: A size other than the first is unknown.

        Example:
            >>> import samegrad as tf
            >>> model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
            >>> model.build((None, 3))
            >>> model.count_params()
            8
        """
        traced_on(self.name, input_shape, self.dtype, lambda x: self._note_output(self(x)))
        self._forget_added_losses()
        self.built = True

    def _ensure_built(self, inputs: Any) -> None:
        if inside(type(self).build) in _DEFAULT_BUILDS:
            self.built = True  # the inner layers build themselves
            return
        super()._ensure_built(inputs)

    def summary(
        self,
        line_length: int | None = None,
        print_fn: Callable[[str], object] | None = None,
    ) -> None:
        """Prints the layers with the shapes of their outputs and how many weights they hold.

        Args:
            line_length: Width of the table.
            print_fn: Called with each line, instead of printing.

        Raises:
            ValueError: The weights do not exist yet.
        """
        total = self.count_params()
        width = line_length or 65
        show = print_fn or (lambda line: print(line, file=sys.stdout))
        first, second = int(width * 0.45), int(width * 0.85)
        row = f"{{:<{first}}}{{:<{second - first}}}{{}}"
        lines = [f'Model: "{self.name}"', "_" * width, row.format("Layer", "Output shape", "Param")]
        lines.append("=" * width)
        for layer in self.layers:
            label = f"{layer.name} ({type(layer).__name__})"
            shape = "?" if layer._output_shape is None else str(layer._output_shape)
            count = layer.count_params() if layer.built else 0
            lines.append(row.format(label[: first - 1], shape, count))
        trainable = _count(self.trainable_weights)
        lines += ["=" * width, f"Total params: {total:,}", f"Trainable params: {trainable:,}"]
        lines += [f"Non-trainable params: {total - trainable:,}", "_" * width]
        for line in lines:
            show(line)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape that the model makes of an input's shape (None for the examples)."""
        return traced_on(self.name, input_shape, self.dtype, lambda x: shape_of(self(x)))


_DEFAULT_BUILDS = {Model.build}


def _count(variables: list[Any]) -> int:
    return sum(int(np.prod(v.shape, dtype=np.int64)) for v in variables)
