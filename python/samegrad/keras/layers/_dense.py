"""The fully connected layer."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._examples import examples_axis, reshape_sizes
from samegrad._tensor import Tensor
from samegrad.keras.layers._affine import AffineLayer, positive

_ops = _core.ops


class Dense(AffineLayer):
    """activation(inputs @ kernel + bias) over the last axis.

    Shapes: [n, ..., inputs] to [n, ..., units]; kernel [inputs, units], bias [units].

    Args:
        units: How many outputs.
        activation: A name, a function, or None.
        use_bias: Whether a bias is added.
        kernel_initializer: First values of the kernel.
        bias_initializer: First values of the bias.
        kernel_regularizer: Loss of the kernel, or None.
        bias_regularizer: Loss of the bias, or None.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: `units` is not positive; the input has no last axis of the right size.

    Example:
        >>> Dense(3)([[1.0, 2.0]]).shape
        (1, 3)
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            **kwargs,
        )
        self.units = positive("Dense", "units", units)

    def build(self, input_shape: Any) -> None:
        if len(input_shape) < 2 or input_shape[-1] is None:
            raise ValueError(
                f"[{self.name}] the input must be [n, ..., inputs]: got shape "
                f"{tuple(input_shape)}; reshape it."
            )
        self._add_weights((int(input_shape[-1]), self.units))
        self.built = True

    def call(self, inputs: Tensor) -> Tensor:
        kernel = self._kernel_tensor()
        if inputs._rank < 2 or inputs._shape[-1] != kernel._shape[0]:
            raise ValueError(
                f"[{self.name}] the input's last axis must have {kernel._shape[0]} elements, as at "
                f"the first call: got shape {tuple(inputs._shape)}."
            )
        if inputs._rank == 2:
            return self._finish(_ops.matmul(inputs, kernel))
        if examples_axis(inputs) not in (None, 0):
            return self._finish(_ops.matmul(inputs, kernel))
        # One product for all rows of all examples.
        sizes = reshape_sizes(inputs)
        rows = _ops.reshape(inputs, shape=(min(sizes[0], -1), sizes[-1]))
        product = self._finish(_ops.matmul(rows, kernel))
        return _ops.reshape(product, shape=(*sizes[:-1], self.units))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}
