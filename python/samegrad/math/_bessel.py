"""Bessel functions of the second and third kind and of real order 0 and 1, in float64.

float32 is rounded once.
"""

from __future__ import annotations

import math

from samegrad._tensor.tensor import Tensor, TensorLike
from samegrad.math._chebyshev import computed as _computed
from samegrad.math._chebyshev import expansion, halves, select
from samegrad.math._complex import abs, cos, exp, log, sign, sin, sqrt
from samegrad.math._special import bessel_i0, bessel_i1

_PHASES = (math.pi / 4, 3 * math.pi / 4)


def _k(order: int, x: Tensor, scaled: bool) -> Tensor:
    """Evaluate the modified function of the second kind, times exp(x) where it is scaled."""
    inside, small, large = halves(x <= 2.0, x, 2.0)
    series = expansion(f"k{order}_small", small * small, 0.0, 4.0)
    if order == 0:
        near = series - log(small) * bessel_i0(small)
    else:
        zero = small == 0.0
        at = select(zero, 1.0, small)
        near = select(zero, math.inf, series / at + log(at) * bessel_i1(at))
    far = expansion(f"k{order}_large", 2.0 / large, 0.0, 1.0) / sqrt(large)
    if scaled:
        return select(inside, near * exp(small), far)
    return select(inside, near, far * exp(-large))


def _waves(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the functions of the first and the second kind at numbers of 8 or more."""
    inverse = 64.0 / (x * x)
    even = expansion(f"p{order}", inverse, 0.0, 1.0)
    odd = expansion(f"q{order}", inverse, 0.0, 1.0) / x
    angle, scale = x - _PHASES[order], sqrt(2.0 / (math.pi * x))
    c, s = cos(angle), sin(angle)
    return scale * (even * c - odd * s), scale * (even * s + odd * c)


def _j(order: int, x: Tensor) -> Tensor:
    inside, small, large = halves(abs(x) <= 8.0, x, 8.0)
    near = expansion(f"j{order}_small", small * small, 0.0, 64.0)
    far = _waves(order, abs(large))[0]
    if order == 1:
        near, far = near * small, far * sign(large)
    return select(inside, near, far)


def _y(order: int, x: Tensor) -> Tensor:
    inside, small, large = halves(x <= 8.0, x, 8.0)
    series = expansion(f"y{order}_small", small * small, 0.0, 64.0)
    zero = small == 0.0
    at = select(zero, 1.0, small)
    logs = log(at) * _j(order, at)
    near = series + logs * (2 / math.pi) if order == 0 else (
        series * at + (logs - 1.0 / at) * (2 / math.pi))  # fmt: skip
    return select(inside, select(zero, -math.inf, near), _waves(order, large)[1])


def bessel_k0(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of the second kind, of order 0.

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_k0([1.0]).numpy().round(4)
        array([0.421], dtype=float32)
    """
    return _computed("bessel_k0", lambda v: _k(0, v, False), x)


def bessel_k0e(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute `bessel_k0` of each element, times exp(x).

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_k0e([1.0]).numpy().round(4)
        array([1.1445], dtype=float32)
    """
    return _computed("bessel_k0e", lambda v: _k(0, v, True), x)


def bessel_k1(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the modified Bessel function of the second kind, of order 1.

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_k1([1.0]).numpy().round(4)
        array([0.6019], dtype=float32)
    """
    return _computed("bessel_k1", lambda v: _k(1, v, False), x)


def bessel_k1e(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute `bessel_k1` of each element, times exp(x).

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_k1e([1.0]).numpy().round(4)
        array([1.6362], dtype=float32)
    """
    return _computed("bessel_k1e", lambda v: _k(1, v, True), x)


def bessel_j0(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Bessel function of the first kind, of order 0.

    Args:
        x: A tensor of floats.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_j0([1.0]).numpy().round(4)
        array([0.7652], dtype=float32)
    """
    return _computed("bessel_j0", lambda v: _j(0, v), x)


def bessel_j1(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Bessel function of the first kind, of order 1.

    Args:
        x: A tensor of floats.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_j1([1.0]).numpy().round(4)
        array([0.4401], dtype=float32)
    """
    return _computed("bessel_j1", lambda v: _j(1, v), x)


def bessel_y0(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Bessel function of the second kind, of order 0.

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_y0([1.0]).numpy().round(4)
        array([0.0883], dtype=float32)
    """
    return _computed("bessel_y0", lambda v: _y(0, v), x)


def bessel_y1(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the Bessel function of the second kind, of order 1.

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> bessel_y1([1.0]).numpy().round(4)
        array([-0.7812], dtype=float32)
    """
    return _computed("bessel_y1", lambda v: _y(1, v), x)


__all__ = [
    "bessel_j0", "bessel_j1", "bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e",
    "bessel_y0", "bessel_y1",
]  # fmt: skip
