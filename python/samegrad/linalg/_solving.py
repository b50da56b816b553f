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
    """Compute the lower triangular L with L Lᵀ = a for symmetric positive definite matrices.

    The gradient is symmetric (Murray, "Differentiation of the Cholesky decomposition", 2016).

    Args:
        input: Matrices: floats of shape [..., n, n]. Only the lower triangle is read.
        name: Ignored.

    Returns:
        Lower triangular matrices of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: A matrix is not positive definite; the message names it.
        ValueError: The matrices are not square.

    Example:
        >>> cholesky([[4.0, 2.0], [2.0, 2.0]]).numpy()
        array([[2., 0.],
               [1., 1.]], dtype=float32)
    """
    return _ops.cholesky(matrices("cholesky", input))


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """Solve a x = rhs for x, given `cholesky(a)`.

    Args:
        chol: Lower triangular matrices [..., n, n], as `cholesky` returns them.
        rhs: Right-hand sides: floats of shape [..., n, k]; the leading axes broadcast.
        name: Ignored.

    Returns:
        The solutions x: a tensor [..., n, k].

    Example:
        >>> cholesky_solve([[2.0]], [[8.0]]).numpy()
        array([[2.]], dtype=float32)
    """
    lower, right = matched("cholesky_solve", chol, rhs)
    return _ops.triangular_solve(lower, _ops.triangular_solve(lower, right), adjoint=True)


def triangular_solve(matrix: TensorLike, rhs: TensorLike, lower: bool = True,
                     adjoint: bool = False, name: str | None = None) -> Tensor:  # fmt: skip
    """Solve a x = rhs for x with triangular matrices a.

    Args:
        matrix: Matrices: floats of shape [..., n, n]. Only one triangle is read.
        rhs: Right-hand sides: floats of shape [..., n, k]; the leading axes broadcast.
        lower: Read the lower triangle; False: the upper one.
        adjoint: Solve with the transpose of that triangle.
        name: Ignored.

    Returns:
        The solutions x: a tensor [..., n, k].

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
    """Solve a x = rhs for x by LU decomposition with row pivots.

    Args:
        matrix: Matrices: floats of shape [..., n, n].
        rhs: Right-hand sides: floats of shape [..., n, k]; the leading axes broadcast.
        adjoint: Solve with the transposes of the matrices.
        name: Ignored.

    Returns:
        The solutions x: a tensor [..., n, k].

    Raises:
        InvalidArgumentError: A matrix is singular; the message names it.

    Example:
        >>> solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).numpy()
        array([[1. ],
               [0.5]], dtype=float32)
    """
    a, b = matched("solve", matrix, rhs)
    return _ops.matrix_solve(a, b, adjoint=bool(adjoint))


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Invert matrices.

    Args:
        input: Matrices: floats of shape [..., n, n].
        adjoint: Return the transposes of the inverses.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        InvalidArgumentError: A matrix is singular; the message names it.

    Example:
        >>> inv([[2.0, 0.0], [0.0, 4.0]]).numpy()
        array([[0.5 , 0.  ],
               [0.  , 0.25]], dtype=float32)
    """
    return _ops.matrix_inverse(matrices("inv", input), adjoint=bool(adjoint))


def det(input: TensorLike, name: str | None = None) -> Tensor:
    """Compute the determinants of matrices.

    The gradient needs the inverse, so it exists for regular matrices only, as in TensorFlow.

    Args:
        input: Matrices: floats of shape [..., n, n].
        name: Ignored.

    Returns:
        A tensor [...], in the dtype of `input`; 1 for empty matrices.

    Example:
        >>> float(det([[1.0, 2.0], [3.0, 4.0]]))
        -2.0
    """
    return _ops.determinant(matrices("det", input))


