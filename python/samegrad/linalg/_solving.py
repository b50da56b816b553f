"""Linear equations, triangular decompositions, inverses and determinants."""

from __future__ import annotations

from typing import NamedTuple

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.linalg._diagonals import band_part, diag, diag_part
from samegrad.linalg._matrices import matched, matrices, turned

_ops = _core.ops


class Lu(NamedTuple):
    """L (below the diagonal, which is 1) and U in one matrix, and the permutation of the rows."""

    lu: Tensor
    p: Tensor


class LogDet(NamedTuple):
    """Sign and logarithm of determinants."""

    sign: Tensor
    log_abs_determinant: Tensor


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangles L with L Lᵀ = a, of symmetric positive definite matrices.

    The gradient is symmetric (Murray, "Differentiation of the Cholesky decomposition", 2016).

    Args:
        input: Matrices [..., n, n] of floats, of which the lower triangle is read.
        name: Ignored.

    Raises:
        InvalidArgumentError: A matrix is not positive definite; the message says which.
        ValueError: The matrices are not square.

    Example:
        >>> cholesky([[4.0, 2.0], [2.0, 2.0]]).numpy()
        array([[2., 0.],
               [1., 1.]], dtype=float32)
    """
    return _ops.cholesky(matrices("cholesky", input))


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """The x with a x = rhs, of which `cholesky(a)` is given.

    Args:
        chol: Lower triangles [..., n, n].
        rhs: Columns [..., n, k].
        name: Ignored.

    Example:
        >>> cholesky_solve([[2.0]], [[8.0]]).numpy()
        array([[2.]], dtype=float32)
    """
    lower, right = matched("cholesky_solve", chol, rhs)
    return _ops.triangular_solve(lower, _ops.triangular_solve(lower, right), adjoint=True)


def triangular_solve(matrix: TensorLike, rhs: TensorLike, lower: bool = True,
                     adjoint: bool = False, name: str | None = None) -> Tensor:  # fmt: skip
    """The x with a x = rhs, of triangles a.

    Args:
        matrix: Matrices [..., n, n], of which one triangle is read.
        rhs: Columns [..., n, k]; leading axes broadcast.
        lower: Whether that is the lower triangle.
        adjoint: Whether the triangle is turned over after that.
        name: Ignored.

    Raises:
        InvalidArgumentError: There is a 0 on a diagonal.

    Example:
        >>> triangular_solve([[2.0, 0.0], [1.0, 1.0]], [[2.0], [3.0]]).numpy()
        array([[1.],
               [2.]], dtype=float32)
    """
    a, b = matched("triangular_solve", matrix, rhs)
    return _ops.triangular_solve(a, b, lower=bool(lower), adjoint=bool(adjoint))


def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False,
          name: str | None = None) -> Tensor:  # fmt: skip
    """The x with a x = rhs, by LU decomposition with row pivots.

    Args:
        matrix: Regular matrices [..., n, n].
        rhs: Columns [..., n, k]; leading axes broadcast.
        adjoint: Whether a is turned over first.
        name: Ignored.

    Raises:
        InvalidArgumentError: A matrix is singular; the message says which.

    Example:
        >>> solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).numpy()
        array([[1. ],
               [0.5]], dtype=float32)
    """
    a, b = matched("solve", matrix, rhs)
    return _ops.matrix_solve(a, b, adjoint=bool(adjoint))


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of regular matrices, or their transposes.

    Args:
        input: Matrices [..., n, n] of floats.
        adjoint: Whether the inverses are turned over.
        name: Ignored.

    Raises:
        InvalidArgumentError: A matrix is singular; the message says which.

    Example:
        >>> inv([[2.0, 0.0], [0.0, 4.0]]).numpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return _ops.matrix_inverse(matrices("inv", input), adjoint=bool(adjoint))


def det(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinants of matrices.

    The gradient takes the inverse, so it asks for regular matrices, as TensorFlow's does.

    Args:
        input: Matrices [..., n, n] of floats.
        name: Ignored.

    Returns:
        Shape [...]; 1 for matrices without elements.

    Example:
        >>> float(det([[1.0, 2.0], [3.0, 4.0]]))
        -2.0
    """
    return _ops.determinant(matrices("det", input))


