"""Orthogonal decompositions, and what follows from singular values."""

from __future__ import annotations

from typing import NamedTuple

from samegrad import _core
from samegrad._tensor.tensor import Tensor, TensorLike, match
from samegrad.linalg._matrices import matrices, turned

_ops = _core.ops


class Qr(NamedTuple):
    """Orthogonal columns and upper triangles."""

    q: Tensor
    r: Tensor


class Svd(NamedTuple):
    """Singular values, left and right vectors."""

    s: Tensor
    u: Tensor
    v: Tensor


class Eigh(NamedTuple):
    """Eigenvalues and eigenvectors."""

    e: Tensor
    v: Tensor


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> Qr:
    """Compute the QR decomposition a = Q R: orthonormal columns and an upper triangle.

    Args:
        input: Matrices: floats of shape [..., m, n].
        full_matrices: Return a square Q; if m > n, its last columns have no derivative.
        name: Ignored.

    Returns:
        A named tuple: `q` [..., m, k] and `r` [..., k, n], where k is min(m, n), or m with
        full_matrices.

    Example:
        >>> q, r = qr([[3.0], [4.0]])
        >>> abs(r.numpy())
        array([[5.]], dtype=float32)
    """
    q, r = _ops.qr(matrices("qr", input), full=bool(full_matrices))
    return Qr(q, r)


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True,
        name: str | None = None) -> Svd | Tensor:  # fmt: skip
    """Compute the singular value decomposition a = u diag(s) vᵀ, with s in descending order.

    The gradient is that of Townsend, "Differentiating the singular value decomposition" (2016).
    Terms between equal singular values are left out.

    Args:
        tensor: Matrices: floats of shape [..., m, n]; values that are not finite give NaN.
        full_matrices: Return square u and v; then only square matrices have a gradient.
        compute_uv: Compute u and v as well.
        name: Ignored.

    Returns:
        A named tuple: `s` [..., k], `u` [..., m, k] and `v` [..., n, k], where k is min(m, n); or
        `s` alone.

    Example:
        >>> s, u, v = svd([[0.0, 2.0], [1.0, 0.0]])
        >>> s.numpy()
        array([2., 1.], dtype=float32)
    """
    x = matrices("svd", tensor)
    if not compute_uv:
        return _ops.singular_values(x)
    s, u, v = _ops.svd(x, full=bool(full_matrices))
    return Svd(s, u, v)


def eigh(tensor: TensorLike, name: str | None = None) -> Eigh:
    """Compute the eigenvalues, in ascending order, and eigenvectors of symmetric matrices.

    The gradient (Giles, "Collected matrix derivative results", 2008) is a lower triangle.

    Args:
        tensor: Matrices: floats of shape [..., n, n]. Only the lower triangle is read.
        name: Ignored.

    Returns:
        A named tuple: the eigenvalues `e` [..., n], and the eigenvectors `v` [..., n, n] in
        columns.

    Raises:
        InvalidArgumentError: A matrix holds values that are not finite.

    Example:
        >>> eigh([[2.0, 0.0], [0.0, 1.0]]).e.numpy()
        array([1., 2.], dtype=float32)
    """
    e, v = _ops.eigh(matrices("eigh", tensor))
    return Eigh(e, v)


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Compute the eigenvalues of symmetric matrices, in ascending order; see `eigh`.

    Args:
        tensor: Matrices: floats of shape [..., n, n]. Only the lower triangle is read.
        name: Ignored.

    Returns:
        A tensor [..., n], in the dtype of `tensor`.

    Example:
        >>> eigvalsh([[0.0, 1.0], [1.0, 0.0]]).numpy()
        array([-1.,  1.], dtype=float32)
    """
    return _ops.eigvalsh(matrices("eigvalsh", tensor))


def _precision(x: Tensor) -> float:
    return 2.0**-52 if x._dtype == "float64" else 2.0**-23


def _longer_side(x: Tensor) -> int:
    return max(int(size) for size in x.shape[-2:])


def matrix_rank(a: TensorLike, tol: TensorLike | None = None, validate_args: bool = False,
                name: str | None = None) -> Tensor:  # fmt: skip
    """Count the singular values above a limit.

    Args:
        a: Matrices: floats of shape [..., m, n].
        tol: The limit; default the largest singular value * max(m, n) * the precision of the dtype.
        validate_args: Ignored.
        name: Ignored.

    Returns:
        An int32 tensor [...].

    Example:
        >>> int(matrix_rank([[1.0, 1.0], [1.0, 1.0]]))
        1
    """
    x = matrices("matrix_rank", a)
    s = _ops.singular_values(x)
    if tol is None:
        limit = _ops.reduce_max(s, axes=[-1], keepdims=True) * (_longer_side(x) * _precision(x))
    else:
        limit = match(tol, s)
        limit = _ops.expand_dims(limit, axes=[limit._rank]) if limit._rank else limit
    return _ops.reduce_sum(_ops.cast(s > limit, dtype="int32"), axes=[-1], keepdims=False)


def pinv(a: TensorLike, rcond: TensorLike | None = None, validate_args: bool = False,
         name: str | None = None) -> Tensor:  # fmt: skip
    """Compute the Moore-Penrose pseudo-inverses of matrices.

    Args:
        a: Matrices: floats of shape [..., m, n].
        rcond: Singular values up to `rcond` times the largest count as 0; default 10 * max(m, n) *
            the precision of the dtype.
        validate_args: Ignored.
        name: Ignored.

    Returns:
        A tensor [..., n, m], in the dtype of `a`.

    Example:
        >>> pinv([[2.0], [0.0]]).numpy()
        array([[0.5, 0. ]], dtype=float32)
    """
    x = matrices("pinv", a)
    s, u, v = _ops.svd(x)
    share = match(10.0 * _longer_side(x) * _precision(x) if rcond is None else rcond, s)
    share = _ops.expand_dims(share, axes=[share._rank]) if share._rank else share
    counts = s > _ops.reduce_max(s, axes=[-1], keepdims=True) * share
    ones = _ops.full_like(s, value=1.0)
    inverted = _ops.select(counts, ones / _ops.select(counts, s, ones), ones * 0.0)
    return _ops.matmul(v * _ops.expand_dims(inverted, axes=[s._rank - 1]), turned(u))


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the exponentials of matrices: Σ aⁿ / n!.

    The method is scaling and squaring (Higham, 2005), the gradient that of Mathias (1996).

    Args:
        input: Matrices: floats of shape [..., n, n]. Values that are not finite give NaN.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Example:
        >>> expm([[0.0, 1.0], [0.0, 0.0]]).numpy()
        array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    return _ops.matrix_exponential(matrices("expm", input))
