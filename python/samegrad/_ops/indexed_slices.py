"""Indexed slices: rows of a larger tensor, with their indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad._base.dtypes import DType
from samegrad._ops.scatter import scatter_nd
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor


class IndexedSlices:
    """Slices of a larger tensor along its first axis, for `Variable.scatter_add` and the like.

    Where a tensor is needed, it becomes the dense one, in which slices of equal indices are summed.

    Args:
        values: The slices: a tensor of shape [n, ...].
        indices: The index of each slice along the first axis: integers [n].
        dense_shape: The shape of the larger tensor: sizes, or a tensor of them.

    Example:
        >>> import samegrad as tf
        >>> v = tf.Variable([1.0, 2.0])
        >>> v.scatter_add(tf.IndexedSlices(tf.constant([5.0]), tf.constant([1]))).numpy()
        array([1., 7.], dtype=float32)
        >>> tf.convert_to_tensor(tf.IndexedSlices([3.0, 4.0], [0, 0], dense_shape=[2])).numpy()
        array([7., 0.], dtype=float32)
    """

    def __init__(
        self, values: TensorLike, indices: TensorLike, dense_shape: TensorLike = None
    ) -> None:
        self.values, self.indices = convert_to_tensor(values), convert_to_tensor(indices)
        self.dense_shape = dense_shape

    @property
    def dtype(self) -> DType:
        """The dtype of the slices."""
        return self.values.dtype

    def _as_tensor(self) -> Tensor:
        if self.dense_shape is None:
            raise ValueError(
                "[IndexedSlices] the dense tensor has the shape dense_shape: got None; pass it, "
                "tf.IndexedSlices(values, indices, dense_shape)."
            )
        indices = convert_to_tensor(self.indices)
        return scatter_nd(indices[:, None], self.values, self.dense_shape)

    def __repr__(self) -> str:
        return f"IndexedSlices(values={self.values!r}, indices={self.indices!r})"


def on_values(function: Callable[[Any], Tensor], value: Any) -> Any:
    """Return what a function gives for a tensor; of slices, slices of what it gives for the rows.

    Example:
        >>> on_values(lambda x: 2.0 * x, IndexedSlices([3.0], [1])).values.numpy()
        array([6.], dtype=float32)
    """
    if not isinstance(value, IndexedSlices):
        return function(value)
    return IndexedSlices(function(value.values), value.indices, value.dense_shape)
