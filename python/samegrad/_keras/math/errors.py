"""keras.backend.math: the error function, its complement and its inverse."""

from __future__ import annotations

from typing import Any

from samegrad import math
from samegrad._keras.conversion import convert_to_tensor
from samegrad._tensor.tensor import Tensor


def erf(x: Any) -> Tensor:
    """2 / sqrt(π) times the integral of exp(-t²) from 0 to x."""
    return math.erf(convert_to_tensor(x))


def erfc(x: Any) -> Tensor:
    """1 - erf(x), exact where that is tiny."""
    return math.erfc(convert_to_tensor(x))


def erfinv(x: Any) -> Tensor:
    """The number whose erf is x: infinite of -1 and 1, NaN outside [-1, 1]."""
    return math.erfinv(convert_to_tensor(x))
