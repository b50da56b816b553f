"""Sums from which moments follow."""

from __future__ import annotations

from typing import Any

from samegrad._ops.arrays import cast, shape
from samegrad._ops.gather import gather
from samegrad._tensor.axes import axes_of
from samegrad._tensor.tensor import Tensor, TensorLike, alike, convert_to_tensor, match
from samegrad.math import reduce_prod, reduce_sum, square
from samegrad.nn._normalization import batch_normalization

__all__ = [
    "batch_norm_with_global_normalization",
    "normalize_moments",
    "sufficient_statistics",
]


def sufficient_statistics(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Compute the sums from which `normalize_moments` computes the mean and the variance.

    Args:
        x: A tensor of floats.
        axes: The axes, negative from the last.
        shift: A value near the mean, which is subtracted before; None: 0.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        The number of elements, their sum, the sum of their squares, and the shift or None.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> count, total, squares, _ = sufficient_statistics([1.0, 2.0, 3.0], [0])
        >>> float(count), float(total), float(squares)
        (3.0, 6.0, 14.0)
    """
    value = convert_to_tensor(x)
    over = [axis % value._rank for axis in axes_of(value, axes)]
    count = cast(reduce_prod(gather(shape(value), over)), value.dtype)
    moved = None if shift is None else match(shift, value)
    near = value if moved is None else value - moved
    return count, reduce_sum(near, over, keepdims), reduce_sum(square(near), over, keepdims), moved


def normalize_moments(
    counts: TensorLike,
    mean_ss: TensorLike,
    variance_ss: TensorLike,
    shift: Any,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the mean and the variance from the sums of `sufficient_statistics`.

    Args:
        counts: The number of elements.
        mean_ss: The sum of the elements, less the shift.
        variance_ss: The sum of their squares.
        shift: The shift, or None.
        name: Ignored.

    Returns:
        The mean and the variance.

    Example:
        >>> mean, variance = normalize_moments(2.0, 4.0, 10.0, None)
        >>> float(mean), float(variance)
        (2.0, 1.0)
    """
    count, total, squares = alike(counts, mean_ss, variance_ss)
    near = total / count
    variance: Tensor = squares / count - square(near)
    return (near if shift is None else near + match(shift, total)), variance


def batch_norm_with_global_normalization(
    input: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    beta: TensorLike,
    gamma: TensorLike,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """Normalize by a given mean and variance: the older name of `batch_normalization`.

    Args:
        input: A tensor of floats.
        mean: The mean, broadcast with `input`.
        variance: The variance, broadcast with `input`.
        beta: The offset.
        gamma: The scale.
        variance_epsilon: A small number, against division by 0.
        scale_after_normalization: False ignores the scale.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Example:
        >>> x = batch_norm_with_global_normalization([3.0], 1.0, 4.0, 0.5, 2.0, 0.0, True)
        >>> x.numpy()
        array([2.5], dtype=float32)
    """
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)
