"""Special functions, in float64 (float32 is rounded once).

They are differentiable unless they say otherwise. The tests compare them with SciPy's.
"""

from __future__ import annotations

import math

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair

_ops = _core.ops


def _floats(who: str, *values: TensorLike) -> list[Tensor]:
    """The values with one dtype and one shape."""
    found = [convert_to_tensor(values[0])]
    for value in values[1:]:
        first, other = pair(found[0], value)
        found = [first, *found[1:], other]
    if not as_dtype(found[0]._dtype).is_floating:
        raise TypeError(f"[{who}] needs floats: got {found[0]._dtype}; cast them.")
    if all(tuple(x.shape) == tuple(found[0].shape) for x in found):
        return found
    zero = _ops.full_like(found[0], value=0.0)
    for x in found[1:]:
        zero = zero + _ops.full_like(x, value=0.0)
    return [x + zero for x in found]


def lgamma(x: TensorLike, name: str | None = None) -> Tensor:
    """Log |Γ(x)| of each element.

    Example:
        >>> lgamma([1.0, 3.0]).numpy().round(4)
        array([0.    , 0.6931], dtype=float32)
    """
    return _ops.lgamma(*_floats("lgamma", x))


def digamma(x: TensorLike, name: str | None = None) -> Tensor:
    """The derivative of `lgamma`; NaN of negative whole numbers.

    Example:
        >>> digamma([1.0]).numpy().round(4)
        array([-0.5772], dtype=float32)
    """
    return _ops.digamma(*_floats("digamma", x))


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The a-th derivative of `digamma`; no gradient flows to a.

    Example:
        >>> polygamma(1.0, [1.0]).numpy().round(4)
        array([1.6449], dtype=float32)
    """
    return _ops.polygamma(*_floats("polygamma", a, x))


def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> Tensor:
    """Hurwitz's zeta function Σ (q + k) ** -x over k = 0, 1, …; no gradient flows to x.

    Example:
        >>> zeta([2.0], 1.0).numpy().round(4)
        array([1.6449], dtype=float32)
    """
    return _ops.zeta(*_floats("zeta", x, q))


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the beta function along the last axis: Σ lgamma(x) - lgamma(Σ x).

    Example:
        >>> f"{float(lbeta([1.0, 2.0])):.4f}"
        '-0.6931'
    """
    (value,) = _floats("lbeta", x)
    axis = [value._rank - 1]
    parts = _ops.reduce_sum(_ops.lgamma(value), axes=axis, keepdims=False)
    return parts - _ops.lgamma(_ops.reduce_sum(value, axes=axis, keepdims=False))


def erfc(x: TensorLike, name: str | None = None) -> Tensor:
    """1 - erf(x), exact where that is tiny.

    Example:
        >>> erfc([0.0, 1.0]).numpy().round(4)
        array([1.    , 0.1573], dtype=float32)
    """
    return _ops.erfc(*_floats("erfc", x))


def erfinv(x: TensorLike, name: str | None = None) -> Tensor:
    """The number whose erf is x: infinite of -1 and 1, NaN outside of [-1, 1].

    Example:
        >>> erfinv([0.0, 0.5]).numpy().round(4)
        array([0.    , 0.4769], dtype=float32)
    """
    return _ops.erfinv(*_floats("erfinv", x))


def ndtri(x: TensorLike, name: str | None = None) -> Tensor:
    """Where the distribution function of the standard normal distribution is x.

    Example:
        >>> ndtri([0.5, 0.975]).numpy().round(2)
        array([0.  , 1.96], dtype=float32)
    """
    return _ops.ndtri(*_floats("ndtri", x))


def erfcinv(x: TensorLike, name: str | None = None) -> Tensor:
    """The number whose erfc is x, exact where x is tiny.

    Example:
        >>> erfcinv([0.5, 1.5]).numpy().round(4)
        array([ 0.4769, -0.4769], dtype=float32)
    """
    (value,) = _floats("erfcinv", x)
    return _ops.ndtri(value * 0.5) * -math.sqrt(0.5)


def bessel_i0e(x: TensorLike, name: str | None = None) -> Tensor:
    """exp(-|x|) I₀(x), I₀ being the modified Bessel function of order 0.

    Example:
        >>> bessel_i0e([0.0, 1.0]).numpy().round(4)
        array([1.    , 0.4658], dtype=float32)
    """
    return _ops.bessel_i0e(*_floats("bessel_i0e", x))


