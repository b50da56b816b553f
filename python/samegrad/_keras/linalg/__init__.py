"""keras.backend.linalg: matrices; leading axes are those of many matrices."""

from __future__ import annotations

from samegrad._keras.linalg.decompositions import (
    cholesky,
    cholesky_inverse,
    eig,
    eigh,
    lu_factor,
    qr,
    svd,
)
from samegrad._keras.linalg.forward import jvp
from samegrad._keras.linalg.norms import norm
from samegrad._keras.linalg.singular_values import lstsq, matrix_rank, pinv
from samegrad._keras.linalg.solving import det, inv, solve, solve_triangular

__all__ = [
    "cholesky", "cholesky_inverse", "det", "eig", "eigh", "inv", "jvp", "lstsq", "lu_factor",
    "matrix_rank", "norm", "pinv", "qr", "solve", "solve_triangular", "svd",
]  # fmt: skip
