"""Sparse tensors as dense ones, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._ops.creation import fill
from samegrad._ops.scatter import scatter_nd, tensor_scatter_nd_update
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import convert_to_tensor
from samegrad._tensor.text import Text, is_text, of_bytes, text_of


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Convert a sparse tensor to a dense one.

    Args:
        sp_input: `SparseTensor` of shape [...].
        default_value: Value of all other elements. None: zeros, or empty strings.
        validate_indices: Must be True.
        name: Ignored.

    Returns:
        Tensor of shape [...], in the dtype of the values.

    Raises:
        InvalidArgumentError: Indices are outside the shape, out of order, or duplicates.
        TypeError: sp_input is not a SparseTensor.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 2])
        >>> tf.sparse.to_dense(few, default_value=-1.0).numpy()
        array([[ 1., -1.],
               [-1.,  2.]], dtype=float32)
    """
    who = "tf.sparse.to_dense"
    found = sparse(sp_input, who)
    if not validate_indices:
        raise NotImplementedError(
            f"[{who}] indices are always looked at: got validate_indices={validate_indices}; leave "
            "it out."
        )
    places, values = found.checked(who)
    if isinstance(found.values, Text):
        default = text_of("" if default_value is None else default_value, who).numpy()
        made = np.empty(found._shape, object)
        made[...] = default
        made[tuple(places.T)] = values
        return of_bytes(made)
    if default_value is None:
        return scatter_nd(places, found.values, found._shape)
    default = convert_to_tensor(default_value, found.values._dtype)
    return tensor_scatter_nd_update(fill(found._shape, default), places, found.values)


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Convert a dense tensor to a sparse one, without zeros or empty strings.

    Args:
        tensor: Tensor of numbers or strings.
        name: Ignored.

    Returns:
        `SparseTensor` of the same shape and dtype.

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.from_dense([[0, 7], [0, 0]]).indices.numpy()
        array([[0, 1]])
    """
    dense = Text(tensor).encoded if is_text(tensor) else convert_to_tensor(tensor).numpy()
    there = dense != b"" if dense.dtype == object else dense != 0
    values = dense[there]
    made: Any = of_bytes(values) if values.dtype == object else values
    return SparseTensor(np.argwhere(there), made, dense.shape)


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Sort the values by index, in row-major order.

    Args:
        sp_input: `SparseTensor`.
        name: Ignored.

    Returns:
        `SparseTensor` of the same values in canonical order.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[1], [0]], [5, 6], [2])
        >>> tf.sparse.reorder(few).values.numpy()
        array([6, 5], dtype=int32)
    """
    found = sparse(sp_input, "tf.sparse.reorder")
    places = found.indices.numpy()
    order = np.lexsort(places.T[::-1]) if places.size else np.arange(len(places))
    values = found.values
    taken: Any = values[order] if isinstance(values, Text) else values.numpy()[order]
    return SparseTensor(places[order], taken, found.dense_shape)


def sparse(value: Any, who: str) -> SparseTensor:
    if not isinstance(value, SparseTensor):
        raise TypeError(
            f"[{who}] a SparseTensor is needed: got {shown(value)}; a dense tensor needs no change."
        )
    return value
