"""Matrices, under the names of tf.linalg; leading axes are those of many matrices.

Each matrix is decomposed by itself, in float64 (float32 is rounded once): its numbers do not depend
on the others, on their place, or on the number of threads.
"""

from typing import TYPE_CHECKING

from samegrad._ops.complex_arrays import einsum, eye, matmul, tensordot
from samegrad._ops.norms import global_norm, norm
from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.linalg._complex import inv, solve
from samegrad.linalg._diagonals import band_part, diag, diag_part, trace
from samegrad.linalg._products import (
    adjoint,
    cross,
    matrix_transpose,
    matvec,
    normalize,
    set_diag,
    tensor_diag,
    tensor_diag_part,
)
from samegrad.linalg._solving import (
    cholesky,
    cholesky_solve,
    det,
    logdet,
    lstsq,
    lu,
    lu_matrix_inverse,
    lu_reconstruct,
    lu_solve,
    slogdet,
    triangular_solve,
)
from samegrad.linalg._spectral import eigh, eigvalsh, expm, matrix_rank, pinv, qr, svd
from samegrad.linalg._tridiagonal import tridiagonal_matmul, tridiagonal_solve
from samegrad.math import l2_normalize

__all__ = [
    "adjoint", "band_part", "cholesky", "cholesky_solve", "cross", "det", "diag", "diag_part",
    "eigh", "eigvalsh", "einsum", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet",
    "lstsq", "lu", "lu_matrix_inverse", "lu_reconstruct", "lu_solve", "matmul", "matrix_rank",
    "matrix_transpose", "matvec", "norm", "normalize", "pinv", "qr", "set_diag", "slogdet", "solve",
    "svd", "tensor_diag", "tensor_diag_part", "tensordot", "trace", "triangular_solve",
    "tridiagonal_matmul", "tridiagonal_solve",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)
