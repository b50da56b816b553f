"""Sparse tensors along other axes, and what their values have in common along some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from samegrad import math
from samegrad._base.shown import shown
from samegrad._tensor.axes import axes_of, axis_in
from samegrad._tensor.sizes import sizes_of
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.text import Text
from samegrad.errors import InvalidArgumentError, WrongTypeError
from samegrad.sparse._dense import reorder, sparse, to_dense
from samegrad.sparse._joined import taken

Array = NDArray[Any]


def transpose(sp_input: SparseTensor, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Permute the axes of a sparse tensor.

    Args:
        sp_input: `SparseTensor`.
        perm: Permutation of the axes. None: reverse them.
        name: Ignored.

    Returns:
        `SparseTensor` with indices in row-major order.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: perm does not name each axis once.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 2], [1, 0]], [5, 6], [2, 3])
        >>> tf.sparse.to_dense(tf.sparse.transpose(few)).numpy()
        array([[0, 6],
               [0, 0],
               [5, 0]], dtype=int32)
    """
    who = "tf.sparse.transpose"
    found = sparse(sp_input, who)
    rank = len(found._shape)
    order = list(range(rank))[::-1] if perm is None else [int(n) for n in sizes_of(perm)]
    if sorted(order) != list(range(rank)):
        raise InvalidArgumentError(
            f"[{who}] perm must name each of {rank} axes once: got {shown(perm)}."
        )
    sizes = [found._shape[axis] for axis in order]
    return reorder(SparseTensor(found.indices.numpy()[:, order], found.values, sizes))


