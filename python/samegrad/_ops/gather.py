"""Elements at positions given by indices or a mask: read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.axes import axis_of, counts_examples
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def zeros_of(sizes: list[Any], dtype: str) -> Tensor:
    """Return zeros in a shape that may follow from the examples.

    Example:
        >>> zeros_of([2], "int32").numpy()
        array([0, 0], dtype=int32)
    """
    if _sizes.dim_in(sizes) is None:
        return _ops.zeros(shape=sizes, dtype=dtype)
    return _sizes.full(sizes, dtype)


def check_policy(who: str, bad_indices_policy: str) -> None:
    """Raise NotImplementedError unless indices outside of their axis are errors.

    Example:
        >>> check_policy("gather_nd", "ERROR")
    """
    if bad_indices_policy not in ("", "DEFAULT", "ERROR"):
        raise NotImplementedError(
            f"[{who}] bad_indices_policy must be 'ERROR': got {shown(bad_indices_policy)}; clip "
            "the indices, or multiply by a mask."
        )


class Places:
    """Positions in a tensor given by indices into several axes.

    The tensor becomes a table: its indexed axes are merged into one.

    Args:
        who: The name of the function, for messages.
        like: The tensor that is indexed.
        indices: Integers of shape [..., indexed axes].
        batch_dims: Leading axes that `like` and the indices share.
    """

    def __init__(self, who: str, like: Tensor, indices: TensorLike, batch_dims: int = 0) -> None:
        index = convert_to_tensor(indices)
        last = index._rank - 1
        depth = int(index.shape[-1]) if index._rank and not counts_examples(index, last) else None
        if depth is None or depth > like._rank - batch_dims or batch_dims < 0:
            raise ValueError(
                f"[{who}] the last axis of indices has one index for each of the first axes of a "
                f"tensor that has {like._rank - batch_dims} to index: got indices of shape "
                f"{index._shape}; put the indices of one element on the last axis."
            )
        sizes = list(like.shape)
        slots = math.prod(sizes[batch_dims : batch_dims + depth])
        self.who = who
        self.sizes = sizes
        self.rest = sizes[batch_dims + depth :]
        self.rows = _ops.ravel_index(index, like, batch_dims=batch_dims)
        self.table = _sizes.reshape(like, [*sizes[:batch_dims], slots, *self.rest])

    def check(self, updates: Tensor) -> None:
        """Check that the updates have a row for each index."""
        wanted, given = [*self.rows.shape, *self.rest], list(updates.shape)
        if len(wanted) != len(given) or any(a != b for a, b in zip(wanted, given, strict=True)):
            raise ValueError(
                f"[{self.who}] updates must have the shape of indices without its last axis, then "
                f"the axes that are not indexed, {tuple(wanted)}: got {tuple(given)}; use reshape."
            )

    def added(self, updates: Tensor) -> Tensor:
        """Add the updates to zeros at their indices."""
        self.check(updates)
        return self.whole(_ops.segment_sum(updates, self.rows, self.table, axis=0))

    def whole(self, table: Tensor) -> Tensor:
        """Return a table in the shape of the tensor."""
        return _sizes.reshape(table, self.sizes)


def gather(params: TensorLike, indices: TensorLike, validate_indices: Any = None,
           axis: int | None = None, batch_dims: int = 0,
           name: str | None = None) -> Tensor:  # fmt: skip
    """Gather slices of `params` along an axis by indices.

    Args:
        params: A tensor of any dtype.
        indices: Integers of any shape, in [0, size of the axis).
        validate_indices: Ignored: indices are always checked.
        axis: The indexed axis, negative from the last; default `batch_dims`.
        batch_dims: The number of leading axes that params and indices share: each batch entry has
            its own indices. Negative from the last axis of indices.
        name: Ignored.

    Returns:
        A tensor of shape params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis +
        1:].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of the axis.

    Example:
        >>> gather([10.0, 20.0, 30.0], [2, 0]).numpy()
        array([30., 10.], dtype=float32)
        >>> gather([[1.0, 2.0], [3.0, 4.0]], [[1], [0]], batch_dims=1).numpy()
        array([[2.],
               [3.]], dtype=float32)
    """
    x, places = convert_to_tensor(params), convert_to_tensor(indices)
    dims = _sizes.whole(batch_dims, "batch_dims is an integer")
    dims += places._rank if dims < 0 else 0
    if dims == 0:
        return _ops.gather(x, places, axis=0 if axis is None else axis)
    place = dims if axis is None else axis_of(x, axis)
    if not 0 < dims <= min(place, places._rank):
        raise ValueError(
            "[gather] batch_dims must lie between 0 and the axis and the rank of indices: got "
            f"batch_dims {shown(batch_dims)}, axis {shown(axis)} and indices of shape "
            f"{places._shape}."
        )
    # The axes between the batch and the one that is indexed go behind it, and back.
    between, own = place - dims, places._rank - dims
    before = [*range(dims), place, *range(dims, place), *range(place + 1, x._rank)]
    y = _ops.batch_gather(_ops.transpose(x, perm=before), places, batch_dims=dims)
    moved = [*range(dims + own, dims + own + between), *range(dims, dims + own)]
    rest = range(dims + own + between, y._rank)
    return _ops.transpose(y, perm=[*range(dims), *moved, *rest])


def gather_nd(params: TensorLike, indices: TensorLike, batch_dims: int = 0,
              name: str | None = None, bad_indices_policy: str = "") -> Tensor:  # fmt: skip
    """Gather elements or slices of `params` by indices into its first axes.

    Args:
        params: A tensor of any dtype.
        indices: Integers of shape [..., k]: k indices into axes of params.
        batch_dims: The number of leading axes that params and indices share; the axes after them
            are indexed.
        name: Ignored.
        bad_indices_policy: "ERROR" or "", which means the same.

    Returns:
        A tensor of shape [..., *params.shape[batch_dims + k:]].

    Raises:
        ValueError: The shapes do not fit.
        InvalidArgumentError: An index is outside of its axis.

    Example:
        >>> gather_nd([[1.0, 2.0], [3.0, 4.0]], [[1, 0], [0, 1]]).numpy()
        array([3., 2.], dtype=float32)
    """
    check_policy("gather_nd", bad_indices_policy)
    dims = _sizes.whole(batch_dims, "batch_dims is an integer")
    places = Places("gather_nd", convert_to_tensor(params), indices, dims)
    if dims:
        return _ops.batch_gather(places.table, places.rows, batch_dims=dims)
    return _ops.gather(places.table, places.rows, axis=0)


def boolean_mask(tensor: TensorLike, mask: TensorLike, axis: int | None = None,
                 name: str | None = None) -> Tensor:  # fmt: skip
    """Select the elements or slices of a tensor at which a mask is true.

    Args:
        tensor: A tensor of any dtype.
        mask: Bools, or numbers that are true unless they are 0; its shape is that of the tensor
            from `axis` on, or a prefix of it.
        axis: The first masked axis, negative from the last; default 0.
        name: Ignored.

    Returns:
        A tensor with one axis, the true elements, in place of the mask's axes.

    Raises:
        ValueError: The shapes do not fit.
        TypeError: In `Strategy.run` on several replicas: the number of true elements is unknown
            there. A `function` falls back to Python.

    Example:
        >>> boolean_mask([[1.0, 2.0], [3.0, 4.0]], [True, False]).numpy()
        array([[1., 2.]], dtype=float32)
    """
    x, holds = convert_to_tensor(tensor), convert_to_tensor(mask)
    if holds._symbolic:
        need_python(
            "[boolean_mask] the number of true elements depends on the values, which a traced "
            "function does not know: use the mask as weights, or where(mask, x, y).",
            TypeError,
        )
    first = 0 if axis is None or x._rank == 0 else axis_of(x, axis)
    sizes = list(x.shape)
    own = sizes[first : first + holds._rank]
    if holds._rank == 0 or own != list(holds.shape):
        raise ValueError(
            f"[boolean_mask] the mask must have the tensor's shape from axis {first} on, "
            f"{tuple(sizes[first:])}, or a part of it: got shape {holds._shape}."
        )
    places = np.flatnonzero(holds.numpy()).astype(np.int64)
    joined = [*sizes[:first], math.prod(own), *sizes[first + holds._rank :]]
    return _ops.gather(_sizes.reshape(x, joined), Tensor(places), axis=first)
