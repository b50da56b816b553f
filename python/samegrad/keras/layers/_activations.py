"""Activation functions as layers."""

from __future__ import annotations

from typing import Any

from samegrad._tensor import Tensor
from samegrad.keras import activations
from samegrad.keras.layers._layer import Layer


class Activation(Layer):
    """A function of each element.

    Args:
        activation: A name or a function.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: There is no such name.

    Example:
        >>> Activation("relu")([-1.0, 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs: Tensor) -> Tensor:
        return self.activation(inputs)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "activation": activations.serialize(self.activation)}


class ReLU(Layer):
    """max(x, 0), with a slope below, a maximum and a threshold if wanted.

    Args:
        max_value: Larger results are cut to it.
        negative_slope: Slope below the threshold.
        threshold: Below it, the result is negative_slope * (x - threshold).
        **kwargs: As of `Layer`.

    Raises:
        ValueError: An argument is negative.

    Example:
        >>> ReLU(max_value=1.0)([-1.0, 2.0]).numpy()
        array([0., 1.], dtype=float32)
    """

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if min(max_value or 0.0, negative_slope, threshold) < 0:
            raise ValueError(
                "[ReLU] max_value, negative_slope and threshold must not be negative: got "
                f"{max_value}, {negative_slope} and {threshold}."
            )
        self.max_value = max_value
        self.negative_slope = negative_slope
        self.threshold = threshold

    def call(self, inputs: Tensor) -> Tensor:
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)

    def get_config(self) -> dict[str, Any]:
        names = ("max_value", "negative_slope", "threshold")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}


class LeakyReLU(Layer):
    """x where it is positive, alpha * x elsewhere.

    Args:
        alpha: Slope of the negative side, at least 0.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: `alpha` is negative.

    Example:
        >>> LeakyReLU(alpha=0.5)([-1.0, 2.0]).numpy()
        array([-0.5,  2. ], dtype=float32)
    """

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if alpha is None or alpha < 0:
            raise ValueError(f"[LeakyReLU] alpha must not be negative: got {alpha}.")
        self.alpha = alpha

    def call(self, inputs: Tensor) -> Tensor:
        return activations.leaky_relu(inputs, self.alpha)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "alpha": self.alpha}


class ELU(Layer):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (Clevert et al., 2015).

    Args:
        alpha: Minus the limit on the negative side.
        **kwargs: As of `Layer`.

    Example:
        >>> ELU()([-1.0, 2.0]).numpy().round(4)
        array([-0.6321,  2.    ], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Tensor) -> Tensor:
        return activations.elu(inputs, self.alpha)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "alpha": self.alpha}


class Softmax(Layer):
    """exp(x) divided by its sum along an axis.

    Args:
        axis: Along which the results add up to 1.
        **kwargs: As of `Layer`.

    Example:
        >>> Softmax()([[0.0, 0.0]]).numpy()
        array([[0.5, 0.5]], dtype=float32)
    """

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Tensor) -> Tensor:
        return activations.softmax(inputs, self.axis)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "axis": self.axis}
