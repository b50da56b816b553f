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
    """A tensor with the values in their places.

    Args:
        sp_input: The values and their places.
        default_value: What is elsewhere. None: zeros, or empty text.
        validate_indices: Must be True.
        name: Ignored.

    Returns:
        A tensor or text of the shape that it says.

    Raises:
        InvalidArgumentError: Places are outside, out of order, or there twice.
        TypeError: The input is no SparseTensor.

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
    """The values of a tensor that are not zero, or of text that are not empty.

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.from_dense([[0, 7], [0, 0]]).indices.numpy()
        array([[0, 1]])
    """
    dense = Text(tensor).encoded if is_text(tensor) else convert_to_tensor(tensor)._numpy()
    there = dense != b"" if dense.dtype == object else dense != 0
    values = dense[there]
    made: Any = of_bytes(values) if values.dtype == object else values
    return SparseTensor(np.argwhere(there), made, dense.shape)


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The same values in the order of their places.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[1], [0]], [5, 6], [2])
        >>> tf.sparse.reorder(few).values.numpy()
        array([6, 5], dtype=int32)
    """
    found = sparse(sp_input, "tf.sparse.reorder")
    places = found.indices._numpy()
    order = np.lexsort(places.T[::-1]) if places.size else np.arange(len(places))
    values = found.values
    taken: Any = values[order] if isinstance(values, Text) else values._numpy()[order]
    return SparseTensor(places[order], taken, found.dense_shape)


def sparse(value: Any, who: str) -> SparseTensor:
    if not isinstance(value, SparseTensor):
        raise TypeError(
            f"[{who}] a SparseTensor is needed: got {shown(value)}; a dense tensor needs no change."
        )
    return value
