"""Functions on arrays that programs ask for by TensorFlow's names, made of those of `arrays`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DType, DTypeLike, as_dtype
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import cast, identity, reshape, shape, stack
from samegrad._ops.gather import boolean_mask
from samegrad._ops.host_arrays import host_arrays
from samegrad._ops.indexed_slices import on_values
from samegrad._ops.norms import clip_by_value
from samegrad._ops.scatter import scatter_nd, tensor_scatter_nd_update
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.shape import as_shape
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor

_ops = _core.ops


def ensure_shape(x: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """Check the shape of a tensor, and return the tensor.

    Args:
        x: A tensor of any dtype.
        shape: The shape, with None for sizes that are not checked.
        name: Ignored.

    Returns:
        The tensor itself.

    Raises:
        ValueError: The tensor has another shape.

    Example:
        >>> ensure_shape([1, 2], [None]).numpy()
        array([1, 2], dtype=int32)
    """
    tensor = convert_to_tensor(x)
    if shape is not None and not tensor.shape.is_compatible_with(shape):
        raise _core.InvalidArgumentError(
            f"[ensure_shape] the shape must be {as_shape(shape)}: got {tensor.shape}; use reshape."
        )
    return tensor


def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """Return the values of a tensor as a NumPy array, or None if a traced function has none yet.

    Args:
        tensor: A tensor of any dtype.
        partial: Ignored.

    Returns:
        A NumPy array, or None.

    Example:
        >>> get_static_value([1, 2])
        array([1, 2], dtype=int32)
    """
    x = convert_to_tensor(tensor)
    return None if x._symbolic else x.numpy()


def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[Tensor]:
    """Return tensors with the same values.

    Args:
        input: A list of tensors.
        name: Ignored.

    Returns:
        A list of tensors of the same shapes and dtypes.

    Example:
        >>> len(identity_n([1.0, 2.0]))
        2
    """
    return [identity(x) for x in input]


def shape_n(input: Sequence[TensorLike], out_type: DTypeLike = "int32",
            name: str | None = None) -> list[Tensor]:  # fmt: skip
    """Return the shapes of several tensors; see `shape`.

    Args:
        input: A list of tensors.
        out_type: "int32" or "int64", the dtype of the results.
        name: Ignored.

    Returns:
        A list of vectors.

    Example:
        >>> [s.numpy().tolist() for s in shape_n([[1.0], [[2.0]]])]
        [[1], [1, 1]]
    """
    return [shape(x, out_type) for x in input]


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Cast a tensor to another dtype, with values out of its range clipped to its limits.

    Args:
        value: A tensor of real numbers.
        dtype: The new dtype, of real numbers.
        name: Ignored.

    Returns:
        A tensor of the shape of `value` and the dtype `dtype`.

    Raises:
        TypeError: A dtype is bool.

    Example:
        >>> saturate_cast([-5, 300], "uint8").numpy()
        array([  0, 255], dtype=uint8)
    """
    x, kind = convert_to_tensor(value), as_dtype(dtype)
    own = as_dtype(x._dtype)
    if own.is_bool or kind.is_bool:
        raise TypeError(
            f"[saturate_cast] dtypes must be of numbers: got {own.name} and {kind.name}; "
            "see tf.cast."
        )
    (low, high), (least, most) = _limits(own), _limits(kind)
    number = float if own.is_floating else int
    ends = number(max(low, least)), number(min(high, most))
    low, high = (np.asarray(end, own.as_numpy_dtype) for end in ends)
    # Where this type cannot represent the end, the nearest float may be beyond it.
    low = np.nextafter(low, np.zeros_like(low)) if number(low) < least else low
    high = np.nextafter(high, np.zeros_like(high)) if number(high) > most else high
    return cast(clip_by_value(x, low, high), kind)


