"""keras.backend.math: the error function, its complement and its inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf
from samegrad import math
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor

_SLOPE = 2.0 / float(np.sqrt(np.pi))
# Cody, "Rational Chebyshev Approximations for the Error Function", 1969: 0.46875 to 4, and above.
_MIDDLE = (
    (5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1, 2.98635138197400131e2,
     8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3),
    (1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
     3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3),
)  # fmt: skip
_LEADING = 2.15311535474403846e-8
_TAIL = (
    (3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
     1.60837851487422766e-2, 6.58749161529837803e-4),
    (2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
     2.33520497626869185e-3),
)  # fmt: skip
_TAIL_LEADING = 1.63153871373020978e-2
_ROOT = 1.0 / float(np.sqrt(np.pi))


def erf(x: Any) -> Tensor:
    """2 / sqrt(π) times the integral of exp(-t²) from 0 to x."""
    return math.erf(convert_to_tensor(x))


def erfc(x: Any) -> Tensor:
    """1 - erf(x), exact where that is tiny."""
    given = convert_to_tensor(x)
    return tf.cast(_erfc(tf.cast(given, "float64")), given._dtype)


def _ratio(x: Tensor, leading: float, terms: Any) -> Tensor:
    above, below = x * leading, x
    for over, under in zip(*[side[:-1] for side in terms], strict=True):
        above, below = (above + over) * x, (below + under) * x
    ratio: Tensor = (above + terms[0][-1]) / (below + terms[1][-1])
    return ratio


def _erfc_value(x: Tensor) -> Tensor:
    size = tf.abs(x)
    middle = tf.clip_by_value(size, 0.46875, 4.0)
    far = tf.maximum(size, convert_to_tensor(4.0, "float64"))
    inverse = 1.0 / tf.square(far)
    tail = (_ROOT - inverse * _ratio(inverse, _TAIL_LEADING, _TAIL)) / far
    # exp(-x²) with x² in two parts, so that what rounding x² loses is not lost.
    coarse = tf.floor(size * 16.0) / 16.0
    rest = (size - coarse) * (size + coarse)
    scale = tf.exp(-tf.square(coarse)) * tf.exp(-rest)
    upper = tf.where(size <= 4.0, _ratio(middle, _LEADING, _MIDDLE), tail) * scale
    upper = tf.where(size > 27.0, tf.zeros_like(upper), upper)
    outside = tf.where(x < 0.0, 2.0 - upper, upper)
    outside = tf.where(math.is_nan(x), x, outside)
    return tf.where(size <= 0.46875, 1.0 - math.erf(x), outside)


@tf.custom_gradient
def _erfc(x: Tensor) -> Any:
    slope = tf.exp(-tf.square(x)) * -_SLOPE
    return _erfc_value(x), lambda upstream: upstream * slope


def erfinv(x: Any) -> Tensor:
    """The number whose erf is x: infinite of -1 and 1, NaN outside [-1, 1]."""
    given = convert_to_tensor(x)
    return tf.cast(_erfinv(tf.cast(given, "float64")), given._dtype)


@tf.custom_gradient
def _erfinv(x: Tensor) -> Any:
    y = tf.stop_gradient(_erfinv_value(x))

    def gradient(upstream: Tensor) -> Tensor:
        return upstream * tf.exp(tf.square(_erfinv(x))) / _SLOPE

    return y, gradient


def _erfinv_value(x: Tensor) -> Tensor:
    """A first guess (Winitzki, 2008), which Halley's steps make exact."""
    size = tf.abs(x)
    inside = tf.minimum(size, convert_to_tensor(1.0 - 2.0**-53, "float64"))
    logarithm = math.log1p(-tf.square(inside))
    half = 2.0 / (np.pi * 0.147) + logarithm * 0.5
    y = tf.sqrt(tf.maximum(tf.sqrt(tf.square(half) - logarithm / 0.147) - half, 0.0))
    for _ in range(3):
        # Near 1 by erfc: 1 - x is exact there.
        over = tf.where(inside > 0.5, (1.0 - inside) - _erfc_value(y), math.erf(y) - inside)
        step = over * tf.exp(tf.square(y)) / _SLOPE
        y = y - step / (1.0 + y * step)
    y = tf.where(size == 1.0, convert_to_tensor(float("inf"), "float64"), y)
    y = tf.where(size > 1.0, convert_to_tensor(float("nan"), "float64"), y)
    return tf.where(math.is_nan(x), x, tf.where(x < 0.0, -y, y))
