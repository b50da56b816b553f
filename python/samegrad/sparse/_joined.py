"""Concatenation, sum, slices and maps of sparse tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad import math
from samegrad._base.shown import shown
from samegrad._ops.arrays import concat as dense_concat
from samegrad._ops.gather import gather
from samegrad._ops.scatter import tensor_scatter_nd_add
from samegrad._tensor.axes import axis_in
from samegrad._tensor.conversion import convert_to_tensor
from samegrad._tensor.sizes import sizes_of
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text, of_bytes
from samegrad.errors import InvalidArgumentError, WrongTypeError
from samegrad.sparse._dense import sparse


def concat(
    axis: Any, sp_inputs: Sequence[SparseTensor], expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """Concatenate sparse tensors along an axis.

    Args:
        axis: Axis of the concatenation; negative from the last.
        sp_inputs: Non-empty list of `SparseTensor` of one dtype and rank.
        expand_nonconcat_dims: If True, other axes may have different sizes; the result has the
            largest.
        name: Ignored.

    Returns:
        `SparseTensor` with indices in row-major order; gradients flow to all values.

    Raises:
        TypeError: sp_inputs are not sparse, or differ in dtype.
        InvalidArgumentError: sp_inputs is empty, axis is out of range, or the shapes do not fit.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1], [1, 0]], [1, 2], [2, 2])
        >>> tf.sparse.to_dense(tf.sparse.concat(1, [few, few])).numpy()
        array([[0, 1, 0, 1],
               [2, 0, 2, 0]], dtype=int32)
    """
    who = "tf.sparse.concat"
    if not isinstance(sp_inputs, list | tuple):
        raise TypeError(f"[{who}] sp_inputs must be a list: got {shown(sp_inputs)}.")
    parts = [sparse(part, who) for part in sp_inputs]
    if not parts:
        raise InvalidArgumentError(f"[{who}] one sparse tensor or more is needed: got none.")
    _check_dtypes(who, parts)
    at = _axis_of(who, parts, axis)
    others = [np.delete(part._shape, at).tolist() for part in parts]
    if not expand_nonconcat_dims and any(sizes != others[0] for sizes in others):
        raise InvalidArgumentError(
            f"[{who}] sizes off the axis must agree: got shapes {[p._shape for p in parts]} for "
            f"axis {at}; pass expand_nonconcat_dims=True."
        )
    sizes = np.max([part._shape for part in parts], axis=0)
    starts = np.cumsum([0, *(part._shape[at] for part in parts)])
    sizes[at] = starts[-1]
    moved = [part.indices.numpy().copy() for part in parts]
    for places, start in zip(moved, starts[:-1], strict=True):
        places[:, at] += start
    places = np.concatenate(moved)
    order = np.lexsort(places.T[::-1])
    return SparseTensor(places[order], taken(_one_list(parts), order), sizes)


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """Add two tensors of one shape, at least one of them sparse.

    Args:
        a: `SparseTensor`, or a dense tensor.
        b: `SparseTensor`, or a dense tensor, of a's shape and dtype.
        threshold: Sums of two sparse values whose magnitude is smaller are dropped, where both
            tensors have a value (as in TensorFlow). By default all are kept, including zeros.

    Returns:
        `SparseTensor` for two sparse tensors, otherwise a dense tensor. Gradients flow to all
        values.

    Raises:
        TypeError: Both are dense (use `tf.add`), or the dtypes differ.
        InvalidArgumentError: The shapes differ.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1]], [2.0], [1, 2])
        >>> tf.sparse.add(few, few).values.numpy(), tf.sparse.add(few, [[1.0, 1.0]]).numpy()
        (array([4.], dtype=float32), array([[1., 3.]], dtype=float32))
    """
    who = "tf.sparse.add"
    if not isinstance(a, SparseTensor):
        if not isinstance(b, SparseTensor):
            raise TypeError(
                f"[{who}] one of them must be sparse: got {shown(a)} and {shown(b)}; of dense "
                "tensors use samegrad.add."
            )
        a, b = b, a
    both = (a, b if isinstance(b, SparseTensor) else convert_to_tensor(b))
    kinds = [each.values._dtype if isinstance(each, SparseTensor) else each._dtype for each in both]
    if kinds[0] != kinds[1] or "string" in kinds:
        raise WrongTypeError(
            f"[{who}] both must hold numbers of one dtype: got {kinds[0]} and {kinds[1]}; use "
            "samegrad.cast."
        )
    if tuple(both[0]._shape) != tuple(both[1]._shape):
        raise InvalidArgumentError(
            f"[{who}] both must have one shape: got {tuple(a._shape)} and {tuple(both[1]._shape)}."
        )
    if isinstance(both[1], Tensor):
        return tensor_scatter_nd_add(both[1], a.checked(who)[0], a.values)
    return _sum(who, a, b, threshold)


def slice(sp_input: SparseTensor, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Slice a block out of a sparse tensor.

    Args:
        sp_input: `SparseTensor`.
        start: Start of the block, one integer for each axis.
        size: Maximum size of the block, one integer for each axis: it ends where the tensor ends.
        name: Ignored.

    Returns:
        `SparseTensor` of the block.

    Raises:
        TypeError: sp_input is not a SparseTensor.
        InvalidArgumentError: start or size do not have one nonnegative integer for each axis.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1], [1, 2]], [5, 6], [2, 3])
        >>> tf.sparse.to_dense(tf.sparse.slice(few, [0, 1], [2, 2])).numpy()
        array([[5, 0],
               [0, 6]], dtype=int32)
    """
    who = "tf.sparse.slice"
    found = sparse(sp_input, who)
    shape = np.array(found._shape, np.int64)
    begin, most = (np.array(sizes_of(value), np.int64) for value in (start, size))
    if len(begin) != len(shape) or len(most) != len(shape) or any(begin < 0) or any(most < 0):
        raise InvalidArgumentError(
            f"[{who}] start and size must have a number that is not negative for each of "
            f"{len(shape)} axes: got {shown(start)} and {shown(size)}."
        )
    end = np.minimum(begin + most, shape)
    places = found.indices.numpy()
    inside = np.flatnonzero(((places >= begin) & (places < end)).all(axis=1))
    sizes = np.maximum(end - begin, 0)
    return SparseTensor(places[inside] - begin, taken(found.values, inside), sizes)


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """Apply a function to the values of sparse tensors with equal indices.

    Args:
        op: Function that receives values in place of the sparse tensors. Its result has as many
            values.
        *args: Arguments of op, at least one of them sparse.
        **kwargs: Keyword arguments of op.

    Returns:
        `SparseTensor` with the indices of the arguments.

    Raises:
        ValueError: No argument is sparse, the indices differ, or op returns another number of
            values.

    Example:
        >>> import samegrad as tf
        >>> few = tf.sparse.SparseTensor([[0, 1]], [3.0], [1, 2])
        >>> tf.sparse.map_values(tf.add, few, 5.0).values.numpy()
        array([8.], dtype=float32)
    """
    who = "tf.sparse.map_values"
    parts = [each for each in (*args, *kwargs.values()) if isinstance(each, SparseTensor)]
    if not parts:
        raise ValueError(f"[{who}] one argument or more must be a SparseTensor: got {shown(args)}.")
    first = parts[0]
    for part in parts[1:]:
        same = np.array_equal(part.indices.numpy(), first.indices.numpy())
        if not same or part._shape != first._shape:
            raise InvalidArgumentError(
                f"[{who}] sparse tensors must have their values in the same places of one shape: "
                f"got {shown(first)} and {shown(part)}."
            )
    made = op(*map(_values, args), **{name: _values(value) for name, value in kwargs.items()})
    return SparseTensor(first.indices, made, first.dense_shape)


