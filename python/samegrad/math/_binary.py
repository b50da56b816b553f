"""Elementwise functions of two tensors, which broadcast as NumPy's do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._tensor.tensor import (
    Tensor,
    TensorLike,
    _as_floats,
    _truediv,
    alike,
    convert_to_tensor,
    pair,
)
from samegrad._tensor.text import is_text, text_of

_ops = _core.ops


def add(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Add two tensors element by element.

    Args:
        x: A tensor of numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> add([1.0], 2.0).numpy()
        array([3.], dtype=float32)
    """
    return _ops.add(*pair(x, y))


def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Return the angle in radians, in (-π, π], of the point (x, y), element by element.

    Args:
        y: The second coordinates: a tensor of floats.
        x: The first coordinates: floats of the same dtype that broadcast with `y`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Example:
        >>> atan2([1.0, 0.0], 1.0).numpy().round(4)
        array([0.7854, 0.    ], dtype=float32)
    """
    return _ops.atan2(*pair(y, x))


def divide_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Divide x by y element by element, with 0 where y is 0.

    Args:
        x: A tensor of numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape; integers become floats as in `divide`.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> divide_no_nan([1.0], 0.0).numpy()
        array([0.], dtype=float32)
    """
    return _ops.div_no_nan(*_as_floats(*pair(x, y)))


def equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Test x == y element by element.

    Args:
        x: A tensor of any dtype, strings among them.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: The dtypes differ.

    Example:
        >>> equal([1.0], 1.0).numpy()
        array([ True])
    """
    if type(x) is not Tensor and is_text(x):
        return text_of(x, "equal") == y  # type: ignore[no-any-return]
    return _ops.equal(*pair(x, y))


def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Divide x by y element by element and round down to an integer.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> floordiv([7.0], 2.0).numpy()
        array([3.], dtype=float32)
    """
    return _ops.floor_div(*pair(x, y))


def floormod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the remainder of `floordiv`, with the sign of y, element by element.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> floormod([7.0], 4.0).numpy()
        array([3.], dtype=float32)
    """
    return _ops.mod(*pair(x, y))


def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Divide and round towards 0, element by element. No gradient flows through it.

    Args:
        x: Numbers of any shape.
        y: Numbers of the same dtype; they broadcast with x.
        name: Ignored.

    Returns:
        A tensor of their dtype.

    Raises:
        InvalidArgumentError: An integer is divided by 0.

    Example:
        >>> truncatediv([7, -7], 2).numpy()
        array([ 3, -3], dtype=int32)
    """
    x, y = pair(x, y)
    if not as_dtype(x._dtype).is_floating:
        rest = _ops.mod(x, y)
        up = _ops.logical_and(_ops.not_equal(rest, rest * 0), _ops.not_equal(x < 0, y < 0))
        return _ops.floor_div(x, y) + _ops.cast(up, dtype=x._dtype)
    quotient = _ops.stop_gradient(_ops.div(x, y))
    return _ops.select(quotient < 0.0, _ops.ceil(quotient), _ops.floor(quotient))


def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return what truncatediv leaves, with the sign of x, element by element.

    Args:
        x: Numbers of any shape.
        y: Numbers of the same dtype; they broadcast with x.
        name: Ignored.

    Returns:
        A tensor of their dtype.

    Raises:
        InvalidArgumentError: An integer is divided by 0.

    Example:
        >>> truncatemod([7, -7], 2).numpy()
        array([ 1, -1], dtype=int32)
    """
    x, y = pair(x, y)
    if not as_dtype(x._dtype).is_floating:
        return _ops.sub(x, _ops.mul(truncatediv(x, y), y))
    rest = _ops.mod(_ops.abs(x), _ops.abs(y))
    return _ops.select(x < 0.0, -rest, rest)


def greater(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Test x > y element by element.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> greater([1.0], 2.0).numpy()
        array([False])
    """
    return _ops.greater(*pair(x, y))


def greater_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Test x >= y element by element.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> greater_equal([1.0], 1.0).numpy()
        array([ True])
    """
    return _ops.greater_equal(*pair(x, y))


def less(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Test x < y element by element.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> less([1.0], 2.0).numpy()
        array([ True])
    """
    return _ops.less(*pair(x, y))


