"""Layers of several inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from samegrad import _core
from samegrad._tensor import Tensor
from samegrad.keras.layers._layer import Layer

_ops = _core.ops


class _Merge(Layer):
    """Base of the layers that take a list of tensors."""

    def _check(self, inputs: Any) -> Sequence[Tensor]:
        if not isinstance(inputs, list | tuple) or len(inputs) < 2:
            raise ValueError(
                f"[{self.name}] a list of at least two tensors is needed: got "
                f"{type(inputs).__name__}."
            )
        return inputs


class Add(_Merge):
    """The sum of several tensors, broadcasting.

    Raises:
        ValueError: Fewer than two are given, or the shapes do not fit.

    Example:
        >>> import numpy as np
        >>> Add()([np.ones(1), np.ones(1)]).numpy()
        array([2.], dtype=float32)
    """

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        return reduce(_ops.add, self._check(inputs))


class Concatenate(_Merge):
    """Several tensors one after the other along an axis.

    Args:
        axis: Along which.
        **kwargs: As of `Layer`.

    Raises:
        ValueError: Fewer than two are given, or the other sizes differ.

    Example:
        >>> import numpy as np
        >>> Concatenate()([np.zeros((2, 1)), np.ones((2, 3))]).shape
        (2, 4)
    """

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        return _ops.concat(*self._check(inputs), axis=self.axis)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "axis": self.axis}
