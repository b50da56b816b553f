"""Where special functions are compared with SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

_LINE = np.concatenate([np.linspace(-4.7, 30, 48), [1e-10, 1e5, 0.0, np.inf, np.nan]])
_POSITIVE = np.concatenate([np.linspace(0.05, 30, 40), [1e-8, 1e4]])
_A, _X = np.meshgrid([0.1, 0.5, 1, 3.3, 10, 150, 1e4], [0.0, 1e-5, 0.5, 1, 3, 12, 140, 1.01e4])
_B, _C, _Y = np.meshgrid([0.3, 1, 4, 60], [0.5, 2, 30], [0.0, 0.01, 0.4, 0.9, 1])

# The name in tf.math, SciPy's, the operands, and the relative error that is allowed.
CASES: dict[str, tuple[str, list[np.ndarray], float]] = {
    "lgamma": ("gammaln", [_LINE], 1e-13),
    "digamma": ("psi", [np.concatenate([_POSITIVE, [-0.3, -4.6, 1.4616321]])], 1e-9),
    "polygamma": ("polygamma", [np.repeat([1.0, 2, 5], 42), np.tile(_POSITIVE, 3)], 1e-13),
    "zeta": ("zeta", [np.repeat([1.1, 2, 40], 42), np.tile(_POSITIVE, 3)], 1e-13),
    "erfc": ("erfc", [np.linspace(-3, 20, 47)], 1e-13),
    "erfinv": ("erfinv", [np.array([-1, -0.999999, -0.3, 0, 1e-9, 0.5, 1 - 1e-15, 1, 1.5])], 1e-13),
    "erfcinv": ("erfcinv", [np.array([0, 1e-200, 1e-9, 0.3, 1, 1.7, 2])], 1e-12),
    "ndtri": ("ndtri", [np.array([0, 1e-300, 1e-20, 0.01, 0.4, 0.5, 0.9, 1, 2])], 1e-13),
    "bessel_i0e": ("i0e", [np.concatenate([_LINE, [19.99, 20.01]])], 1e-13),
    "bessel_i1e": ("i1e", [np.concatenate([_LINE, [19.99, 20.01]])], 1e-13),
    "bessel_i0": ("i0", [np.linspace(-5, 40, 31)], 1e-13),
    "bessel_i1": ("i1", [np.linspace(-5, 40, 31)], 1e-13),
    "igamma": ("gammainc", [_A, _X], 1e-11),
    "igammac": ("gammaincc", [_A, np.minimum(_X, 4 * _A)], 1e-10),
    "betainc": ("betainc", [_B, _C, _Y], 1e-11),
    "xlog1py": ("xlog1py", [np.array([0, 1, 0, 2.0]), np.array([-1, 3, np.inf, -0.5])], 1e-15),
}


def encoded(values: Any) -> list[Any]:
    """Numbers as text, which JSON has no infinity and NaN for."""
    return [float(x).hex() for x in np.asarray(values, np.float64).ravel()]


def decoded(values: list[str]) -> np.ndarray:
    """What `encoded` made."""
    return np.array([float.fromhex(x) for x in values])
