"""Sums and products of the elements up to each one."""

from __future__ import annotations

from samegrad import _core
from samegrad._tensor.axes import axis_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def cumsum(x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False,
           name: str | None = None) -> Tensor:  # fmt: skip
    """The sum of the elements up to each one along an axis, in x's dtype.

    A long sum is made of blocks, so its rounding grows slowly; what comes after an element never
    changes it. Inside `run`, a sum along the examples is over this replica's.

    Args:
        x: Numbers of any shape but ().
        axis: Along which; negative from the last.
        exclusive: Each element without itself: the first sum is 0.
        reverse: From the last element to the first.
        name: Ignored.

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
    """The product of the elements up to each one along an axis, in x's dtype.

    Derivatives of any order are right where elements are 0, too. Inside `run`, a product along the
    examples is over this replica's.

    Args:
        x: Numbers of any shape but ().
        axis: Along which; negative from the last.
        exclusive: Each element without itself: the first product is 1.
        reverse: From the last element to the first.
        name: Ignored.

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