def less_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Test x <= y element by element.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> less_equal([1.0], 1.0).numpy()
        array([ True])
    """
    return _ops.less_equal(*pair(x, y))


def logical_and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logical and of two bool tensors, element by element.

    Args:
        x: A bool tensor.
        y: A bool tensor that broadcasts with `x`.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: A tensor does not hold bools.

    Example:
        >>> logical_and([True], False).numpy()
        array([False])
    """
    return _ops.logical_and(*pair(x, y))


def logical_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logical or of two bool tensors, element by element.

    Args:
        x: A bool tensor.
        y: A bool tensor that broadcasts with `x`.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: A tensor does not hold bools.

    Example:
        >>> logical_or([True], False).numpy()
        array([ True])
    """
    return _ops.logical_or(*pair(x, y))


def logical_xor(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logical exclusive or of two bool tensors, element by element.

    Args:
        x: A bool tensor.
        y: A bool tensor that broadcasts with `x`.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: A tensor does not hold bools.

    Example:
        >>> logical_xor([True], True).numpy()
        array([False])
    """
    return _ops.logical_xor(*pair(x, y))


def maximum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return the larger of two elements, element by element.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> maximum([1.0], 2.0).numpy()
        array([2.], dtype=float32)
    """
    return _ops.maximum(*pair(x, y))


def minimum(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return the smaller of two elements, element by element.

    Args:
        x: A tensor of real numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> minimum([1.0], 2.0).numpy()
        array([1.], dtype=float32)
    """
    return _ops.minimum(*pair(x, y))


def multiply(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Multiply two tensors element by element.

    Args:
        x: A tensor of numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> multiply([2.0], 3.0).numpy()
        array([6.], dtype=float32)
    """
    return _ops.mul(*pair(x, y))


def not_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Test x != y element by element.

    Args:
        x: A tensor of any dtype, strings among them.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A bool tensor of the broadcast shape.

    Raises:
        TypeError: The dtypes differ.

    Example:
        >>> not_equal([1.0], 1.0).numpy()
        array([False])
    """
    if type(x) is not Tensor and is_text(x):
        return text_of(x, "not_equal") != y  # type: ignore[no-any-return]
    return _ops.not_equal(*pair(x, y))


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Raise x to the power y, element by element.

    Args:
        x: A tensor of numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.
        InvalidArgumentError: An integer has a negative power.

    Example:
        >>> pow([2.0], 3.0).numpy()
        array([8.], dtype=float32)
    """
    return _ops.pow(*pair(x, y))


def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute (x - y)² element by element.

    Args:
        x: A tensor of numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> squared_difference([1.0], 3.0).numpy()
        array([4.], dtype=float32)
    """
    return _ops.squared_difference(*pair(x, y))


def subtract(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Subtract y from x, element by element.

    Args:
        x: A tensor of numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> subtract([1.0], 2.0).numpy()
        array([-1.], dtype=float32)
    """
    return _ops.sub(*pair(x, y))


def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Divide x by y, element by element.

    Args:
        x: A tensor of numbers.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands; integers become float64.

    Raises:
        TypeError: The dtypes differ, or are bool.

    Example:
        >>> divide([1, 2], 2).numpy()
        array([0.5, 1. ])
    """
    return _truediv(*pair(x, y))


truediv = divide
mod = floormod


def add_n(inputs: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """Add tensors from left to right.

    Args:
        inputs: A list of tensors of one shape and dtype, at least one.
        name: Ignored.

    Returns:
        A tensor of that shape and dtype.

    Raises:
        ValueError: The list is empty.

    Example:
        >>> float(add_n([1.0, 2.0, 3.0]))
        6.0
    """
    if isinstance(inputs, np.ndarray):  # all rows at once, or none where there is no memory
        inputs = convert_to_tensor(inputs)
    inputs = list(inputs)
    if not inputs:
        raise ValueError("[add_n] at least one tensor is needed: got none.")
    total, *others = alike(*inputs)
    for value in others:
        total = total + value
    return total


def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute x · log(y) element by element, with 0 where x is 0.

    Args:
        x: A tensor of floats.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> xlogy([0.0, 2.0], [0.0, 1.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    return _ops.xlogy(*pair(x, y))
