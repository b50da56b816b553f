"""Helpers shared by the functions of matrices."""

from __future__ import annotations

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair

_ops = _core.ops


def matrices(who: str, value: TensorLike) -> Tensor:
    """Return the value as matrices [..., rows, columns] of floats.

    Raises:
        TypeError: It has other numbers.
        ValueError: It has fewer than 2 axes.

    Example:
        >>> matrices("det", [[1.0]]).shape
        (1, 1)
    """
    x = convert_to_tensor(value)
    if not as_dtype(x._dtype).is_floating:
        raise TypeError(f"[{who}] matrices must hold floats: got {x._dtype}; cast them.")
    if x._rank < 2:
        raise ValueError(
            f"[{who}] a matrix has at least 2 axes: got shape {x._shape}; add axes with reshape."
        )
    return x


def matched(who: str, a: TensorLike, b: TensorLike) -> tuple[Tensor, Tensor]:
    """Return two operands of matrices, one dtype and the same leading axes.

    Example:
        >>> [x.shape for x in matched("solve", [[1.0]], [[[1.0]], [[2.0]]])]
        [(2, 1, 1), (2, 1, 1)]
    """
    x, y = pair(a, b)
    x, y = matrices(who, x), matrices(who, y)
    if tuple(x.shape[:-2]) == tuple(y.shape[:-2]):
        return x, y
    return x + _nothing(y), y + _nothing(x)


def _nothing(x: Tensor) -> Tensor:
    """Return a zero for each matrix, which broadcasts others to as many."""
    zeros = _ops.full_like(x, value=0.0)
    return _ops.reduce_sum(zeros, axes=[x._rank - 2, x._rank - 1], keepdims=True)


def turned(x: Tensor) -> Tensor:
    """Transpose matrices.

    Example:
        >>> turned(matrices("turned", [[1.0, 2.0]])).shape
        (2, 1)
    """
    rank = x._rank
    return _ops.transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])
