"""Elementary functions of numbers and NumPy arrays, computed by the engine's kernels.

What NumPy's and the C library's functions return differs in the last bit between processors: they
choose their instructions at run time. Whatever ends in a tensor is computed here instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad import _core
from samegrad._context import state as _context
from samegrad._tensor.tensor import convert_to_tensor

Function = Callable[[Any], NDArray[Any]]

LOG_2 = 0.693147180559945309
LOG_10 = 2.30258509299404568


def _by_engine(name: str) -> Function:
    op = getattr(_core.ops, name)

    def function(x: Any) -> NDArray[Any]:
        array = np.asarray(x)
        array = array if array.dtype == np.float32 else array.astype(np.float64)
        with _context.init_scope():  # these are values, also inside a traced function
            return np.asarray(op(convert_to_tensor(array)).numpy())

    return function


exp = _by_engine("exp")
log = _by_engine("log")
log1p = _by_engine("log1p")
cos = _by_engine("cos")
sin = _by_engine("sin")
bessel_i0e = _by_engine("bessel_i0e")


def log_of_sum(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Return log(exp(x) + exp(y)), without overflow; -infinity of two.

    Example:
        >>> log_of_sum(np.array([0.0, -np.inf]), np.array([0.0, -np.inf])).round(3).tolist()
        [0.693, -inf]
    """
    gap = np.abs(np.subtract(x, y, out=np.zeros(np.shape(x)), where=x != y))
    found: NDArray[Any] = np.maximum(x, y) + log1p(exp(-gap))
    return found


def on_circle(places: NDArray[Any], size: int) -> NDArray[Any]:
    """Return exp(2πi * place / size) of integers; quarter turns are exact.

    Example:
        >>> on_circle(np.arange(3), 4).tolist()
        [(1+0j), 1j, (-1+0j)]
    """
    quarters, rest = np.divmod(4 * (places % size), size)
    angle = np.pi / 2 * (rest / size)
    found = np.empty(angle.shape, complex)
    found.real, found.imag = cos(angle), sin(angle)
    found *= np.array([1, 1j, -1, -1j])[quarters]  # exact
    return found