def slogdet(input: TensorLike, name: str | None = None) -> LogDet:
    """Compute the signs of determinants and the logarithms of their absolute values.

    Args:
        input: Matrices: floats of shape [..., n, n].
        name: Ignored.

    Returns:
        A named tuple (sign, log_abs_determinant), both [...]; 0 and -inf for a singular matrix.

    Example:
        >>> float(slogdet([[0.0, 1.0], [1.0, 0.0]]).sign)
        -1.0
    """
    sign, logarithm = _ops.slogdet(matrices("slogdet", input))
    return LogDet(sign, logarithm)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Compute the logarithms of the determinants of symmetric positive definite matrices.

    Args:
        matrix: Matrices: floats of shape [..., n, n].
        name: Ignored.

    Returns:
        A tensor [...], in the dtype of `matrix`.

    Raises:
        InvalidArgumentError: A matrix is not positive definite.

    Example:
        >>> float(logdet([[1.0, 0.0], [0.0, 1.0]]))
        0.0
    """
    roots = _ops.log(diag_part(cholesky(matrix)))
    return _ops.reduce_sum(roots, axes=[-1], keepdims=False) * 2.0


def lu(input: TensorLike, output_idx_type: DTypeLike = "int32", name: str | None = None) -> Lu:
    """Compute the LU decomposition with row pivots: row p[i] of a is row i of L U.

    Args:
        input: Matrices: floats of shape [..., n, n].
        output_idx_type: "int32" or "int64", the dtype of the permutation.
        name: Ignored.

    Returns:
        A named tuple: `lu` [..., n, n] holds U, and below its diagonal L, whose diagonal is 1; `p`
        [..., n] is the permutation.

    Raises:
        InvalidArgumentError: A matrix is singular; the message names it.

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
    """Return row places[i] of each matrix in row i."""
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
    """Return L, with 1 on the diagonal, and U."""
    ones = diag(_ops.full_like(diag_part(lower_upper), value=1.0))
    lower = band_part(lower_upper, -1, 0) - diag(diag_part(lower_upper)) + ones
    return lower, band_part(lower_upper, 0, -1)


def lu_solve(lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike,
             validate_args: bool = False, name: str | None = None) -> Tensor:  # fmt: skip
    """Solve a x = rhs for x, given `lu(a)`.

    Args:
        lower_upper: The matrices of `lu`: [..., n, n].
        perm: The permutation of `lu`: [..., n].
        rhs: Right-hand sides: floats [..., n, k], with the leading axes of the matrices.
        validate_args: Ignored: shapes are always checked.
        name: Ignored.

    Returns:
        The solutions x: a tensor [..., n, k].

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
    """Reconstruct the matrices from their `lu`.

    Args:
        lower_upper: The matrices of `lu`: [..., n, n].
        perm: The permutation of `lu`: [..., n].
        validate_args: Ignored: shapes are always checked.
        name: Ignored.

    Returns:
        A tensor [..., n, n].

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
    """Invert matrices, given their `lu`.

    Args:
        lower_upper: The matrices of `lu`: [..., n, n].
        perm: The permutation of `lu`: [..., n].
        validate_args: Ignored: shapes are always checked.
        name: Ignored.

    Returns:
        A tensor [..., n, n].

    Example:
        >>> lu_matrix_inverse(*lu([[2.0]])).numpy()
        array([[0.5]], dtype=float32)
    """
    packed = matrices("lu_matrix_inverse", lower_upper)
    ones = diag(_ops.full_like(diag_part(packed), value=1.0))
    return lu_solve(packed, perm, ones)


def lstsq(matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True,
          name: str | None = None) -> Tensor:  # fmt: skip
    """Find the x that minimizes |a x - rhs|² + l2_regularizer |x|².

    Args:
        matrix: Matrices a: floats of shape [..., m, n].
        rhs: Right-hand sides: floats of shape [..., m, k]; the leading axes broadcast.
        l2_regularizer: A number, 0 or more.
        fast: Use the Cholesky decomposition of the normal equations in float64, which needs full
            rank. False: use singular values, which give the shortest x, without a regularizer.
        name: Ignored.

    Returns:
        A tensor [..., n, k].

    Raises:
        InvalidArgumentError: The normal equations are singular.
        ValueError: The regularizer is negative, or not 0 with fast=False.

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
    """Return the pseudo-inverse, by what rounding leaves of the singular values."""
    s, u, v = _ops.svd(a)
    count = max(int(size) for size in a.shape[-2:])
    least = 2.0**-52 if a._dtype == "float64" else 2.0**-23
    largest = _ops.reduce_max(s, axes=[-1], keepdims=True)
    counts = s > largest * (count * least)
    ones = _ops.full_like(s, value=1.0)
    inverted = _ops.select(counts, ones / _ops.select(counts, s, ones), ones * 0.0)
    return _ops.matmul(v * _ops.expand_dims(inverted, axes=[s._rank - 1]), turned(u))
