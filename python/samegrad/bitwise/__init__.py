"""Whole numbers by their bits, under the names of tf.bitwise. Operands broadcast; no gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair

_ops = _core.ops

__all__ = ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]


def _whole(who: str, x: TensorLike, y: TensorLike) -> tuple[Tensor, Tensor]:
    """Return two integer operands with one dtype and shape."""
    a, b = pair(x, y)
    if not as_dtype(a._dtype).is_integer:
        raise TypeError(f"[{who}] needs integers: got {a._dtype}; cast them.")
    if tuple(a.shape) == tuple(b.shape):
        return a, b
    return a + _ops.full_like(b, value=0), b + _ops.full_like(a, value=0)


def bitwise_and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the bitwise and of two integer tensors.

    Args:
        x: A tensor of integers.
        y: A tensor of the same dtype that broadcasts with `x`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The tensors do not hold integers of one dtype.

    Example:
        >>> bitwise_and([12, 5], 6).numpy()
        array([4, 4], dtype=int32)
    """
    return _ops.bitwise_and(*_whole("bitwise_and", x, y))


def bitwise_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the bitwise or of two integer tensors.

    Args:
        x: A tensor of integers.
        y: A tensor of the same dtype that broadcasts with `x`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The tensors do not hold integers of one dtype.

    Example:
        >>> bitwise_or([12, 5], 6).numpy()
        array([14,  7], dtype=int32)
    """
    return _ops.bitwise_or(*_whole("bitwise_or", x, y))


def bitwise_xor(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the bitwise exclusive or of two integer tensors.

    Args:
        x: A tensor of integers.
        y: A tensor of the same dtype that broadcasts with `x`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The tensors do not hold integers of one dtype.

    Example:
        >>> bitwise_xor([12, 5], 6).numpy()
        array([10,  3], dtype=int32)
    """
    return _ops.bitwise_xor(*_whole("bitwise_xor", x, y))


def invert(x: TensorLike, name: str | None = None) -> Tensor:
    """Invert each bit of an integer tensor.

    Args:
        x: A tensor of integers.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold integers.

    Example:
        >>> invert([0, 5]).numpy()
        array([-1, -6], dtype=int32)
    """
    value = convert_to_tensor(x)
    dtype = as_dtype(value._dtype)
    if not dtype.is_integer:
        raise TypeError(f"[invert] needs integers: got {value._dtype}; cast them.")
    ones = -1 if int(dtype.min) < 0 else int(dtype.max)
    return _ops.bitwise_xor(*_whole("invert", value, convert_to_tensor(ones, value._dtype)))


def left_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Shift the bits of x to the left by y positions.

    Args:
        x: A tensor of integers.
        y: A tensor of the same dtype that broadcasts with `x`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The tensors do not hold integers of one dtype.

    Example:
        >>> left_shift([1, 3], 2).numpy()
        array([ 4, 12], dtype=int32)
    """
    return _ops.shift_left(*_whole("left_shift", x, y))


def right_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Shift the bits of x to the right by y positions.

    Args:
        x: A tensor of integers.
        y: A tensor of the same dtype that broadcasts with `x`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The tensors do not hold integers of one dtype.

    Example:
        >>> right_shift([12, -8], 2).numpy()
        array([ 3, -2], dtype=int32)
    """
    return _ops.shift_right(*_whole("right_shift", x, y))


if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