def _limits(kind: DType) -> tuple[Any, Any]:
    """Return the least and largest number as Python's, which compare exactly."""
    number = float if kind.is_floating else int
    return number(kind.min), number(kind.max)


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Multiply a tensor, or the values of `IndexedSlices`, by a scalar.

    Args:
        scalar: A tensor without axes.
        x: A tensor of numbers, or `IndexedSlices`.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`, or `IndexedSlices`.

    Raises:
        ValueError: `scalar` has axes.

    Example:
        >>> scalar_mul(2.0, [1.0, 3.0]).numpy()
        array([2., 6.], dtype=float32)
    """

    def multiplied(value: TensorLike) -> Tensor:
        tensor = convert_to_tensor(value)
        factor = convert_to_tensor(scalar, dtype_hint=tensor.dtype)
        if factor._rank:
            raise ValueError(f"[scalar_mul] scalar must have no axes: got shape {factor._shape}.")
        return factor * tensor

    found: Tensor = on_values(multiplied, x)
    return found


def slice_(input_: TensorLike, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Extract `size` elements from `begin` along each axis.

    Args:
        input_: A tensor of any dtype.
        begin: The first index along each axis.
        size: The number of elements along each axis; -1 takes the rest.
        name: Ignored.

    Returns:
        A tensor of the shape `size`, in the dtype of `input_`.

    Raises:
        InvalidArgumentError: The slice is not inside of the tensor, or `begin` or `size` does not
            have one number for each axis.

    Example:
        >>> import samegrad as tf
        >>> tf.slice([1.0, 2.0, 3.0], [1], [-1]).numpy()
        array([2., 3.], dtype=float32)
    """
    x = convert_to_tensor(input_)
    first, count = _sizes.places_of(begin), _sizes.sizes_of(size)
    fits = len(first) == len(count) == x._rank
    if not fits or not all(map(_lies_inside, first, count, x.shape)):
        raise InvalidArgumentError(
            f"[slice] begin and size must give a range inside of the tensor for each axis: "
            f"got {tuple(first)} and {tuple(count)} for shape {tuple(x._shape)}."
        )
    ends = [None if n == -1 else b + n for b, n in zip(first, count, strict=True)]
    return x[tuple(map(slice, first, ends))]


def _lies_inside(begin: Any, size: Any, most: Any) -> bool:
    """Tell whether a slice is inside of an axis, as far as the numbers are known."""
    known = [isinstance(n, int) for n in (begin, size, most)]
    if (known[0] and begin < 0) or (known[1] and size < -1):
        return False
    return not all(known) or begin + max(size, 0) <= most


def strided_slice(
    input_: TensorLike, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0,
    var: Any = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Slice a tensor along its first axes, as `x[begin:end:strides]` does.

    Args:
        input_: A tensor of any dtype.
        begin: The first index along each axis.
        end: The index after the last one, along each axis.
        strides: The step along each axis; default 1.
        begin_mask: Bit i set: axis i is sliced from its start.
        end_mask: Bit i set: axis i is sliced to its end.
        ellipsis_mask: Bit i set: entry i stands for all axes in between.
        new_axis_mask: Bit i set: entry i is a new axis.
        shrink_axis_mask: Bit i set: axis i is removed, and its element `begin` is taken.
        var: Ignored.
        name: Ignored.

    Returns:
        A tensor in the dtype of `input_`.

    Example:
        >>> strided_slice([1, 2, 3, 4], [3], [0], [-2]).numpy()
        array([4, 2], dtype=int32)
    """
    first, behind = _sizes.places_of(begin), _sizes.places_of(end)
    steps = [1] * len(first) if strides is None else _sizes.sizes_of(strides)
    key: list[Any] = []
    for i, (b, e, s) in enumerate(zip(first, behind, steps, strict=True)):
        bit = 1 << i
        if bit & ellipsis_mask:
            key.append(...)
        elif bit & new_axis_mask:
            key.append(None)
        elif bit & shrink_axis_mask:
            key.append(b)
        else:
            key.append(slice(None if bit & begin_mask else b, None if bit & end_mask else e, s))
    return convert_to_tensor(input_)[tuple(key)]


def tuple_(tensors: Any, control_inputs: Any = None, name: str | None = None) -> Any:
    """Return tensors that are computed together: the same list.

    Args:
        tensors: A list of tensors.
        control_inputs: Ignored: a step computes all of its effects.
        name: Ignored.

    Returns:
        The list.

    Example:
        >>> tf.tuple([1.0, None])
        [1.0, None]
    """
    return tensors


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """Return a tensor that never changes: the same one.

    Args:
        input: A tensor.
        name: Ignored.

    Returns:
        The tensor.
    """
    return identity(input)


def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Tensor:
    """Compute the shape of two tensors that are broadcast with each other.

    Args:
        shape_x: The sizes of one: a vector of integers.
        shape_y: Those of the other.

    Returns:
        A vector of integers.

    Raises:
        InvalidArgumentError: The shapes cannot be broadcast.

    Example:
        >>> broadcast_dynamic_shape([2, 1], [3]).numpy()
        array([2, 3], dtype=int32)
    """
    first, second = (convert_to_tensor(value) for value in (shape_x, shape_y))
    one, other = host_arrays("broadcast_dynamic_shape", first, second)
    try:
        sizes = np.broadcast_shapes(one.tolist(), other.tolist())
    except ValueError:
        raise InvalidArgumentError(
            "[broadcast_dynamic_shape] sizes must be equal or 1: got "
            f"{one.tolist()} and {other.tolist()}."
        ) from None
    return convert_to_tensor(sizes, as_dtype(first._dtype).name)


def is_symbolic_tensor(tensor: Any) -> bool:
    """Tell whether a tensor belongs to a function that is traced, and has no value yet.

    Args:
        tensor: Any object.

    Returns:
        A bool.

    Example:
        >>> is_symbolic_tensor(convert_to_tensor(1.0))
        False
    """
    return isinstance(tensor, Tensor) and bool(tensor._symbolic)


def dynamic_partition(data: TensorLike, partitions: TensorLike, num_partitions: int,
                      name: str | None = None) -> list[Tensor]:  # fmt: skip
    """Split a tensor into partitions by the number of each element.

    It needs values: a `function` falls back to Python, and `Strategy.run` rejects it on several
    replicas.

    Args:
        data: A tensor whose shape begins with that of `partitions`.
        partitions: The partition of each element, integers in [0, num_partitions).
        num_partitions: The number of partitions.
        name: Ignored.

    Returns:
        A list of `num_partitions` tensors [count, ...].

    Example:
        >>> [x.numpy().tolist() for x in dynamic_partition([1, 2, 3], [1, 0, 1], 2)]
        [[2], [1, 3]]
    """
    x, numbers = convert_to_tensor(data), convert_to_tensor(partitions)
    return [boolean_mask(x, numbers == i) for i in range(_sizes.whole(num_partitions))]


def dynamic_stitch(indices: Sequence[TensorLike], data: Sequence[TensorLike],
                   name: str | None = None) -> Tensor:  # fmt: skip
    """Interleave tensors by index; for equal indices the last value wins.

    Args:
        indices: A list of integer tensors, whose values are known (not those of a traced function).
        data: A list of tensors: the shape of each begins with that of its indices.
        name: Ignored.

    Returns:
        A tensor of shape [largest index + 1, ...].

    Raises:
        ValueError: The lists are empty or differ in length.

    Example:
        >>> dynamic_stitch([[0, 2], [1]], [[1.0, 3.0], [2.0]]).numpy()
        array([1., 2., 3.], dtype=float32)
    """
    places = [np.asarray(convert_to_tensor(i).numpy()) for i in indices]
    parts = [convert_to_tensor(part) for part in data]
    if not places or len(places) != len(parts):
        raise _core.InvalidArgumentError(
            "[dynamic_stitch] there must be as many indices as data, and at least one: got "
            f"{len(places)} for {len(parts)}."
        )
    count = max((int(p.max()) + 1 for p in places if p.size), default=0)
    rest = list(parts[0]._shape[places[0].ndim :])
    made = _ops.broadcast_to(cast(0, parts[0]._dtype), shape=[count, *rest])
    for place, part in zip(places, parts, strict=True):
        if place.size:
            rows = reshape(part, [place.size, *rest])
            made = tensor_scatter_nd_update(made, place.reshape(-1, 1), rows)
    return made


def parallel_stack(values: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """Stack tensors along a new first axis, as `stack` does.

    Args:
        values: A list of tensors of one shape and dtype.
        name: Ignored.

    Returns:
        A tensor of shape [count, ...].

    Example:
        >>> parallel_stack([1, 2]).numpy()
        array([1, 2], dtype=int32)
    """
    return stack(values)


def unravel_index(indices: TensorLike, dims: Any, name: str | None = None) -> Tensor:
    """Convert flat indices into coordinates of an array.

    Args:
        indices: A tensor of integers, flat indices in row-major order.
        dims: The shape of the array.
        name: Ignored.

    Returns:
        A tensor of shape [axes, ...], in the dtype of `indices`.

    Example:
        >>> unravel_index([3, 5], [2, 3]).numpy()
        array([[1, 1],
               [0, 2]], dtype=int32)
    """
    rest, found = convert_to_tensor(indices), []
    for size in reversed(_sizes.sizes_of(dims)):
        found.append(rest % size)
        rest = rest // size
    return stack(found[::-1])


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """Invert a permutation: y[x[i]] = i.

    Args:
        x: A vector that holds each of the integers 0, …, n - 1 once.
        name: Ignored.

    Returns:
        A vector of the same length and dtype.

    Raises:
        ValueError: x is not a vector of integers.

    Example:
        >>> invert_permutation([2, 0, 1]).numpy()
        array([1, 2, 0], dtype=int32)
    """
    order = convert_to_tensor(x)
    if order._rank != 1 or not as_dtype(order._dtype).is_integer:
        raise ValueError(
            f"[invert_permutation] x must have one axis of integers: got {order._dtype} of "
            f"shape {tuple(order._shape)}."
        )
    count = order.shape[0]
    numbers = cast(_sizes.iota(count), order._dtype)
    return scatter_nd(reshape(order, [-1, 1]), numbers, [count])


def group(*inputs: Any, name: str | None = None) -> None:
    """Do nothing: a step needs no grouping of what it computes.

    Args:
        *inputs: Ignored.
        name: Ignored.

    Example:
        >>> group(1.0)
    """


def no_op(name: str | None = None) -> None:
    """Do nothing.

    Example:
        >>> no_op()
    """


__all__ = [
    "dynamic_partition", "dynamic_stitch", "ensure_shape", "get_static_value", "group",
    "identity_n", "invert_permutation", "no_op", "parallel_stack",
    "saturate_cast", "scalar_mul", "shape_n", "strided_slice", "unravel_index",
]  # fmt: skip
