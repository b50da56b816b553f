"""Elementwise functions of one tensor."""

from __future__ import annotations

from samegrad import _core
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def abs(x: TensorLike, name: str | None = None) -> Tensor:
    """The absolute value of each element.

    Example:
        >>> abs([-1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
    """
    return _ops.abs(convert_to_tensor(x))


def acos(x: TensorLike, name: str | None = None) -> Tensor:
    """The angle in radians, in [0, π], whose cosine is x.

    Example:
        >>> acos([1.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.acos(convert_to_tensor(x))


def acosh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic cosine; x must be at least 1.

    Example:
        >>> acosh([1.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.acosh(convert_to_tensor(x))


def asin(x: TensorLike, name: str | None = None) -> Tensor:
    """The angle in radians, in [-π/2, π/2], whose sine is x.

    Example:
        >>> asin([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.asin(convert_to_tensor(x))


def asinh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic sine.

    Example:
        >>> asinh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.asinh(convert_to_tensor(x))


def atan(x: TensorLike, name: str | None = None) -> Tensor:
    """The angle in radians, in (-π/2, π/2), whose tangent is x.

    Example:
        >>> atan([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.atan(convert_to_tensor(x))


def atanh(x: TensorLike, name: str | None = None) -> Tensor:
    """The inverse of the hyperbolic tangent; x must lie in (-1, 1).

    Example:
        >>> atanh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.atanh(convert_to_tensor(x))


def ceil(x: TensorLike, name: str | None = None) -> Tensor:
    """The smallest whole number that is not below x.

    Example:
        >>> ceil([1.2]).numpy()
        array([2.], dtype=float32)
    """
    return _ops.ceil(convert_to_tensor(x))


def cos(x: TensorLike, name: str | None = None) -> Tensor:
    """The cosine of an angle in radians.

    Example:
        >>> cos([0.0]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.cos(convert_to_tensor(x))


def cosh(x: TensorLike, name: str | None = None) -> Tensor:
    """The hyperbolic cosine.

    Example:
        >>> cosh([0.0]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.cosh(convert_to_tensor(x))


def erf(x: TensorLike, name: str | None = None) -> Tensor:
    """The error function, 2/√π ∫ exp(-t²) dt from 0 to x.

    Example:
        >>> erf([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.erf(convert_to_tensor(x))


def exp(x: TensorLike, name: str | None = None) -> Tensor:
    """E to the power of each element.

    Example:
        >>> exp([0.0]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.exp(convert_to_tensor(x))


def expm1(x: TensorLike, name: str | None = None) -> Tensor:
    """exp(x) - 1, exact near 0.

    Example:
        >>> expm1([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.expm1(convert_to_tensor(x))


def floor(x: TensorLike, name: str | None = None) -> Tensor:
    """The largest whole number that is not above x.

    Example:
        >>> floor([1.8]).numpy()
        array([1.], dtype=float32)
    """
    return _ops.floor(convert_to_tensor(x))


def is_finite(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is neither infinite nor NaN.

    Example:
        >>> is_finite([1.0]).numpy()
        array([ True])
    """
    return _ops.is_finite(convert_to_tensor(x))


def is_inf(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is infinite.

    Example:
        >>> is_inf([1.0]).numpy()
        array([False])
    """
    return _ops.is_inf(convert_to_tensor(x))


def is_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is NaN.

    Example:
        >>> is_nan([1.0]).numpy()
        array([False])
    """
    return _ops.is_nan(convert_to_tensor(x))


def log(x: TensorLike, name: str | None = None) -> Tensor:
    """The natural logarithm; -inf for 0, NaN below.

    Example:
        >>> log([1.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.log(convert_to_tensor(x))


def log1p(x: TensorLike, name: str | None = None) -> Tensor:
    """log(1 + x), exact near 0.

    Example:
        >>> log1p([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.log1p(convert_to_tensor(x))


def logical_not(x: TensorLike, name: str | None = None) -> Tensor:
    """True where x is false.

    Example:
        >>> logical_not([True]).numpy()
        array([False])
    """
    return _ops.logical_not(convert_to_tensor(x))


def negative(x: TensorLike, name: str | None = None) -> Tensor:
    """-x of each element.

    Example:
        >>> negative([1.0]).numpy()
        array([-1.], dtype=float32)
    """
    return _ops.neg(convert_to_tensor(x))


def reciprocal(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x of each element.

    Example:
        >>> reciprocal([2.0]).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.reciprocal(convert_to_tensor(x))


def round(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest whole number; halves go to the even one.

    Example:
        >>> round([2.5]).numpy()
        array([2.], dtype=float32)
    """
    return _ops.round(convert_to_tensor(x))


def rsqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / √x of each element.

    Example:
        >>> rsqrt([4.0]).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.rsqrt(convert_to_tensor(x))


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / (1 + exp(-x)) of each element.

    Example:
        >>> sigmoid([0.0]).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.sigmoid(convert_to_tensor(x))


def sign(x: TensorLike, name: str | None = None) -> Tensor:
    """-1, 0 or 1 of each element; the derivative is 0.

    Example:
        >>> sign([-3.0]).numpy()
        array([-1.], dtype=float32)
    """
    return _ops.sign(convert_to_tensor(x))


def sin(x: TensorLike, name: str | None = None) -> Tensor:
    """The sine of an angle in radians.

    Example:
        >>> sin([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.sin(convert_to_tensor(x))


def sinh(x: TensorLike, name: str | None = None) -> Tensor:
    """The hyperbolic sine.

    Example:
        >>> sinh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.sinh(convert_to_tensor(x))


def softplus(features: TensorLike, name: str | None = None) -> Tensor:
    """log(1 + exp(x)) of each element.

    Example:
        >>> softplus([-100.0]).numpy()
        array([3.8e-44], dtype=float32)
    """
    return _ops.softplus(convert_to_tensor(features))


def sqrt(x: TensorLike, name: str | None = None) -> Tensor:
    """The square root; NaN below 0.

    Example:
        >>> sqrt([4.0]).numpy()
        array([2.], dtype=float32)
    """
    return _ops.sqrt(convert_to_tensor(x))


def square(x: TensorLike, name: str | None = None) -> Tensor:
    """X · x of each element.

    Example:
        >>> square([3.0]).numpy()
        array([9.], dtype=float32)
    """
    return _ops.square(convert_to_tensor(x))


def tan(x: TensorLike, name: str | None = None) -> Tensor:
    """The tangent of an angle in radians.

    Example:
        >>> tan([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.tan(convert_to_tensor(x))


def tanh(x: TensorLike, name: str | None = None) -> Tensor:
    """The hyperbolic tangent.

    Example:
        >>> tanh([0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.tanh(convert_to_tensor(x))


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), exact for large negative x.

    Example:
        >>> float(log_sigmoid(-100.0))
        -100.0
    """
    return -softplus(-convert_to_tensor(x))
