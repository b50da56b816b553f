"""Functions that move the elements of tensors, under TensorFlow's names."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._ops.repeats import counts_of_slices, repeated_each
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.axes import axes_of, axis_in, axis_of
from samegrad._tensor.tensor import (
    Dim,
    Tensor,
    TensorLike,
    alike,
    convert_to_tensor,
    dim_of,
    dims_of,
    pair,
    with_dims,
)

_MOST_SIZES = 16  # of a shape that a program writes down
_ops = _core.ops
_MAX_EMPTY_PARTS = 1 << 20


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Cast the elements to another dtype; floats are truncated towards zero for integers.

    Example:
        >>> cast([1.9], "int32").numpy()
        array([1], dtype=int32)
    """
    tensor = convert_to_tensor(x)
    wanted = as_dtype(dtype).name
    if tensor._dtype == wanted:
        return tensor
    return with_dims(_ops.cast(tensor, dtype=wanted), getattr(tensor, "_dims", None))


def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """Return a tensor with the same values.

    Args:
        input: A tensor of any dtype and shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`.

    Example:
        >>> float(identity(1.0))
        1.0
    """
    return _ops.identity(convert_to_tensor(input))


def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the tensor, and let no gradient flow through it.

    Args:
        input: A tensor of any dtype and shape.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `input`, constant to every gradient.

    Example:
        >>> float(stop_gradient(1.0))
        1.0
    """
    return _ops.stop_gradient(convert_to_tensor(input))


def matmul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False,
           adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
           b_is_sparse: bool = False, output_type: DTypeLike | None = None, grad_a: bool = False,
           grad_b: bool = False, name: str | None = None) -> Tensor:  # fmt: skip
    """Multiply matrices [..., m, k] by matrices [..., k, n]; the leading axes broadcast.

    Args:
        a: A tensor of numbers with at least two axes.
        b: A tensor of the same dtype with at least two axes.
        transpose_a: Transpose the last two axes of `a` first.
        transpose_b: Transpose the last two axes of `b` first.
        adjoint_a: Transpose `a`, and conjugate complex numbers.
        adjoint_b: Transpose `b`, and conjugate complex numbers.
        a_is_sparse: Ignored.
        b_is_sparse: Ignored.
        output_type: The dtype of the computation and the result; None: that of the operands.
        grad_a: Ignored.
        grad_b: Ignored.
        name: Ignored.

    Returns:
        A tensor [..., m, n].

    Raises:
        ValueError: The inner sizes differ.

    Example:
        >>> matmul([[1.0, 2.0]], [[3.0], [4.0]]).numpy()
        array([[11.]], dtype=float32)
    """
    if output_type is not None:
        a, b = (cast(each, output_type) for each in pair(a, b))
    return _ops.matmul(
        *pair(a, b), transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b
    )


def shape(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Return the shape of a tensor on this replica.

    Args:
        input: A tensor of any dtype and shape.
        out_type: "int32" (default) or "int64", the dtype of the result.
        name: Ignored.

    Returns:
        A vector of the sizes of the axes.

    Example:
        >>> shape([[1.0, 2.0]]).numpy()
        array([1, 2], dtype=int32)
    """
    x = convert_to_tensor(input)
    return cast(with_dims(_ops.dimension_sizes(x), x.shape), out_type or "int32")


