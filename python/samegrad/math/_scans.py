"""Sums and products of the elements up to each one."""

from __future__ import annotations

from samegrad import _core
from samegrad._tensor.axes import axis_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def cumsum(x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False,
           name: str | None = None) -> Tensor:  # fmt: skip
    """Compute the cumulative sum along an axis.

    A long sum is made of blocks, so its rounding errors grow slowly. Later elements never change
    it. Inside `run`, a sum along the batch axis is over this replica's examples.

    Args:
        x: A tensor of numbers with at least one axis.
        axis: The axis, negative from the last.
        exclusive: Exclude each element from its own sum: the first sum is 0.
        reverse: Sum from the last element to the first.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> cumsum([1.0, 2.0, 3.0]).numpy()
        array([1., 3., 6.], dtype=float32)
        >>> cumsum([1.0, 2.0, 3.0], exclusive=True, reverse=True).numpy()
        array([5., 3., 0.], dtype=float32)
    """
    value = convert_to_tensor(x)
    return _ops.cumsum(value, axis=axis_of(value, axis), exclusive=exclusive, reverse=reverse)


def cumprod(x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False,
            name: str | None = None) -> Tensor:  # fmt: skip
    """Compute the cumulative product along an axis.

    Derivatives of any order are right where elements are 0. Inside `run`, a product along the batch
    axis is over this replica's examples.

    Args:
        x: A tensor of numbers with at least one axis.
        axis: The axis, negative from the last.
        exclusive: Exclude each element from its own product: the first product is 1.
        reverse: Multiply from the last element to the first.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> cumprod([2.0, 3.0, 4.0]).numpy()
        array([ 2.,  6., 24.], dtype=float32)
        >>> cumprod([2.0, 3.0, 4.0], exclusive=True).numpy()
        array([1., 2., 6.], dtype=float32)
    """
    value = convert_to_tensor(x)
    return _ops.cumprod(value, axis=axis_of(value, axis), exclusive=exclusive, reverse=reverse)