def _values(value: Any) -> Any:
    return value.values if isinstance(value, SparseTensor) else value


def _check_dtypes(who: str, parts: list[SparseTensor]) -> None:
    kinds = sorted({part.values._dtype for part in parts})
    if len(kinds) > 1:
        raise WrongTypeError(
            f"[{who}] sparse tensors must have one dtype: got {kinds}; use samegrad.cast."
        )


def _axis_of(who: str, parts: list[SparseTensor], axis: Any) -> int:
    ranks = sorted({len(part._shape) for part in parts})
    if len(ranks) > 1:
        raise InvalidArgumentError(
            f"[{who}] sparse tensors must have the same number of axes: got {ranks}."
        )
    return axis_in(ranks[0], axis)


def _one_list(parts: list[SparseTensor]) -> Any:
    """All values, one part after the other."""
    columns = [part.values for part in parts]
    if isinstance(columns[0], Text):
        return of_bytes(np.concatenate([column.encoded for column in columns]))
    return dense_concat(columns, 0)


def taken(values: Any, places: Any) -> Any:
    """Some of the values, by their numbers."""
    return values[places] if isinstance(values, Text) else gather(values, places)


def _sum(who: str, a: SparseTensor, b: SparseTensor, threshold: Any) -> SparseTensor:
    flat = [np.ravel_multi_index(tuple(x.checked(who)[0].T), x._shape) for x in (a, b)]
    rows, segments, counts = np.unique(
        np.concatenate(flat), return_inverse=True, return_counts=True
    )
    places = np.column_stack(np.unravel_index(rows, a._shape))
    total = math.unsorted_segment_sum(_one_list([a, b]), segments.astype(np.int32), len(rows))
    least = convert_to_tensor(threshold)
    if least._rank:
        raise InvalidArgumentError(f"[{who}] threshold must be one number: got {shown(threshold)}.")
    if float(least._numpy()) > 0:
        large = np.abs(total._numpy()) >= least._numpy()
        kept = np.flatnonzero((counts == 1) | large)
        places, total = places[kept], gather(total, kept)
    return SparseTensor(places, total, a.dense_shape)


__all__ = ["add", "concat", "map_values", "slice"]
