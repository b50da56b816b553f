"""Products and rearrangements of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._ops.complex_arrays import conjugate as conjugated
from samegrad._ops.norms import norm
from samegrad._tensor.complex_tensor import is_complex, of_each_part, to_complex
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.errors import InvalidArgumentError
from samegrad.linalg import _diagonal_bands as _bands
from samegrad.linalg._diagonals import diag, diag_part
from samegrad.linalg._matrices import turned

_ops = _core.ops


def _with_axes(who: str, value: TensorLike, least: int) -> Tensor:
    x = convert_to_tensor(value)
    if x._rank < least:
        raise ValueError(f"[{who}] needs at least {least} axes: got shape {x._shape}.")
    return x


def matrix_transpose(a: TensorLike, name: str | None = None, conjugate: bool = False) -> Tensor:
    """Transpose the last two axes.

    Args:
        a: A tensor of any dtype, of shape [..., m, n].
        name: Ignored.
        conjugate: Conjugate complex numbers.

    Returns:
        A tensor [..., n, m], in the dtype of `a`.

    Example:
        >>> matrix_transpose([[1, 2]]).numpy()
        array([[1],
               [2]], dtype=int32)
    """
    if not is_complex(a):
        return turned(_with_axes("matrix_transpose", a, 2))
    z = of_each_part(matrix_transpose, to_complex(a, "matrix_transpose"))
    return conjugated(z) if conjugate else z  # type: ignore[return-value]


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Transpose the last two axes and conjugate complex numbers.

    Args:
        matrix: A tensor of numbers of shape [..., m, n].
        name: Ignored.

    Returns:
        A tensor [..., n, m], in the dtype of `matrix`.

    Example:
        >>> adjoint([[1.0, 2.0]]).shape
        (2, 1)
    """
    return matrix_transpose(matrix, conjugate=True)


def matvec(a: TensorLike, b: TensorLike, transpose_a: bool = False, adjoint_a: bool = False,
           a_is_sparse: bool = False, b_is_sparse: bool = False,
           name: str | None = None) -> Tensor:  # fmt: skip
    """Multiply matrices by vectors.

    Args:
        a: Matrices: a tensor of numbers of shape [..., m, n].
        b: Vectors: a tensor [..., n] of the same dtype; the leading axes broadcast.
        transpose_a: Transpose the matrices first.
        adjoint_a: Transpose the matrices first, and conjugate complex numbers.
        a_is_sparse: Ignored.
        b_is_sparse: Ignored.
        name: Ignored.

    Returns:
        Vectors: a tensor [..., m].

    Raises:
        ValueError: transpose_a and adjoint_a are both set, or the shapes do not fit.

    Example:
        >>> matvec([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0]).numpy()
        array([3., 7.], dtype=float32)
    """
    if transpose_a and adjoint_a:
        raise ValueError("[matvec] a is turned over once: got transpose_a and adjoint_a; pass one.")
    a, b = pair(a, b)
    x, y = _with_axes("matvec", a, 2), _with_axes("matvec", b, 1)
    column = _ops.expand_dims(y, axes=[y._rank])
    found = _ops.matmul(x, column, transpose_a=bool(transpose_a or adjoint_a))
    return _ops.squeeze(found, axes=[found._rank - 1])


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """Compute the cross product of vectors of three elements along the last axis.

    Args:
        a: A tensor of numbers of shape [..., 3].
        b: A tensor [..., 3] of the same dtype; the leading axes broadcast.
        name: Ignored.

    Returns:
        A tensor [..., 3], in the dtype of the operands.

    Raises:
        ValueError: The last axis does not have three elements.

    Example:
        >>> cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]).numpy()
        array([0., 0., 1.], dtype=float32)
    """
    x, y = (_with_axes("cross", value, 1) for value in pair(a, b))
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise ValueError(f"[cross] vectors have 3 elements: got {x._shape} and {y._shape}.")
    ahead, behind = ([1, 2, 0], [2, 0, 1])

    def moved(v: Tensor, order: list[int]) -> Tensor:
        return _ops.gather(v, convert_to_tensor(order), axis=v._rank - 1)

    return moved(x, ahead) * moved(y, behind) - moved(x, behind) * moved(y, ahead)


