"""Special functions, in float64 (float32 is rounded once).

They are differentiable unless they say otherwise. The tests compare them with SciPy's.
"""

from __future__ import annotations

import math

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._tensor.tensor import Tensor, TensorLike, alike, convert_to_tensor, pair

_ops = _core.ops


def floats_of(who: str, *values: TensorLike) -> list[Tensor]:
    """Return the values with one dtype and one shape."""
    found = alike(*values)
    if not as_dtype(found[0]._dtype).is_floating:
        raise TypeError(f"[{who}] needs floats: got {found[0]._dtype}; cast them.")
    if all(tuple(x.shape) == tuple(found[0].shape) for x in found):
        return found
    zero = _ops.full_like(found[0], value=0.0)
    for x in found[1:]:
        zero = zero + _ops.full_like(x, value=0.0)
    return [x + zero for x in found]


def lgamma(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute log |Γ(x)| of each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> lgamma([1.0, 3.0]).numpy().round(4)
        array([0.    , 0.6931], dtype=float32)
    """
    return _ops.lgamma(*floats_of("lgamma", x))


def digamma(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the derivative of `lgamma` at each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN at negative integers.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> digamma([1.0]).numpy().round(4)
        array([-0.5772], dtype=float32)
    """
    return _ops.digamma(*floats_of("digamma", x))


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the a-th derivative of `digamma` at x.

    No gradient flows to `a`.

    Args:
        a: The orders: floats with integer values, 0 or more.
        x: A tensor that broadcasts with `a`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> polygamma(1.0, [1.0]).numpy().round(4)
        array([1.6449], dtype=float32)
    """
    return _ops.polygamma(*floats_of("polygamma", a, x))


def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Hurwitz zeta function Σ (q + k) ** -x over k = 0, 1, ….

    No gradient flows to `x`.

    Args:
        x: The exponents: a tensor of floats above 1.
        q: The shifts: positive floats that broadcast with `x`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> zeta([2.0], 1.0).numpy().round(4)
        array([1.6449], dtype=float32)
    """
    return _ops.zeta(*floats_of("zeta", x, q))


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logarithm of the beta function along the last axis.

    The formula is Σ lgamma(x) - lgamma(Σ x).

    Args:
        x: A tensor of floats of shape [..., n].
        name: Ignored.

    Returns:
        A tensor of shape [...], in the dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> f"{float(lbeta([1.0, 2.0])):.4f}"
        '-0.6931'
    """
    (value,) = floats_of("lbeta", x)
    axis = [value._rank - 1]
    parts = _ops.reduce_sum(_ops.lgamma(value), axes=axis, keepdims=False)
    return parts - _ops.lgamma(_ops.reduce_sum(value, axes=axis, keepdims=False))


def erfc(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute 1 - erf(x) of each element, exact where the result is tiny.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> erfc([0.0, 1.0]).numpy().round(4)
        array([1.    , 0.1573], dtype=float32)
    """
    return _ops.erfc(*floats_of("erfc", x))


def erfinv(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse error function of each element.

    Args:
        x: A tensor of floats in [-1, 1].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; infinite at -1 and 1, NaN outside.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> erfinv([0.0, 0.5]).numpy().round(4)
        array([0.    , 0.4769], dtype=float32)
    """
    return _ops.erfinv(*floats_of("erfinv", x))


def ndtri(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the quantile function of the standard normal distribution.

    Args:
        x: Probabilities: a tensor of floats in [0, 1].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> ndtri([0.5, 0.975]).numpy().round(2)
        array([0.  , 1.96], dtype=float32)
    """
    return _ops.ndtri(*floats_of("ndtri", x))


def erfcinv(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the inverse of `erfc` at each element, exact where x is tiny.

    Args:
        x: A tensor of floats in [0, 2].
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> erfcinv([0.5, 1.5]).numpy().round(4)
        array([ 0.4769, -0.4769], dtype=float32)
    """
    (value,) = floats_of("erfcinv", x)
    return _ops.ndtri(value * 0.5) * -math.sqrt(0.5)


def bessel_i0e(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute exp(-|x|) I₀(x), with I₀ the modified Bessel function of order 0.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_i0e([0.0, 1.0]).numpy().round(4)
        array([1.    , 0.4658], dtype=float32)
    """
    return _ops.bessel_i0e(*floats_of("bessel_i0e", x))


def bessel_i1e(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute exp(-|x|) I₁(x), with I₁ the modified Bessel function of order 1.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_i1e([0.0, 1.0]).numpy().round(4)
        array([0.    , 0.2079], dtype=float32)
    """
    return _ops.bessel_i1e(*floats_of("bessel_i1e", x))


def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of order 0 at each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_i0([0.0, 1.0]).numpy().round(4)
        array([1.    , 1.2661], dtype=float32)
    """
    (value,) = floats_of("bessel_i0", x)
    return _ops.bessel_i0e(value) * _ops.exp(_ops.abs(value))


def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of order 1 at each element.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_i1([0.0, 1.0]).numpy().round(4)
        array([0.    , 0.5652], dtype=float32)
    """
    (value,) = floats_of("bessel_i1", x)
    return _ops.bessel_i1e(value) * _ops.exp(_ops.abs(value))


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the regularized lower incomplete gamma function P(a, x).

    Gradients flow to `a` and `x`. The gradient along `a` has no derivative itself.

    Args:
        a: The shape parameter: floats above 0.
        x: The limit of integration: floats, 0 or more, that broadcast with `a`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> igamma([1.0], 1.0).numpy().round(4)
        array([0.6321], dtype=float32)
    """
    return _ops.igamma(*floats_of("igamma", a, x))


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    Gradients flow to `a` and `x`. The gradient along `a` has no derivative itself.

    Args:
        a: The shape parameter: floats above 0.
        x: The limit of integration: floats, 0 or more, that broadcast with `a`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> igammac([1.0], 1.0).numpy().round(4)
        array([0.3679], dtype=float32)
    """
    return _ops.igammac(*floats_of("igammac", a, x))


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the regularized incomplete beta function.

    Gradients flow to `x` alone, as in TensorFlow.

    Args:
        a: The first parameter: floats above 0.
        b: The second parameter: floats above 0 that broadcast with `a`.
        x: The upper limit of integration: floats in [0, 1] that broadcast with `a`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> betainc([2.0], 2.0, 0.5).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.betainc(*floats_of("betainc", a, b, x))


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """Return the float next to x1 in the direction of x2; its derivative is that of x1.

    Args:
        x1: A tensor of float32 or float64.
        x2: The direction: a tensor of the same dtype that broadcasts with `x1`.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are others.
        ValueError: The shapes do not broadcast.

    Example:
        >>> float(nextafter(1.0, 2.0)) > 1.0
        True
    """
    a, b = floats_of("nextafter", x1, x2)
    if as_dtype(a._dtype).size < 4:
        raise TypeError(f"[nextafter] x1 must be float32 or float64: got {a._dtype}; cast it.")
    return _ops.next_after(a, b)


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Divide x by y element by element, with 0 where x is 0.

    Args:
        x: A tensor of floats.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> xdivy([0.0, 1.0], [0.0, 2.0]).numpy()
        array([0. , 0.5], dtype=float32)
    """
    a, b = pair(x, y)
    nothing = _ops.logical_and(a == 0.0, b == 0.0)
    return _ops.xdivy(a, _ops.select(nothing, _ops.full_like(b, value=math.inf), b))


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Compute x * log(1 + y) element by element, with 0 where x is 0.

    Args:
        x: A tensor of floats.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> xlog1py([0.0, 1.0], [-1.0, 0.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    a, b = floats_of("xlog1py", x, y)
    nothing = _ops.equal(a, convert_to_tensor(0.0, a._dtype))
    inside = _ops.select(nothing, _ops.full_like(b, value=0.0), b)
    return a * _ops.log1p(inside)


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Multiply x by y element by element, with 0 where y is 0.

    The result is 0 there even if x is infinite or NaN.

    Args:
        x: A tensor of floats.
        y: A tensor that broadcasts with `x`, of the same dtype.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape, in the dtype of the operands.

    Raises:
        TypeError: The dtypes differ, or are not floats.

    Example:
        >>> multiply_no_nan([float("inf")], [0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.multiply_no_nan(*pair(x, y))


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute 1 / x of each element, and 0 where x is 0.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> reciprocal_no_nan([0.0, 2.0]).numpy()
        array([0. , 0.5], dtype=float32)
    """
    (value,) = floats_of("reciprocal_no_nan", x)
    return _ops.div_no_nan(_ops.full_like(value, value=1.0), value)
