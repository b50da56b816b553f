"""Vectors of length 1."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._tensor.axes import axes_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def l2_normalize(x: TensorLike, axis: Any = None, epsilon: float = 1e-12,
                 name: str | None = None, dim: Any = None) -> Tensor:  # fmt: skip
    """Scale to a Euclidean norm of 1 along axes: x / sqrt(max(sum(x * x), epsilon)).

    Args:
        x: A tensor of floats.
        axis: One axis or several; None: all.
        epsilon: The least sum of squares to divide by.
        name: Ignored.
        dim: An older name of `axis`.

    Returns:
        A tensor of the shape and dtype of `x`.

    Example:
        >>> l2_normalize([3.0, 4.0]).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    tensor = convert_to_tensor(x)
    axes = axes_of(tensor, dim if axis is None else axis)
    total = _ops.reduce_sum(_ops.square(tensor), axes=axes, keepdims=True)
    return tensor * _ops.rsqrt(_ops.maximum(total, convert_to_tensor(epsilon, tensor._dtype)))
