"""Integrals without a closed form: Dawson's, Fresnel's, the exponential one and the dilogarithm.

They are computed in float64, and float32 is rounded once.
"""

from __future__ import annotations

import math

from samegrad._tensor.tensor import Tensor, TensorLike
from samegrad.math._binary import floormod
from samegrad.math._chebyshev import computed as _computed
from samegrad.math._chebyshev import expansion, halves, select
from samegrad.math._complex import abs, cos, exp, log, sign, sin

# The exponential integral has an expansion between each two of these, and one above.
_PIECES = (6.0, 12.0, 24.0, 50.0)
_FRESNEL = 1.6
_FOURTH = (_FRESNEL * _FRESNEL) * (_FRESNEL * _FRESNEL)
_EULER = 0.5772156649015329


def _dawsn(x: Tensor) -> Tensor:
    inside, small, large = halves(x * x <= 16.0, x, 4.0)
    near = small * expansion("dawsn_small", small * small, 0.0, 16.0)
    inverse = 4.0 / large
    far = expansion("dawsn_large", inverse * inverse, 0.0, 1.0) / (2.0 * large)
    return select(inside, near, far)


def _expint(x: Tensor) -> Tensor:
    inside, small, large = halves(x <= _PIECES[0], x, _PIECES[0])
    zero = small == 0.0
    at = select(zero, 1.0, small)
    near = _EULER + log(at)
    near = select(zero, -math.inf, near + at * expansion("ei_small", at, 0.0, _PIECES[0]))
    large = select(large > 1e4, 1e4, large)  # their integrals are infinite
    inverse = 1.0 / large
    factor = expansion("ei_large", select(large > _PIECES[-1], inverse, 0.01), 0.0, 1 / _PIECES[-1])
    for low, high in zip(_PIECES[-2::-1], _PIECES[:0:-1], strict=True):
        _, part, _ = halves(large <= high, inverse, 1 / high)
        piece = expansion(f"ei_{high:.0f}", part, 1 / high, 1 / low)
        factor = select(large > high, factor, piece)
    return select(inside, near, exp(large) * (factor * inverse))


def _fresnel(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the integrals of the cosine and of the sine."""
    inside, small, large = halves(abs(x) <= _FRESNEL, x, _FRESNEL)
    fourth = small * small * (small * small)
    cosine = small * expansion(
        "c_small", fourth, 0.0, (_FRESNEL * _FRESNEL) * (_FRESNEL * _FRESNEL)
    )
    sine = small * (small * small) * expansion("s_small", fourth, 0.0, _FOURTH)
    size = abs(large)
    inverse = _FRESNEL / size
    f = expansion("f", inverse * inverse, 0.0, 1.0) / (math.pi * size)
    g = expansion("g", inverse * inverse, 0.0, 1.0) / size / (math.pi * size) / (math.pi * size)
    exact = select(size > 1e8, 0.0, size)  # of larger numbers the waves are too small to see
    angle = floormod(exact * exact, 4.0) * (math.pi / 2)
    c, s = cos(angle), sin(angle)
    return (
        select(inside, cosine, sign(large) * (0.5 + f * s - g * c)),
        select(inside, sine, sign(large) * (0.5 - f * c - g * s)),
    )


def _spence(x: Tensor) -> Tensor:
    turned, small, large = halves(x <= 1.0, x, 1.0)
    x = select(turned, small, 1.0 / large)
    inner = x < 0.5  # its complement has the expansion
    zero = x == 0.0
    at = select(zero, 0.25, x)
    part = select(inner, 1.0 - at, at)
    found = (1.0 - part) * expansion("spence", part, 0.5, 1.0)
    logs = log(at) * log(select(inner, 1.0 - at, 0.5))
    found = select(inner, (math.pi * math.pi) / 6 - logs - found, found)
    found = select(zero, (math.pi * math.pi) / 6, found)
    return select(turned, found, -0.5 * log(large) * log(large) - found)


def dawsn(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute Dawson's integral exp(-x²) ∫ exp(t²) dt from 0 to x.

    Args:
        x: A tensor of floats.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> dawsn([1.0]).numpy().round(4)
        array([0.5381], dtype=float32)
    """
    return _computed("dawsn", _dawsn, x)


def expint(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute the exponential integral ∫ exp(t) / t dt from -∞ to x.

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> expint([1.0]).numpy().round(4)
        array([1.8951], dtype=float32)
    """
    return _computed("expint", _expint, x)


def fresnel_cos(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute Fresnel's integral of cos(π t² / 2) from 0 to x.

    Args:
        x: A tensor of floats.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> fresnel_cos([1.0]).numpy().round(4)
        array([0.7799], dtype=float32)
    """
    return _computed("fresnel_cos", lambda v: _fresnel(v)[0], x)


def fresnel_sin(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute Fresnel's integral of sin(π t² / 2) from 0 to x.

    Args:
        x: A tensor of floats.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> fresnel_sin([1.0]).numpy().round(4)
        array([0.4383], dtype=float32)
    """
    return _computed("fresnel_sin", lambda v: _fresnel(v)[1], x)


def spence(x: TensorLike, name: str | None = None) -> Tensor:
    """Compute Spence's integral of -log(t) / (t - 1) from 1 to x.

    Args:
        x: A tensor of floats, 0 or more.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`; NaN below 0.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> spence([1.0]).numpy().round(4)
        array([0.], dtype=float32)
    """
    return _computed("spence", _spence, x)


__all__ = ["dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence"]
