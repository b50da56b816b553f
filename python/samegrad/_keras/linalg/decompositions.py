"""keras.backend.linalg: Cholesky, eigenvalues, LU, QR, singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf
from samegrad import _core
from samegrad._keras.linalg.values import array_of, floats, no_gradient, tensor_like, turned
from samegrad._tensor.tensor import Tensor


def cholesky(a: Any, upper: bool = False) -> Tensor:
    """The lower triangles L with L Lᵀ = a; or their transposes.

    Raises:
        InvalidArgumentError: A matrix is not positive definite.
    """
    lower: Tensor = tf.linalg.cholesky(floats(a))
    return turned(lower) if upper else lower


def cholesky_inverse(a: Any, upper: bool = False) -> Tensor:
    """The inverses of the matrices whose `cholesky` is given."""
    factor = floats(a)
    factor = turned(factor) if upper else factor
    eye = tf.zeros_like(factor) + tf.eye(int(factor.shape[-1]), dtype=factor._dtype)
    inverse: Tensor = tf.linalg.cholesky_solve(factor, eye)
    return inverse


def eigh(a: Any) -> tuple[Tensor, Tensor]:
    """Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices."""
    values, vectors = tf.linalg.eigh(floats(a))
    return values, vectors


def eig(a: Any) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors (columns) of matrices that have real ones.

    Raises:
        ValueError: There is a complex eigenvalue.
    """
    values, vectors = _eig(floats(a))
    return values, vectors


@tf.custom_gradient
def _eig(a: Tensor) -> Any:
    values, vectors = np.linalg.eig(array_of("eig", a))
    if np.iscomplexobj(values) and np.imag(values).any():
        raise ValueError(
            "[keras.ops.eig] eigenvalues must be real, as there are no complex tensors: got "
            f"{values}."
        )
    real = np.real(values), np.real(vectors)  # NumPy 2.5 makes complex ones of all
    made = tensor_like(a, real[0]), tensor_like(a, real[1])
    return made, lambda *_: no_gradient("eig", "of symmetric matrices eigh has")


def lu_factor(a: Any) -> tuple[Tensor, Tensor]:
    """L (below the diagonal, which is 1) and U in one matrix, and the pivots.

    Row i was swapped with row pivots[i], for i = 0, 1, …, as in LAPACK.
    """
    factors, _, pivots = _core.ops.lu(floats(a), regular=False)
    return factors, pivots


def qr(x: Any, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Q with orthogonal columns of length 1 and upper triangles R with Q R = x.

    Args:
        x: Matrices.
        mode: "reduced": Q has as many columns as x has rows or columns, the fewer; "complete": as
            many as x has rows.

    Raises:
        ValueError: Another mode.
    """
    if mode not in {"reduced", "complete"}:
        raise ValueError(
            "`mode` argument value not supported. Expected one of {'reduced', 'complete'}. "
            f"Received: mode={mode}"
        )
    q, r = tf.linalg.qr(floats(x), full_matrices=mode == "complete")
    return q, r


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, the singular values s, descending, and Vᵀ with U diag(s) Vᵀ = x; or s alone.

    Args:
        x: Matrices.
        full_matrices: Whether U and V are square.
        compute_uv: Whether U and Vᵀ are wanted.
    """
    matrices = floats(x)
    if not compute_uv:
        return tf.linalg.svd(matrices, compute_uv=False)
    s, u, v = tf.linalg.svd(matrices, full_matrices=bool(full_matrices))
    return u, s, turned(v)
