"""Locally connected layers, which left Keras with version 3: each place has a kernel of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src import activations, constraints, initializers, ops, regularizers
from keras.src.backend import standardize_data_format
from keras.src.layers.input_spec import InputSpec
from keras.src.layers.layer import Layer
from keras.src.saving import register_keras_serializable
from keras.src.utils.argument_validation import standardize_tuple

__all__ = ["LocallyConnected1D", "LocallyConnected2D"]
# Arguments that are kept by their names, and what makes them of names and back.
_PARTS = {
    "activation": activations,
    "kernel_initializer": initializers,
    "bias_initializer": initializers,
    "kernel_regularizer": regularizers,
    "bias_regularizer": regularizers,
    "activity_regularizer": regularizers,
    "kernel_constraint": constraints,
    "bias_constraint": constraints,
}


class _LocallyConnected(Layer):  # type: ignore[misc]
    """Base class of both layers.

    Args:
        filters: Channels of the output.
        kernel_size: Of each kernel.
        strides: From one place to the next.
        padding: "valid".
        data_format: "channels_last" or "channels_first".
        use_bias: Whether each place has a bias for each filter.
        implementation: 1: the weights are one kernel for each place.
        **kwargs: Activation, initializers, regularizers and constraints as of `Conv2D`, and those
            of all layers.

    Raises:
        ValueError: Another padding or implementation.
    """

    _rank = 0

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        use_bias: bool = True,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        given = {name: kwargs.pop(name, None) for name in _PARTS}
        given["kernel_initializer"] = given["kernel_initializer"] or "glorot_uniform"
        given["bias_initializer"] = given["bias_initializer"] or "zeros"
        for name, kind in _PARTS.items():
            given[name] = kind.get(given[name])
        super().__init__(activity_regularizer=given.pop("activity_regularizer"), **kwargs)
        if padding.lower() != "valid" or implementation != 1:
            raise ValueError(
                f"[{type(self).__name__}] padding is 'valid' and implementation 1: got "
                f"padding={padding!r}, implementation={implementation}; put a ZeroPadding layer "
                "before it."
            )
        self.filters = filters
        self.kernel_size = standardize_tuple(kernel_size, self._rank, "kernel_size")
        self.strides = standardize_tuple(strides, self._rank, "strides")
        self.data_format = standardize_data_format(data_format)
        self.use_bias = use_bias
        for name, value in given.items():
            setattr(self, name, value)
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def build(self, input_shape: Any) -> None:
        """Create a kernel, and a bias, for each position.

        Args:
            input_shape: Shape of the input, [n, sizes..., channels], or with the channels at axis
                1.

        Raises:
            ValueError: A size is not known, or smaller than the kernel.
        """
        channels, sizes = self._parts(input_shape)
        places = self._places(sizes)
        if channels is None or None in places or min(places) < 1:
            raise ValueError(
                f"[{type(self).__name__}] all sizes are known, and not below those of the kernel "
                f"{self.kernel_size}: got the input shape {tuple(input_shape)}."
            )
        count = int(np.prod(self.kernel_size)) * channels
        self.kernel = self.add_weight(
            shape=(int(np.prod(places)), count, self.filters),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
            name="kernel",
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(*places, self.filters),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                name="bias",
            )

    def call(self, inputs: Any) -> Any:
        """Apply to each position of the input its own kernel.

        Args:
            inputs: Tensor of shape [n, sizes..., channels], or with the channels at axis 1.

        Returns:
            Tensor of shape [n, sizes..., filters], or with the filters at axis 1.
        """
        first = self.data_format == "channels_first"
        x = ops.moveaxis(inputs, 1, -1) if first else inputs
        channels, sizes = self._parts(inputs.shape)
        places = self._places(sizes)
        for axis, (size, step, count) in enumerate(
            zip(self.kernel_size, self.strides, places, strict=True)
        ):
            at = np.arange(count)[:, None] * step + np.arange(size)
            x = ops.take(x, at, axis=1 + 2 * axis)
        # Places first, then what a kernel sees, in the order that its weights have.
        seen = [2 + 2 * axis for axis in range(self._rank)]
        last = 2 * self._rank + 1
        inner = [last, *seen] if first else [*seen, last]
        x = ops.transpose(x, [0, *(1 + 2 * axis for axis in range(self._rank)), *inner])
        x = ops.reshape(x, (-1, int(np.prod(places)), int(np.prod(self.kernel_size)) * channels))
        x = ops.reshape(ops.einsum("npk,pkf->npf", x, self.kernel), (-1, *places, self.filters))
        x = ops.moveaxis(x, -1, 1) if first else x
        if self.bias is not None:
            # As in TensorFlow, which reads it in another order where the channels come first.
            x = x + (ops.reshape(self.bias, (self.filters, *places)) if first else self.bias)
        return self.activation(x)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the shape of the output.

        Args:
            input_shape: Shape of the input, [n, sizes..., channels], or with the channels at axis
                1.

        Returns:
            Shape of the output.
        """
        places = self._places(self._parts(input_shape)[1])
        if self.data_format == "channels_first":
            return (input_shape[0], self.filters, *places)
        return (input_shape[0], *places, self.filters)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        own = {
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "strides": self.strides,
            "padding": "valid",
            "data_format": self.data_format,
            "use_bias": self.use_bias,
            "implementation": 1,
        }
        parts = {name: kind.serialize(getattr(self, name)) for name, kind in _PARTS.items()}
        return {**super().get_config(), **own, **parts}

    def _parts(self, shape: Any) -> tuple[Any, tuple[Any, ...]]:
        """The number of channels, and the sizes."""
        if self.data_format == "channels_first":
            return shape[1], tuple(shape[2:])
        return shape[-1], tuple(shape[1:-1])

    def _places(self, sizes: Any) -> tuple[Any, ...]:
        return tuple(
            None if size is None else (size - kernel) // step + 1
            for size, kernel, step in zip(sizes, self.kernel_size, self.strides, strict=True)
        )


@register_keras_serializable("samegrad")
class LocallyConnected1D(_LocallyConnected):
    """A Conv1D whose kernel is another at each place.

    Example:
        >>> import numpy as np
        >>> LocallyConnected1D(4, 3)(np.ones((2, 10, 5), "float32")).shape
        (2, 8, 4)
    """

    _rank = 1


@register_keras_serializable("samegrad")
class LocallyConnected2D(_LocallyConnected):
    """A Conv2D whose kernel is another at each place.

    Example:
        >>> import numpy as np
        >>> LocallyConnected2D(4, (3, 2), strides=2)(np.ones((2, 7, 6, 5), "float32")).shape
        (2, 3, 3, 4)
    """

    _rank = 2
