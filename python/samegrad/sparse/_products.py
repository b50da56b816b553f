"""Products of sparse and dense matrices."""

from __future__ import annotations

from typing import Any

from samegrad import math
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import expand_dims, transpose
from samegrad._ops.gather import gather
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Multiply two matrices, one of them sparse; gradients flow to all values.

    Args:
        sp_a: Sparse matrix of shape [m, k], or a dense one if b is sparse.
        b: Dense matrix of shape [k, n], or a sparse one.
        adjoint_a: If True, transpose the first matrix.
        adjoint_b: If True, transpose the second matrix.
        name: Ignored.

    Returns:
        Tensor of shape [m, n], in the dtype of the matrices.

    Raises:
        TypeError: Neither or both are sparse, or their dtypes differ.
        ValueError: The arguments are not matrices, or their sizes do not fit.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
        >>> tf.sparse.sparse_dense_matmul(few, [[1.0], [10.0]]).numpy().tolist()
        [[20.0], [3.0]]
    """
    if isinstance(sp_a, SparseTensor) == isinstance(b, SparseTensor):
        raise TypeError(
            "[sparse_dense_matmul] one matrix must be sparse and the other dense: got "
            f"{shown(sp_a)} and {shown(b)}; see tf.sparse.from_dense and to_dense."
        )
    if isinstance(b, SparseTensor):  # (Bᵀ Aᵀ)ᵀ
        return transpose(_product(b, convert_to_tensor(sp_a), not adjoint_b, not adjoint_a))
    return _product(sp_a, convert_to_tensor(b), adjoint_a, adjoint_b)


def _product(few: SparseTensor, dense: Tensor, adjoint_few: bool, adjoint_dense: bool) -> Tensor:
    if len(few.shape) != 2 or dense._rank != 2:
        raise InvalidArgumentError(
            f"[sparse_dense_matmul] matrices are needed: got shapes {tuple(few.shape)} and "
            f"{tuple(dense._shape)}."
        )
    if few.dtype != dense.dtype:
        raise TypeError(
            f"[sparse_dense_matmul] both must have one dtype: got {few.dtype.name} and "
            f"{dense._dtype}; use tf.cast."
        )
    rows, columns = (1, 0) if adjoint_few else (0, 1)
    right = transpose(dense) if adjoint_dense else dense
    if few.shape[columns] != right._shape[0]:
        raise InvalidArgumentError(
            "[sparse_dense_matmul] inner sizes must be equal: got "
            f"{few.shape[columns]} and {right._shape[0]} of the shapes {tuple(few.shape)} and "
            f"{tuple(dense._shape)}."
        )
    places = few.indices
    addends = gather(right, places[:, columns]) * expand_dims(few.values, -1)
    total: Tensor = math.unsorted_segment_sum(addends, places[:, rows], few.shape[rows])
    return total


__all__ = ["sparse_dense_matmul"]
