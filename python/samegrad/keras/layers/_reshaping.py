"""Layers that change the shape of each example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from samegrad import _core
from samegrad._examples import reshape_sizes
from samegrad._tensor import Tensor
from samegrad.keras.layers._layer import Layer
from samegrad.nn._window import check_channels_last

_ops = _core.ops


class Flatten(Layer):
    """Each example as one row of numbers.

    Shapes: [n, ...] to [n, product of the other sizes]; [n] to [n, 1].

    Args:
        data_format: "channels_last".
        **kwargs: As of `Layer`.

    Example:
        >>> import numpy as np
        >>> Flatten()(np.zeros((2, 3, 4), "float32")).shape
        (2, 12)
    """

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_channels_last("Flatten", data_format)

    def call(self, inputs: Tensor) -> Tensor:
        sizes = reshape_sizes(inputs)
        if not sizes:
            raise ValueError(f"[{self.name}] an axis of examples is needed: got shape ().")
        # The row keeps the examples itself; -1 would be ambiguous where there are none.
        return _ops.reshape(inputs, shape=(sizes[0], math.prod(sizes[1:])))


class Reshape(Layer):
    """Each example in another shape.

    Shapes: [n, ...] to [n, *target_shape].

    Args:
        target_shape: Sizes of one example; one of them may be -1 and follows from the others.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: An example has not that many elements.

    Example:
        >>> import numpy as np
        >>> Reshape((3, -1))(np.zeros((2, 12), "float32")).shape
        (2, 3, 4)
    """

    def __init__(self, target_shape: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs: Tensor) -> Tensor:
        sizes = reshape_sizes(inputs)
        elements, target = math.prod(sizes[1:]), list(self.target_shape)
        known = math.prod(size for size in target if size != -1)
        if target.count(-1) == 1 and known and elements % known == 0:
            target[target.index(-1)] = elements // known
        if math.prod(target) != elements or any(size < 0 for size in target):
            raise ValueError(
                f"[{self.name}] an example of shape {tuple(sizes[1:])} has {elements} elements, "
                f"which do not fit into target_shape={self.target_shape}."
            )
        return _ops.reshape(inputs, shape=(sizes[0], *target))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "target_shape": self.target_shape}