def bessel_i1e(x: TensorLike, name: str | None = None) -> Tensor:
    """exp(-|x|) I₁(x), I₁ being the modified Bessel function of order 1.

    Example:
        >>> bessel_i1e([0.0, 1.0]).numpy().round(4)
        array([0.    , 0.2079], dtype=float32)
    """
    return _ops.bessel_i1e(*_floats("bessel_i1e", x))


def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 0.

    Example:
        >>> bessel_i0([0.0, 1.0]).numpy().round(4)
        array([1.    , 1.2661], dtype=float32)
    """
    (value,) = _floats("bessel_i0", x)
    return _ops.bessel_i0e(value) * _ops.exp(_ops.abs(value))


def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """The modified Bessel function of order 1.

    Example:
        >>> bessel_i1([0.0, 1.0]).numpy().round(4)
        array([0.    , 0.5652], dtype=float32)
    """
    (value,) = _floats("bessel_i1", x)
    return _ops.bessel_i1e(value) * _ops.exp(_ops.abs(value))


def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularized lower incomplete gamma function P(a, x), of a > 0 and x >= 0.

    Gradients flow to a and x; that along a has no derivative itself.

    Example:
        >>> igamma([1.0], 1.0).numpy().round(4)
        array([0.6321], dtype=float32)
    """
    return _ops.igamma(*_floats("igamma", a, x))


def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularized upper incomplete gamma function Q(a, x); see `igamma`.

    Example:
        >>> igammac([1.0], 1.0).numpy().round(4)
        array([0.3679], dtype=float32)
    """
    return _ops.igammac(*_floats("igammac", a, x))


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularized incomplete beta function, of a, b > 0 and 0 <= x <= 1.

    Gradients flow to x alone, as in TensorFlow.

    Example:
        >>> betainc([2.0], 2.0, 0.5).numpy()
        array([0.5], dtype=float32)
    """
    return _ops.betainc(*_floats("betainc", a, b, x))


def nextafter(x1: TensorLike, x2: TensorLike, name: str | None = None) -> Tensor:
    """Return the float next to x1 on the way to x2; its derivative is that of x1.

    Args:
        x1: float32 or float64.
        x2: The direction, of the same dtype; it broadcasts with x1.
        name: Ignored.

    Returns:
        Their common shape and dtype.

    Raises:
        TypeError: Other dtypes.
        ValueError: The shapes do not broadcast.

    Example:
        >>> float(nextafter(1.0, 2.0)) > 1.0
        True
    """
    a, b = _floats("nextafter", x1, x2)
    if as_dtype(a._dtype).size < 4:
        raise TypeError(f"[nextafter] x1 must be float32 or float64: got {a._dtype}; cast it.")
    return _ops.next_after(a, b)


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """X / y, and 0 where x is 0, element by element.

    Example:
        >>> xdivy([0.0, 1.0], [0.0, 2.0]).numpy()
        array([0. , 0.5], dtype=float32)
    """
    return _ops.xdivy(*pair(x, y))


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """X * log(1 + y), and 0 where x is 0, element by element.

    Example:
        >>> xlog1py([0.0, 1.0], [-1.0, 0.0]).numpy()
        array([0., 0.], dtype=float32)
    """
    a, b = _floats("xlog1py", x, y)
    nothing = _ops.equal(a, convert_to_tensor(0.0, a._dtype))
    inside = _ops.select(nothing, _ops.full_like(b, value=0.0), b)
    return a * _ops.log1p(inside)


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """X * y, and 0 where y is 0, even if x is infinite or NaN.

    Example:
        >>> multiply_no_nan([float("inf")], [0.0]).numpy()
        array([0.], dtype=float32)
    """
    return _ops.multiply_no_nan(*pair(x, y))


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0.

    Example:
        >>> reciprocal_no_nan([0.0, 2.0]).numpy()
        array([0. , 0.5], dtype=float32)
    """
    (value,) = _floats("reciprocal_no_nan", x)
    return _ops.div_no_nan(_ops.full_like(value, value=1.0), value)
