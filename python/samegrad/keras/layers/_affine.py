"""What Dense and Conv2D have in common: a kernel, a bias, an activation."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._tensor import Tensor, convert_to_tensor
from samegrad._variable import Variable
from samegrad.keras import activations, initializers, regularizers
from samegrad.keras.layers._layer import Layer

_ops = _core.ops


class AffineLayer(Layer):
    """Base: activation(product of input and kernel + bias).

    Args:
        use_bias: Whether a bias is added.
        activation: A name, a function, or None.
        kernel_initializer: First values of the kernel.
        bias_initializer: First values of the bias.
        kernel_regularizer: Loss of the kernel, or None.
        bias_regularizer: Loss of the bias, or None.
        **kwargs: As of `Layer`.

    Example:
        >>> AffineLayer(activation="relu").get_config()["activation"]
        'relu'
    """

    def __init__(
        self,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self.use_bias = bool(use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel: Variable | None = None
        self.bias: Variable | None = None

    def _add_weights(self, kernel_shape: tuple[int, ...]) -> None:
        self.kernel = self.add_weight(
            "kernel", kernel_shape, None, self.kernel_initializer, self.kernel_regularizer, True
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", kernel_shape[-1:], None, self.bias_initializer, self.bias_regularizer, True
            )

    def _kernel_tensor(self) -> Tensor:
        return convert_to_tensor(self.kernel)

    def _finish(self, product: Tensor) -> Tensor:
        if self.bias is not None:
            product = _ops.add(product, convert_to_tensor(self.bias))
        return self.activation(product)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "activation": activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "kernel_initializer": initializers.serialize(self.kernel_initializer),
            "bias_initializer": initializers.serialize(self.bias_initializer),
            "kernel_regularizer": regularizers.serialize(self.kernel_regularizer),
            "bias_regularizer": regularizers.serialize(self.bias_regularizer),
        }


def positive(who: str, name: str, value: int) -> int:
    """The value, checked to be a positive integer.

    Raises:
        ValueError: It is not.

    Example:
        >>> positive("Dense", "units", 3)
        3
    """
    number = int(value)
    if number != value or number < 1:
        raise ValueError(f"[{who}] {name} must be positive: got {value}.")
    return number
