"""Elementwise functions of one tensor."""

from __future__ import annotations

from samegrad import _core
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def abs(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the absolute value of each element.

    Args:
        x: A tensor of numbers of any shape. Complex numbers give their moduli.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; floats for complex numbers.

    Raises:
        TypeError: The tensor holds bools.

    Example:
        >>> abs([-1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
    """
    return _ops.abs(convert_to_tensor(x))


def acos(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the arccosine of each element.

    Args:
        x: A tensor of floats in [-1, 1].
        name: Ignored.

    Returns:
        The angles in radians, in [0, π]; NaN outside of [-1, 1].

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> acos([1.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.acos(convert_to_tensor(x))


def acosh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse hyperbolic cosine of each element.

    Args:
        x: A tensor of floats, at least 1.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 1.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> acosh([1.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.acosh(convert_to_tensor(x))


def asin(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the arcsine of each element.

    Args:
        x: A tensor of floats in [-1, 1].
        name: Ignored.

    Returns:
        The angles in radians, in [-π/2, π/2]; NaN outside of [-1, 1].

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> asin([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.asin(convert_to_tensor(x))


def asinh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse hyperbolic sine of each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> asinh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.asinh(convert_to_tensor(x))


def atan(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the arctangent of each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        The angles in radians, in [-π/2, π/2], in the dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> atan([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.atan(convert_to_tensor(x))


def atanh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse hyperbolic tangent of each element.

    Args:
        x: A tensor of floats in [-1, 1].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; infinite at -1 and 1, NaN outside.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> atanh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.atanh(convert_to_tensor(x))


def ceil(x: TensorLike, name: str | None = None) -> Tensor:
    """Round each element up to the nearest integer.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        Integers as floats, in the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> ceil([1.2]).numpy()
        array([2.], dtype=float32)
    """
    return _ops.ceil(convert_to_tensor(x))


def cos(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the cosine of each element.

    Args:
        x: Angles in radians: floats or complex numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds neither floats nor complex numbers.

    Example:
        >>> cos([0.0]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.cos(convert_to_tensor(x))


def cosh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the hyperbolic cosine of each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> cosh([0.0]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.cosh(convert_to_tensor(x))


def erf(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Gauss error function 2/√π ∫ exp(-t²) dt, from 0 to each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> erf([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.erf(convert_to_tensor(x))


def exp(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the exponential of each element.

    Args:
        x: A tensor of floats or complex numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds neither floats nor complex numbers.

    Example:
        >>> exp([0.0]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.exp(convert_to_tensor(x))


def expm1(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute exp(x) - 1 of each element, without cancellation near 0.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> expm1([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.expm1(convert_to_tensor(x))


def floor(x: TensorLike, name: str | None = None) -> Tensor:
    """Round each element down to the nearest integer.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        Integers as floats, in the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> floor([1.8]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.floor(convert_to_tensor(x))


def is_finite(x: TensorLike, name: str | None = None) -> Tensor:
    """Test each element for being neither infinite nor NaN.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A bool tensor of the shape of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> is_finite([1.0]).numpy()
        array([ True])
    """
    return _ops.is_finite(convert_to_tensor(x))


def is_inf(x: TensorLike, name: str | None = None) -> Tensor:
    """Test each element for being infinite.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A bool tensor of the shape of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> is_inf([1.0]).numpy()
        array([False])
    """
    return _ops.is_inf(convert_to_tensor(x))


def is_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Test each element for being NaN.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A bool tensor of the shape of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> is_nan([1.0]).numpy()
        array([False])
    """
    return _ops.is_nan(convert_to_tensor(x))


def log(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the natural logarithm of each element.

    Args:
        x: A tensor of floats or complex numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; -inf at 0, and NaN for negative floats.

    Raises:
        TypeError: The tensor holds neither floats nor complex numbers.

    Example:
        >>> log([1.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.log(convert_to_tensor(x))


def log1p(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute log(1 + x) of each element, without cancellation near 0.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> log1p([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.log1p(convert_to_tensor(x))


def logical_not(x: TensorLike, name: str | None = None) -> Tensor:
    """Negate each element of a bool tensor.

    Args:
        x: A bool tensor of any shape.
        name: Ignored.

    Returns:
        A bool tensor of the shape of `x`.

    Raises:
        TypeError: The tensor does not hold bools.

    Example:
        >>> logical_not([True]).numpy()
        array([False])
    """
    return _ops.logical_not(convert_to_tensor(x))


def negative(x: TensorLike, name: str | None = None) -> Tensor:
    """Negate each element: -x.

    Args:
        x: A tensor of numbers of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds bools.

    Example:
        >>> negative([1.0]).numpy()
        array([-1.], dtype=float32)
    """
    return _ops.neg(convert_to_tensor(x))


def reciprocal(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute 1 / x of each element.

    Args:
        x: A tensor of floats or complex numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds neither floats nor complex numbers.

    Example:
        >>> reciprocal([2.0]).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.reciprocal(convert_to_tensor(x))


def round(x: TensorLike, name: str | None = None) -> Tensor:
    """Round each element to the nearest integer, halves to the even one.

    Args:
        x: A tensor of numbers of any shape.
        name: Ignored.

    Returns:
        Integers in the shape and dtype of `x`; a tensor of integers is returned as it is.

    Raises:
        TypeError: The tensor holds bools.

    Example:
        >>> round([2.5]).numpy()
        array([2.], dtype=float32)
    """
    values = convert_to_tensor(x)
    return values if "int" in values._dtype else _ops.round(values)


def rsqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the reciprocal square root 1 / √x of each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; infinite at 0, NaN below.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> rsqrt([4.0]).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.rsqrt(convert_to_tensor(x))


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logistic function 1 / (1 + exp(-x)) of each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> sigmoid([0.0]).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.sigmoid(convert_to_tensor(x))


def sign(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the sign of each element: -1, 0 or 1, with derivative 0.

    Args:
        x: A tensor of numbers of any shape. A complex z gives z / |z|.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds bools.

    Example:
        >>> sign([-3.0]).numpy()
        array([-1.], dtype=float32)
    """
    return _ops.sign(convert_to_tensor(x))


def sin(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the sine of each element.

    Args:
        x: Angles in radians: floats or complex numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds neither floats nor complex numbers.

    Example:
        >>> sin([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.sin(convert_to_tensor(x))


def sinh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the hyperbolic sine of each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> sinh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.sinh(convert_to_tensor(x))


def softplus(features: TensorLike, name: str | None = None) -> Tensor:
    """Compute log(1 + exp(x)) of each element, without overflow.

    Args:
        features: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `features`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> softplus([-100.0]).numpy()
        array([3.8e-44], dtype=float32)
    """
    return _ops.softplus(convert_to_tensor(features))


def sqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the square root of each element.

    Args:
        x: A tensor of floats or complex numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN for negative floats.

    Raises:
        TypeError: The tensor holds neither floats nor complex numbers.

    Example:
        >>> sqrt([4.0]).numpy()
        array([2.], dtype=float32)
    """
    return _ops.sqrt(convert_to_tensor(x))


def square(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the square of each element.

    Args:
        x: A tensor of numbers of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds bools.

    Example:
        >>> square([3.0]).numpy()
        array([9.], dtype=float32)
    """
    return _ops.square(convert_to_tensor(x))


def tan(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the tangent of each element.

    Args:
        x: Angles in radians: floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> tan([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.tan(convert_to_tensor(x))


def tanh(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the hyperbolic tangent of each element.

    Args:
        x: A tensor of floats or complex numbers, of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor holds neither floats nor complex numbers.

    Example:
        >>> tanh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.tanh(convert_to_tensor(x))


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute log(sigmoid(x)) of each element, exact for large negative x.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> float(log_sigmoid(-100.0))
        -100.0
    """
    return -softplus(-convert_to_tensor(x))