def size(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Count the elements of a tensor on this replica.

    Args:
        input: A tensor of any dtype and shape.
        out_type: "int32" (default) or "int64", the dtype of the result.
        name: Ignored.

    Returns:
        An integer scalar.

    Example:
        >>> int(size([[1.0, 2.0]]))
        2
    """
    x = convert_to_tensor(input)
    return cast(_ops.size_of(x, axes=axes_of(x, None)), out_type or "int32")


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the number of axes of a tensor.

    Args:
        input: A tensor of any dtype and shape.
        name: Ignored.

    Returns:
        An int32 scalar.

    Example:
        >>> int(rank([[1.0, 2.0]]))
        2
    """
    return convert_to_tensor(np.int32(convert_to_tensor(input)._rank))


def reshape(tensor: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """Return the same elements in another shape.

    In a traced function a size may depend on the batch: x.shape[0], tf.shape(x)[0] or an expression
    of them. Any batch size then runs without a new trace.

    Args:
        tensor: A tensor of any dtype and shape.
        shape: The new shape, a list of integers or a 1-D integer tensor; one size may be -1, which
            takes the rest.
        name: Ignored.

    Returns:
        A tensor of that shape, in the dtype of `tensor`.

    Raises:
        ValueError: The shape does not have as many elements.

    Example:
        >>> reshape([1.0, 2.0, 3.0, 4.0], (2, -1)).numpy()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
    """
    x = convert_to_tensor(tensor)
    return _with_dims_of(x, _sizes.reshape(x, _sizes.without_rest(x, shape)))


def transpose(a: TensorLike, perm: Any = None, conjugate: bool = False,
              name: str | None = None) -> Tensor:  # fmt: skip
    """Permute the axes of a tensor.

    Args:
        a: A tensor of any dtype and shape.
        perm: The axis of `a` for each axis of the result; None: all in reverse order.
        conjugate: Conjugate complex numbers.
        name: Ignored.

    Returns:
        A tensor with the permuted axes, in the dtype of `a`.

    Raises:
        TypeError: `perm` is not a list of axes.

    Example:
        >>> transpose([[1.0, 2.0]]).numpy()
        array([[1.],
               [2.]], dtype=float32)
    """
    x = convert_to_tensor(a)
    if perm is None:
        return _ops.transpose(x, perm=list(range(x._rank))[::-1])
    rank: int = x._rank
    if not hasattr(perm, "__iter__"):
        raise TypeError(f"[transpose] perm must be a list of axes: got {shown(perm)}.")
    axes = [_sizes.whole(axis, "an axis is an integer") for axis in perm]
    return _ops.transpose(x, perm=[axis + rank if axis < 0 else axis for axis in axes])


def expand_dims(input: TensorLike, axis: int, name: str | None = None) -> Tensor:
    """Insert an axis of size 1.

    Args:
        input: A tensor of any dtype and shape.
        axis: The position of the new axis in the result, negative from the end.
        name: Ignored.

    Returns:
        A tensor with one more axis, in the dtype of `input`.

    Raises:
        InvalidArgumentError: The result has no such axis.

    Example:
        >>> expand_dims([1.0, 2.0], 1).numpy()
        array([[1.],
               [2.]], dtype=float32)
    """
    x = convert_to_tensor(input)
    return _with_dims_of(x, _ops.expand_dims(x, axes=[axis_in(x._rank + 1, axis)]))


def squeeze(input: TensorLike, axis: Any = None, name: str | None = None) -> Tensor:
    """Remove axes of size 1.

    Args:
        input: A tensor of any dtype and shape.
        axis: The axes to remove, one or a list; None: all of size 1.
        name: Ignored.

    Returns:
        A tensor without those axes, in the dtype of `input`.

    Raises:
        InvalidArgumentError: An axis has another size than 1.

    Example:
        >>> squeeze([[1.0, 2.0]]).numpy()
        array([1., 2.], dtype=float32)
    """
    x = convert_to_tensor(input)
    axes = _ones_of(x) if axis is None else axes_of(x, axis)
    return _with_dims_of(x, _ops.squeeze(x, axes=axes))


def _ones_of(x: Tensor) -> list[int]:
    """Return the axes of size 1; lengths are asked, and numbers of examples are not."""
    sizes = x.shape if x._symbolic else x._shape
    asked = [i for i, n in enumerate(sizes) if not isinstance(n, Dim) or _sizes.is_length(n)]
    return [i for i in asked if sizes[i] == 1]


def _with_dims_of(sizes: Tensor, moved: Tensor) -> Tensor:
    """A scalar or vector of the same elements knows what sizes they are."""
    if moved._rank > 1 or not moved._symbolic:
        return moved
    written = not sizes._symbolic and "int" in sizes._dtype
    if written and (sizes.shape.num_elements() or 0) <= _MOST_SIZES:
        return with_dims(moved, dims_of(sizes))
    return with_dims(moved, getattr(sizes, "_dims", None))


def _tensors(values: Any) -> list[Tensor]:
    """Return the tensors of a list; an array is copied as a whole, before its parts are."""
    if isinstance(values, np.ndarray):
        values = convert_to_tensor(values)
    values = list(values)
    return alike(*values) if values else []


def concat(values: Any, axis: int, name: str | None = None) -> Tensor:
    """Concatenate tensors along an axis.

    Args:
        values: A list of tensors of one dtype, whose shapes differ along `axis` only.
        axis: The axis, negative from the last.
        name: Ignored.

    Returns:
        A tensor whose size along `axis` is the sum of the sizes.

    Example:
        >>> concat([[1.0], [2.0, 3.0]], 0).numpy()
        array([1., 2., 3.], dtype=float32)
    """
    tensors = _tensors(values)
    joined: Tensor = _ops.concat(*tensors, axis=axis)
    if any(hasattr(t, "_dims") for t in tensors):
        parts = [dims_of(t) for t in tensors]
        if None not in parts:
            return with_dims(joined, [size for part in parts for size in part or ()])
    return joined


def stack(values: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Stack tensors along a new axis.

    Args:
        values: A list of tensors of one shape and dtype.
        axis: The position of the new axis in the result, negative from the end.
        name: Ignored.

    Returns:
        A tensor with one more axis, whose size is the number of tensors.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> stack([[1.0], [2.0]]).numpy()
        array([[1.],
               [2.]], dtype=float32)
    """
    tensors = _tensors(values)
    for tensor in tensors[1:]:
        if not _sizes.may_be_as_large(tensors[0], tensor):
            raise ValueError(
                f"[stack] the tensors must have one shape: got {tensors[0]._shape} and "
                f"{tensor._shape}; use reshape, or concat for sizes that differ."
            )
    return concat([expand_dims(t, axis) for t in tensors], axis)


def unstack(value: TensorLike, num: int | None = None, axis: int = 0,
            name: str | None = None) -> list[Tensor]:  # fmt: skip
    """Split a tensor along an axis into tensors without it.

    Args:
        value: A tensor of any dtype with at least one axis.
        num: The size of the axis, for axes whose size is unknown; None: the size itself.
        axis: The axis, negative from the last.
        name: Ignored.

    Returns:
        A list of tensors, one for each index of the axis.

    Example:
        >>> [float(x) for x in unstack([1.0, 2.0])]
        [1.0, 2.0]
    """
    x = convert_to_tensor(value)
    axis = axis_of(x, axis)
    size = dim_of(x, axis)
    count = int(size) if num is None else _sizes.whole(num)
    if isinstance(size, int) and count != size:
        raise ValueError(
            f"[unstack] num must be {size}, the size of axis {axis}: got {count}; leave num out."
        )
    parts = split(x, count, axis)
    return [_ops.squeeze(part, axes=[axis]) for part in parts]


def split(value: TensorLike, num_or_size_splits: int | Sequence[int], axis: int = 0,
          num: int | None = None, name: str | None = None) -> list[Tensor]:  # fmt: skip
    """Split a tensor into consecutive slices along an axis.

    Args:
        value: A tensor of any dtype with at least one axis.
        num_or_size_splits: The number of equal slices, or a list of their sizes, one of which may
            be -1.
        axis: The axis, negative from the last.
        num: Ignored.
        name: Ignored.

    Returns:
        A list of tensors.

    Raises:
        ValueError: The sizes do not sum to the size of the axis.

    Example:
        >>> [x.numpy().tolist() for x in split([1.0, 2.0, 3.0], [1, 2])]
        [[1.0], [2.0, 3.0]]
    """
    x = convert_to_tensor(value)
    axis = axis_of(x, axis)
    total = dim_of(x, axis)
    sizes: list[Any]
    if isinstance(num_or_size_splits, int):
        parts = _sizes.whole(num_or_size_splits)
        if isinstance(total, int) and parts > max(total, _MAX_EMPTY_PARTS):
            parts = 0  # they do not add up
        sizes = [total // parts] * parts if parts > 0 else []
    else:
        sizes = _sizes.sizes_of(num_or_size_splits)
        if any(_is_rest(size) for size in sizes):
            rest = total - sum(size for size in sizes if not _is_rest(size))
            sizes = [rest if _is_rest(size) else size for size in sizes]
    if sum(sizes) != total or any(isinstance(size, int) and size < 0 for size in sizes):
        if isinstance(num_or_size_splits, int):
            rule = f"the number of parts must divide axis {axis} of size {total}"
            remedy = "give a list of sizes"
        else:
            rule = f"the sizes must sum to {total}, the size of axis {axis}"
            remedy = "give -1 for one of them"
        raise ValueError(f"[split] {rule}: got {shown(num_or_size_splits)}; {remedy}.")
    before = (slice(None),) * axis
    bounds = itertools.accumulate(sizes, initial=0)
    return [x[before + (slice(a, b),)] for a, b in itertools.pairwise(bounds)]  # noqa: RUF005


def _is_rest(size: int | Dim) -> bool:
    return isinstance(size, int) and size == -1


def where(condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None,
          name: str | None = None) -> Tensor:  # fmt: skip
    """Select elements of x or y by a condition, or find where the condition is true.

    Args:
        condition: A bool tensor; without x and y also numbers, which are true unless they are 0.
        x: The elements where the condition is true; it broadcasts with `condition` and `y`.
        y: The elements elsewhere.
        name: Ignored.

    Returns:
        The selected elements, in the broadcast shape. Without x and y the indices of the true
        elements, int64 [count, rank].

    Raises:
        ValueError: One of x and y is missing.
        TypeError: In `Strategy.run` on several replicas without x and y: the number of indices is
            unknown there. A `function` falls back to Python.

    Example:
        >>> where([True, False], 1.0, 2.0).numpy()
        array([1., 2.], dtype=float32)
        >>> where([[True, False], [True, True]]).numpy()
        array([[0, 0],
               [1, 0],
               [1, 1]])
    """
    holds = convert_to_tensor(condition)
    if x is not None and y is not None:
        return _ops.select(holds, *pair(x, y))
    if x is not None or y is not None:
        missing = "y" if y is None else "x"
        raise ValueError(f"[where] x and y belong together: got no {missing}; give both, or none.")
    if holds._symbolic:
        need_python(
            "[where] the number of places depends on the values, which a traced function does not "
            "know: got a condition alone; use where(condition, x, y), or a mask as weights.",
            TypeError,
        )
    return Tensor(np.argwhere(holds.numpy()).astype(np.int64))


def python_number(value: TensorLike) -> float:
    """Return a Python number of a scalar; integers stay exact."""
    if isinstance(value, int | float):
        return value
    number = convert_to_tensor(value)
    if any(size != 1 for size in number._shape):
        raise ValueError(f"[convert_to_tensor] one number is needed: got shape {number._shape}.")
    plain: float = number._item()
    return plain


def _one_hot_dtype(on: TensorLike | None, off: TensorLike | None, dtype: DTypeLike | None) -> str:
    """Return the dtype of the given numbers, which must agree; Python numbers take `dtype`."""
    wanted = None if dtype is None else as_dtype(dtype).name
    found = {}
    for role, value in (("on_value", on), ("off_value", off)):
        if value is None:
            continue
        free = wanted is not None and isinstance(value, int | float)
        lossy = isinstance(value, float) and wanted is not None and as_dtype(wanted).is_integer
        found[role] = wanted if free and not lossy else convert_to_tensor(value)._dtype
    kinds = {kind for kind in (wanted, *found.values()) if kind is not None}
    if len(kinds) > 1:
        given = ", ".join(f"{role} {kind}" for role, kind in found.items())
        raise TypeError(
            f"[one_hot] on_value, off_value and dtype must agree: got {given}, dtype {wanted}; "
            "give both numbers as floats or both as integers."
        )
    return kinds.pop() if kinds else "float32"


def _as_integers(labels: np.ndarray) -> np.ndarray:
    """Return labels as int64; other floats are left for the op to reject."""
    with np.errstate(invalid="ignore"):
        integers = labels.astype(np.int64)
    return integers if np.array_equal(integers, labels) else labels


def one_hot(indices: TensorLike, depth: Any, on_value: TensorLike | None = None,
            off_value: TensorLike | None = None, axis: int | None = None,
            dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:  # fmt: skip
    """Encode indices as vectors that are `on_value` at the index and `off_value` elsewhere.

    An index outside of [0, depth) gives `off_value` everywhere, as in TensorFlow.

    Args:
        indices: A tensor of integers of any shape, or a NumPy array of floats that are integers.
        depth: The size of the new axis.
        on_value: A scalar; default 1.
        off_value: A scalar; default 0.
        axis: The position of the new axis; None or -1: the last.
        dtype: The dtype of the result; default that of the values, or float32.
        name: Ignored.

    Returns:
        A tensor with one more axis, of size `depth`.

    Raises:
        TypeError: The values have different dtypes, or another one than `dtype`.

    Example:
        >>> one_hot([2, 0], 3).numpy()
        array([[0., 0., 1.],
               [1., 0., 0.]], dtype=float32)
    """
    if type(indices) is np.ndarray and indices.dtype.kind == "f":
        indices = _as_integers(indices)
    classes, numbers = _sizes.size_of(depth), convert_to_tensor(indices)
    on = 1 if on_value is None else python_number(on_value)
    off = 0 if off_value is None else python_number(off_value)
    kind = _one_hot_dtype(on_value, off_value, dtype)
    made: Tensor
    if isinstance(classes, Dim) and classes.likes:
        own = expand_dims(cast(numbers, "int64"), -1)
        chosen = _ops.equal(own, _sizes.iota(classes))
        made = where(chosen, convert_to_tensor(on, kind), convert_to_tensor(off, kind))
    else:
        made = _ops.one_hot(
            numbers, depth=_sizes.codes_of([classes])[0], on=on, off=off, dtype=kind
        )
    if axis is None or axis in (-1, made._rank - 1):
        return made
    order = list(range(made._rank - 1))
    order.insert(axis_of(made, axis), made._rank - 1)
    return _ops.transpose(made, perm=order)


def tile(input: TensorLike, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor `multiples[i]` times along axis i.

    Args:
        input: A tensor of any dtype.
        multiples: One integer for each axis: a list or a vector.
        name: Ignored.

    Returns:
        A tensor whose size along axis i is multiplied by `multiples[i]`.

    Example:
        >>> tile([1.0, 2.0], [2]).numpy()
        array([1., 2., 1., 2.], dtype=float32)
    """
    x = convert_to_tensor(input)
    sizes = _sizes.sizes_of(multiples)
    if _sizes.dim_in(sizes) is None:
        return _ops.tile(x, multiples=sizes)
    for axis, count in enumerate(sizes):
        x = _copies(x, count, axis, axis)
    return x


def _copies(x: Tensor, count: int | Dim, axis: int, place: int) -> Tensor:
    """Repeat the whole axis (`place` is `axis`) or each of its elements (`place` is `axis` + 1)."""
    if isinstance(count, int) and count == 1:
        return x
    own = list(x.shape)
    spread = [*own[:place], count, *own[place:]]
    made = _sizes.broadcast(_ops.expand_dims(x, axes=[place]), spread)
    return _sizes.reshape(made, [*own[:axis], own[axis] * count, *own[axis + 1 :]])


def repeat(input: TensorLike, repeats: Any, axis: int | None = None,
           name: str | None = None) -> Tensor:  # fmt: skip
    """Repeat each element, or each slice along an axis.

    Args:
        input: A tensor of any dtype.
        repeats: The number of copies: an integer for all, or one for each element or slice.
        axis: The axis, negative from the last; None: flatten the tensor first.
        name: Ignored.

    Returns:
        A tensor in the dtype of `input`; its size along the axis is the sum of the repeats.

    Raises:
        ValueError: `repeats` has neither one number nor one for each slice, or a number is
            negative.

    Example:
        >>> repeat([1.0, 2.0], 2).numpy(), repeat([1.0, 2.0], [2, 1]).numpy()
        (array([1., 1., 2., 2.], dtype=float32), array([1., 1., 2.], dtype=float32))
    """
    x = convert_to_tensor(input)
    if axis is None:
        x, axis = _ops.reshape(x, shape=[-1]), 0
    counts = counts_of_slices(repeats)
    if counts is not None and counts.size != 1:
        return repeated_each(x, counts, axis_of(x, axis))
    count = _sizes.size_of(repeats if counts is None else counts.item())
    if isinstance(count, Dim):
        axis = axis_of(x, axis)
        return _copies(x, count, axis, axis + 1)
    return _ops.repeat(x, repeats=count, axis=axis)


def reverse(tensor: TensorLike, axis: Any, name: str | None = None) -> Tensor:
    """Reverse the elements along axes.

    Args:
        tensor: A tensor of any dtype.
        axis: The axes, one or a list, negative from the last.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `tensor`.

    Example:
        >>> reverse([1.0, 2.0], [0]).numpy()
        array([2., 1.], dtype=float32)
    """
    x = convert_to_tensor(tensor)
    return _ops.reverse(x, axes=axes_of(x, axis))


def broadcast_to(input: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """Broadcast a tensor to a shape.

    Args:
        input: A tensor of any dtype.
        shape: The new shape: its last axes equal those of `input`, or `input` has size 1 there.
        name: Ignored.

    Returns:
        A tensor of that shape, in the dtype of `input`.

    Example:
        >>> broadcast_to([1.0], (2,)).numpy()
        array([1., 1.], dtype=float32)
    """
    x = convert_to_tensor(input)
    sizes = _sizes.sizes_of(shape)
    return _sizes.broadcast(x, sizes)
