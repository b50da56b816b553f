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
    """Q, whose columns are orthogonal and of length 1, and upper triangles R with Q R = a.

    Args:
        input: Matrices [..., m, n] of floats.
        full_matrices: Whether Q is square; its last columns have no derivative then, if m > n.
        name: Ignored.

    Returns:
        q [..., m, k] and r [..., k, n]; k is the smaller of m and n, or m.

    Example:
        >>> q, r = qr([[3.0], [4.0]])
        >>> abs(r.numpy())
        array([[5.]], dtype=float32)
    """
    q, r = _ops.qr(matrices("qr", input), full=bool(full_matrices))
    return Qr(q, r)


def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True,
        name: str | None = None) -> Svd | Tensor:  # fmt: skip
    """Singular values s, descending, and u and v with u diag(s) vᵀ = a.

    The gradient (Townsend, "Differentiating the singular value decomposition", 2016) takes equal
    singular values as if they did not turn into each other.

    Args:
        tensor: Matrices [..., m, n] of floats; NaN comes of numbers that are not finite.
        full_matrices: Whether u and v are square; then only square matrices have a gradient.
        compute_uv: Whether u and v are wanted.
        name: Ignored.

    Returns:
        s [..., k], u [..., m, k] and v [..., n, k] (k the smaller of m and n), or s alone.

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
    """Eigenvalues, ascending, and eigenvectors (columns) of symmetric matrices.

    The gradient (Giles, "Collected matrix derivative results", 2008) lies in the lower triangle.

    Args:
        tensor: Matrices [..., n, n] of floats, of which the lower triangle is read.
        name: Ignored.

    Returns:
        e [..., n] and v [..., n, n].

    Raises:
        InvalidArgumentError: A matrix has numbers that are not finite.

    Example:
        >>> eigh([[2.0, 0.0], [0.0, 1.0]]).e.numpy()
        array([1., 2.], dtype=float32)
    """
    e, v = _ops.eigh(matrices("eigh", tensor))
    return Eigh(e, v)


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Eigenvalues, ascending, of symmetric matrices; see `eigh`.

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
    """How many singular values are above a limit (int32).

    Args:
        a: Matrices [..., m, n] of floats.
        tol: The limit; default the largest singular value times the longer side times the
            precision of the dtype.
        validate_args: Ignored.
        name: Ignored.

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
    """The pseudo-inverses of matrices (Moore and Penrose).

    Args:
        a: Matrices [..., m, n] of floats.
        rcond: Singular values up to so much of the largest count as 0; default 10 times the longer
            side times the precision of the dtype.
        validate_args: Ignored.
        name: Ignored.

    Returns:
        Shape [..., n, m].

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
    """The exponentials of matrices: Σ aⁿ / n!.

    By scaling and squaring (Higham, 2005). The gradient is that of Mathias, 1996.

    Args:
        input: Matrices [..., n, n] of floats; NaN comes of numbers that are not finite.
        name: Ignored.

    Example:
        >>> expm([[0.0, 1.0], [0.0, 0.0]]).numpy()
        array([[1., 1.],
               [0., 1.]], dtype=float32)
    """
    return _ops.matrix_exponential(matrices("expm", input))
