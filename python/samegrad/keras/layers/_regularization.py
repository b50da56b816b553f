"""Layers that act during training only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad import nn
from samegrad._tensor import Tensor
from samegrad.keras.layers._layer import Layer


class Dropout(Layer):
    """In training, sets elements to 0 by chance and scales the others by 1 / (1 - rate).

    The draw belongs to the example, not to the replica: with any number of replicas the same
    elements are dropped.

    Args:
        rate: Probability that an element is dropped, in [0, 1).
        noise_shape: Sizes of the draw, as of `nn.dropout`.
        seed: The draw's own seed, beside the global one.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: The rate is not in [0, 1).

    Example:
        >>> Dropout(0.5)([[1.0, 2.0]], training=False).numpy()
        array([[1., 2.]], dtype=float32)
    """

    def __init__(
        self,
        rate: float,
        noise_shape: Sequence[int | None] | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not 0.0 <= rate < 1.0:
            raise ValueError(f"[Dropout] rate must be in [0, 1): got {rate}.")
        self.rate = rate
        self.noise_shape = noise_shape
        self.seed = seed

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        if not training:
            return inputs
        return nn.dropout(inputs, self.rate, self.noise_shape, self.seed)

    def get_config(self) -> dict[str, Any]:
        names = ("rate", "noise_shape", "seed")
        return {**super().get_config(), **{name: getattr(self, name) for name in names}}