def reshape(sp_input: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """Reshape a sparse tensor.

    Args:
        sp_input: `SparseTensor`.
        shape: New shape with as many elements; one size may be -1, to be inferred.
        name: Ignored.

    Returns:
        `SparseTensor` of the new shape.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: The numbers of elements differ.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 2], [1, 0]], [5, 6], [2, 3])
        >>> tf.sparse.reshape(few, [-1]).indices.numpy().ravel()
        array([2, 3])
    """
    who = "tf.sparse.reshape"
    found = sparse(sp_input, who)
    wanted, count = [int(n) for n in sizes_of(shape)], int(np.prod(found._shape, dtype=np.int64))
    known = int(np.prod([n for n in wanted if n != -1], dtype=np.int64))
    if wanted.count(-1) == 1 and known and count % known == 0:
        wanted[wanted.index(-1)] = count // known
    if min(wanted, default=0) < 0 or int(np.prod(wanted, dtype=np.int64)) != count:
        raise InvalidArgumentError(
            f"[{who}] shape must have as many elements as {found._shape}: got {shown(shape)}."
        )
    flat = np.ravel_multi_index(tuple(found.indices.numpy().T), found._shape)
    places = np.column_stack(np.unravel_index(flat, tuple(wanted)))
    return SparseTensor(places, found.values, wanted)


def expand_dims(sp_input: SparseTensor, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Insert an axis of size 1.

    Args:
        sp_input: `SparseTensor`.
        axis: Position of the new axis. None: after the last one.
        name: Ignored.

    Returns:
        `SparseTensor` with one more axis.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: axis is out of range.

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.expand_dims(tf.sparse.from_dense([0, 7]), 0).shape
        (1, 2)
    """
    who = "tf.sparse.expand_dims"
    found = sparse(sp_input, who)
    rank = len(found._shape)
    at = axis_in(rank + 1, -1 if axis is None else axis)
    places = np.insert(found.indices.numpy(), at, 0, axis=1)
    return SparseTensor(places, found.values, np.insert(found._shape, at, 1))


def retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """Keep some of the values.

    Args:
        sp_input: `SparseTensor` of n values.
        to_retain: bool, shape [n].

    Returns:
        `SparseTensor` of the kept values, in the same shape.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: to_retain does not have a bool for each value.

    Example:
        >>> import samegrad as tf
        >>> tf.sparse.retain(tf.sparse.from_dense([5, 6, 7]), [True, False, True]).values.numpy()
        array([5, 7], dtype=int32)
    """
    found = sparse(sp_input, "tf.sparse.retain")
    kept = convert_to_tensor(to_retain)
    if tuple(kept._shape) != tuple(found.values._shape) or kept._dtype != "bool":
        raise InvalidArgumentError(
            f"[tf.sparse.retain] to_retain must have a bool for each of {found.values._shape[0]} "
            f"values: got {shown(to_retain)}."
        )
    at = np.flatnonzero(kept.numpy())
    return SparseTensor(found.indices.numpy()[at], taken(found.values, at), found.dense_shape)


def reduce_sum(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None,
    output_is_sparse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Sum the values along axes; gradients flow to all values.

    Args:
        sp_input: `SparseTensor` of numbers.
        axis: Axis or axes to reduce. None: all.
        keepdims: If True, keep reduced axes with size 1.
        output_is_sparse: If True, return a SparseTensor of the elements that have values.
        name: Ignored.

    Returns:
        Tensor or `SparseTensor`, in the dtype of the values.

    Raises:
        TypeError: sp_input is not a SparseTensor of numbers.
        InvalidArgumentError: axis is out of range.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.from_dense([[1, 2, 0], [0, 0, 5]])
        >>> tf.sparse.reduce_sum(few, axis=1).numpy()
        array([3, 5], dtype=int32)
    """
    how = math.unsorted_segment_sum
    return _reduced("tf.sparse.reduce_sum", how, sp_input, axis, bool(keepdims), output_is_sparse)


def reduce_max(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None,
    output_is_sparse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Compute the maximum of the values along axes; 0 where there are no values.

    Args:
        sp_input: `SparseTensor` of numbers.
        axis: Axis or axes to reduce. None: all.
        keepdims: If True, keep reduced axes with size 1.
        output_is_sparse: If True, return a SparseTensor of the elements that have values.
        name: Ignored.

    Returns:
        Tensor or `SparseTensor`, in the dtype of the values.

    Raises:
        TypeError: sp_input is not a SparseTensor of numbers.
        InvalidArgumentError: axis is out of range.

    Example:
        >>> import samegrad as tf
        >>> int(tf.sparse.reduce_max(tf.sparse.from_dense([-5, 0, -3])))
        -3
    """
    how = math.unsorted_segment_max
    return _reduced("tf.sparse.reduce_max", how, sp_input, axis, bool(keepdims), output_is_sparse)


def _reduced(
    who: str, how: Callable[[Any, Any, Any], Tensor], value: Any, axis: Any, keep: bool, few: bool
) -> Any:
    found = sparse(value, who)
    if isinstance(found.values, Text):
        raise WrongTypeError(f"[{who}] values must be numbers: got strings.")
    places, shape = found.checked(who)[0], np.array(found._shape, np.int64)
    over = [axis_in(len(shape), number) for number in axes_of(found, axis)]
    sizes = shape.copy()
    sizes[list(over)] = 1
    moved = np.where(np.isin(np.arange(len(shape)), over), 0, places).reshape(places.shape)
    flat = np.ravel_multi_index(tuple(moved.T), tuple(sizes)) if len(shape) else moved[:, :0].sum(1)
    rows, segments = np.unique(flat, return_inverse=True)
    made = how(found.values, segments.astype(np.int32), len(rows))
    result = SparseTensor(np.column_stack(np.unravel_index(rows, tuple(sizes))), made, sizes)
    if not keep:
        left = np.delete(np.arange(len(shape)), over)
        result = SparseTensor(result.indices.numpy()[:, left], made, sizes[left])
    return result if few else _dense(result, made)


def _dense(few: SparseTensor, values: Tensor) -> Tensor:
    """The tensor; of no axes the one value, or 0 of none."""
    made: Tensor = to_dense(few) if few._shape else math.reduce_sum(values)
    return made


__all__ = ["expand_dims", "reduce_max", "reduce_sum", "reshape", "retain", "transpose"]
