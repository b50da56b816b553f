"""Any function as a layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from samegrad._tensor import Tensor
from samegrad.keras.layers._layer import Layer


class Lambda(Layer):
    """A function without weights.

    Args:
        function: Takes the input, and `training` if it has such a parameter.
        output_shape: Not used: the shape follows from the function.
        arguments: Further keyword arguments of the function.
        **kwargs: As of `Layer`.

    Example:
        >>> Lambda(lambda x: x * 2.0)([1.0]).numpy()
        array([2.], dtype=float32)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.function = function
        self.arguments = dict(arguments or {})

    def call(self, inputs: Tensor, training: bool | None = None) -> Any:
        given = dict(self.arguments)
        if "training" in inspect.signature(self.function).parameters:
            given["training"] = training
        return self.function(inputs, **given)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {**config, "function": self.function, "arguments": self.arguments}