def set_diag(input: TensorLike, diagonal: TensorLike, name: str | None = "set_diag",
             k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:  # fmt: skip
    """Replace diagonals of matrices.

    Args:
        input: Matrices: a tensor [..., rows, columns].
        diagonal: The new elements: a tensor [..., length of the diagonal] of the same dtype; of
            several diagonals as `diag_part` returns them.
        name: Ignored.
        k: The diagonal: 0 the main one, positive above it, negative below it. A pair: the lowest
            and the highest of several.
        align: The sides that shorter diagonals are aligned to, as `diag` takes it.

    Returns:
        A tensor of the shape and dtype of `input`.

    Raises:
        ValueError: The diagonal has another length.

    Example:
        >>> set_diag([[1.0, 2.0], [3.0, 4.0]], [0.0, 9.0]).numpy()
        array([[0., 2.],
               [3., 9.]], dtype=float32)
    """
    input, diagonal = pair(input, diagonal)
    x, line = _with_axes("set_diag", input, 2), _with_axes("set_diag", diagonal, 1)
    rows, columns = x.shape[-2:]
    band, align = _bands.limits("set_diag", k), _bands.checked_alignment("set_diag", align)
    count, longest = band[1] - band[0] + 1, _bands.longest_of(rows, columns, band)
    sizes = (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None
    if sizes and (band[0] <= -max(rows, 1) or band[1] >= max(columns, 1)):
        raise InvalidArgumentError(
            f"[set_diag] k must name diagonals of the matrices: got k={shown(k)} for {x._shape}."
        )
    if line.shape[-1] != longest or (count > 1 and (line._rank < 2 or line.shape[-2] != count)):
        raise InvalidArgumentError(
            f"[set_diag] {count} diagonals of matrices {x._shape}, k={shown(k)}, have at most "
            f"{longest} elements: got shape {line._shape}."
        )
    return _bands.placed(line, band, rows, columns, x, align)


def normalize(tensor: TensorLike, ord: Any = "euclidean", axis: Any = None,
              name: str | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Divide a tensor by its norm, and return the norm as well; see `norm`.

    Args:
        tensor: A tensor of floats.
        ord: The norm, as `norm` takes it.
        axis: None: one vector of all elements; an axis of vectors; or a pair, the axes of matrices.
        name: Ignored.

    Returns:
        A pair: the normalized tensor, and the norm with the reduced axes kept as size 1.

    Example:
        >>> normalize([3.0, 4.0])[0].numpy()
        array([0.6, 0.8], dtype=float32)
    """
    x = convert_to_tensor(tensor)
    length = norm(x, ord=ord, axis=axis, keepdims=True)
    return x / length, length


def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """Create a tensor with the given elements where both halves of its index agree.

    Args:
        diagonal: A tensor of numbers with at least one axis.
        name: Ignored.

    Returns:
        A tensor of shape [*diagonal.shape, *diagonal.shape], 0 elsewhere.

    Example:
        >>> tensor_diag([1, 2]).numpy()
        array([[1, 0],
               [0, 2]], dtype=int32)
    """
    x = _with_axes("tensor_diag", diagonal, 1)
    sizes = [int(size) for size in x.shape]
    flat = _ops.reshape(x, shape=[math.prod(sizes)])
    return _ops.reshape(diag(flat), shape=[*sizes, *sizes])


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """Extract the elements of a tensor where both halves of its index agree.

    Args:
        input: A tensor of numbers of shape [*shape, *shape].
        name: Ignored.

    Returns:
        A tensor of shape [*shape].

    Raises:
        ValueError: The two halves of the shape differ.

    Example:
        >>> tensor_diag_part([[1, 2], [3, 4]]).numpy()
        array([1, 4], dtype=int32)
    """
    x = _with_axes("tensor_diag_part", input, 2)
    sizes = [int(size) for size in x.shape]
    half = len(sizes) // 2
    if sizes[:half] != sizes[half:]:
        raise ValueError(
            f"[tensor_diag_part] both halves of the shape must be equal: got {shown(sizes)}."
        )
    count = math.prod(sizes[:half])
    return _ops.reshape(diag_part(_ops.reshape(x, shape=[count, count])), shape=sizes[:half])