def slogdet(input: TensorLike, name: str | None = None) -> LogDet:
    """The signs of determinants, and the logarithms of their absolute values.

    Args:
        input: Matrices [..., n, n] of floats.
        name: Ignored.

    Returns:
        sign and log_abs_determinant of shape [...]: 0 and -inf of a singular matrix.

    Example:
        >>> float(slogdet([[0.0, 1.0], [1.0, 0.0]]).sign)
        -1.0
    """
    sign, logarithm = _ops.slogdet(matrices("slogdet", input))
    return LogDet(sign, logarithm)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The logarithms of the determinants of symmetric positive definite matrices.

    Raises:
        InvalidArgumentError: A matrix is not positive definite.

    Example:
        >>> float(logdet([[1.0, 0.0], [0.0, 1.0]]))
        0.0
    """
    roots = _ops.log(diag_part(cholesky(matrix)))
    return _ops.reduce_sum(roots, axes=[-1], keepdims=False) * 2.0


def lu(input: TensorLike, output_idx_type: DTypeLike = "int32", name: str | None = None) -> Lu:
    """The LU decomposition with row pivots: row p[i] of a is row i of L U.

    Args:
        input: Regular matrices [..., n, n].
        output_idx_type: "int32" or "int64", of the permutation.
        name: Ignored.

    Returns:
        lu [..., n, n], which holds L (below the diagonal, which is 1) and U, and p [..., n].

    Raises:
        InvalidArgumentError: A matrix is singular.

    Example:
        >>> lower_upper, p = lu([[1.0, 2.0], [2.0, 2.0]])
        >>> p.numpy(), lower_upper.numpy()
        (array([1, 0], dtype=int32), array([[2. , 2. ],
               [0.5, 1. ]], dtype=float32))
    """
    kind = as_dtype(output_idx_type).name
    if kind not in ("int32", "int64"):
        raise TypeError(f"[lu] output_idx_type is int32 or int64: got {shown(output_idx_type)}.")
    x = matrices("lu", input)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"[lu] matrices must be square: got shape {x._shape}.")
    packed, order, _ = _ops.lu(x)
    return Lu(packed, _ops.cast(order, dtype=kind))


def _permuted(who: str, rows: Tensor, places: TensorLike) -> Tensor:
    """Row places[i] of each matrix in row i."""
    order = convert_to_tensor(places)
    if order._rank != rows._rank - 1:
        raise ValueError(
            f"[{who}] perm has a number for each row of each matrix: got shape {order._shape} for "
            f"{rows._shape}."
        )
    along = _ops.expand_dims(order, axes=[order._rank])
    along = along + _ops.cast(_ops.full_like(rows, value=0.0), dtype=order._dtype)
    return _ops.take_along_axis(rows, along, axis=rows._rank - 2)


def _triangles(lower_upper: Tensor) -> tuple[Tensor, Tensor]:
    """L, with 1 on the diagonal, and U."""
    ones = diag(_ops.full_like(diag_part(lower_upper), value=1.0))
    lower = band_part(lower_upper, -1, 0) - diag(diag_part(lower_upper)) + ones
    return lower, band_part(lower_upper, 0, -1)


def lu_solve(lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike,
             validate_args: bool = False, name: str | None = None) -> Tensor:  # fmt: skip
    """The x with a x = rhs, of which `lu(a)` is given.

    Args:
        lower_upper: The matrices of `lu`.
        perm: Its permutation.
        rhs: Columns [..., n, k], with the leading axes of the matrices.
        validate_args: Ignored; shapes are always checked.
        name: Ignored.

    Example:
        >>> lu_solve(*lu([[0.0, 2.0], [4.0, 0.0]]), [[2.0], [4.0]]).numpy()
        array([[1.],
               [1.]], dtype=float32)
    """
    packed, right = matched("lu_solve", lower_upper, rhs)
    lower, upper = _triangles(packed)
    half = _ops.triangular_solve(lower, _permuted("lu_solve", right, perm))
    return _ops.triangular_solve(upper, half, lower=False)


def lu_reconstruct(lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False,
                   name: str | None = None) -> Tensor:  # fmt: skip
    """The matrices whose `lu` is given.

    Example:
        >>> lu_reconstruct(*lu([[1.0, 2.0], [4.0, 3.0]])).numpy()
        array([[1., 2.],
               [4., 3.]], dtype=float32)
    """
    packed = matrices("lu_reconstruct", lower_upper)
    rows = _ops.matmul(*_triangles(packed))
    return _permuted("lu_reconstruct", rows, _ops.arg_sort(convert_to_tensor(perm)))


def lu_matrix_inverse(lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False,
                      name: str | None = None) -> Tensor:  # fmt: skip
    """The inverses of the matrices whose `lu` is given.

    Example:
        >>> lu_matrix_inverse(*lu([[2.0]])).numpy()
        array([[0.5]], dtype=float32)
    """
    packed = matrices("lu_matrix_inverse", lower_upper)
    ones = diag(_ops.full_like(diag_part(packed), value=1.0))
    return lu_solve(packed, perm, ones)


def lstsq(matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True,
          name: str | None = None) -> Tensor:  # fmt: skip
    """The x for which |a x - rhs|² + l2_regularizer |x|² is least.

    Args:
        matrix: Matrices [..., m, n] of floats.
        rhs: Columns [..., m, k]; leading axes broadcast.
        l2_regularizer: A number that is not negative.
        fast: By the Cholesky decomposition of the normal equations, in float64, which asks for
            full rank; False: by singular values, the shortest x, without a regularizer.
        name: Ignored.

    Returns:
        Shape [..., n, k].

    Raises:
        InvalidArgumentError: The normal equations are singular.
        ValueError: The regularizer is negative, or there is one though `fast` is False.

    Example:
        >>> lstsq([[1.0], [1.0]], [[1.0], [3.0]]).numpy()
        array([[2.]], dtype=float32)
    """
    a, b = matched("lstsq", matrix, rhs)
    weight = float(l2_regularizer)
    if weight < 0 or (weight > 0 and not fast):
        raise ValueError(
            "[lstsq] l2_regularizer must be 0 or more, and 0 with fast=False: got "
            f"{weight} and fast={fast}."
        )
    if not fast:
        return _ops.matmul(_shortest_inverse(a), b)
    wide, right = (_ops.cast(x, dtype="float64") for x in (a, b))
    tall = wide.shape[-2] >= wide.shape[-1]
    squares = _ops.matmul(wide, wide, transpose_a=bool(tall), transpose_b=not tall)
    if weight:
        squares = squares + diag(_ops.full_like(diag_part(squares), value=weight))
    factor = _ops.cholesky(squares)
    if tall:
        x = cholesky_solve(factor, _ops.matmul(wide, right, transpose_a=True))
    else:
        x = _ops.matmul(wide, cholesky_solve(factor, right), transpose_a=True)
    return _ops.cast(x, dtype=a._dtype)


def _shortest_inverse(a: Tensor) -> Tensor:
    """The pseudo-inverse, by what rounding leaves of the singular values."""
    s, u, v = _ops.svd(a)
    count = max(int(size) for size in a.shape[-2:])
    least = 2.0**-52 if a._dtype == "float64" else 2.0**-23
    largest = _ops.reduce_max(s, axes=[-1], keepdims=True)
    counts = s > largest * (count * least)
    ones = _ops.full_like(s, value=1.0)
    inverted = _ops.select(counts, ones / _ops.select(counts, s, ones), ones * 0.0)
    return _ops.matmul(v * _ops.expand_dims(inverted, axes=[s._rank - 1]), turned(u))
