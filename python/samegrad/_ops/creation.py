"""Functions that make tensors out of numbers and shapes, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._ops.arrays import cast, reshape, where
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.axes import axis_in
from samegrad._tensor.tensor import Dim, Tensor, TensorLike, convert_to_tensor, dims_of, pair

_ops = _core.ops


# Of bounds of several types, a range has the last.
_WIDER = (
    "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "bfloat16",
    "float16", "float32", "float64",
)  # fmt: skip


def zeros(shape: Any, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Create a tensor of zeros.

    Args:
        shape: A list of integers or a 1-D integer tensor; in a traced function sizes may be tensors
            of it.
        dtype: The dtype of the result.
        name: Ignored.

    Returns:
        A tensor of that shape and dtype.

    Example:
        >>> zeros((2,)).numpy()
        array([0., 0.], dtype=float32)
    """
    sizes = _sizes.sizes_of(shape)
    if _sizes.dim_in(sizes) is not None:
        return _sizes.full(sizes, as_dtype(dtype).name)
    return _ops.zeros(shape=[int(size) for size in sizes], dtype=as_dtype(dtype).name)


def ones(shape: Any, dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:
    """Create a tensor of ones.

    Args:
        shape: A list of integers or a 1-D integer tensor; in a traced function sizes may be tensors
            of it.
        dtype: The dtype of the result.
        name: Ignored.

    Returns:
        A tensor of that shape and dtype.

    Example:
        >>> ones((2,)).numpy()
        array([1., 1.], dtype=float32)
    """
    return _ops.full_like(zeros(shape, dtype), value=1.0)


def fill(dims: Any, value: TensorLike, name: str | None = None) -> Tensor:
    """Create a tensor filled with one value.

    Args:
        dims: The shape. A list of integers or a 1-D integer tensor; in a traced function sizes may
            be tensors of it.
        value: A scalar.
        name: Ignored.

    Returns:
        A tensor of that shape, in the dtype of `value`.

    Example:
        >>> fill((2,), 7.0).numpy()
        array([7., 7.], dtype=float32)
    """
    number = convert_to_tensor(value)
    return _ops.broadcast_like(number, zeros(dims, number._dtype))


def zeros_like(input: TensorLike, dtype: DTypeLike | None = None,
               name: str | None = None) -> Tensor:  # fmt: skip
    """Create a tensor of zeros in the shape of another one.

    Args:
        input: A tensor.
        dtype: The dtype of the result; None: that of `input`.
        name: Ignored.

    Returns:
        A tensor of the shape of `input`.

    Example:
        >>> zeros_like([1.0]).numpy()
        array([0.], dtype=float32)
    """
    x = convert_to_tensor(input)
    return _ops.full_like(x if dtype is None else cast(x, dtype), value=0.0)


def ones_like(input: TensorLike, dtype: DTypeLike | None = None,
              name: str | None = None) -> Tensor:  # fmt: skip
    """Create a tensor of ones in the shape of another one.

    Args:
        input: A tensor.
        dtype: The dtype of the result; None: that of `input`.
        name: Ignored.

    Returns:
        A tensor of the shape of `input`.

    Example:
        >>> ones_like([2.0]).numpy()
        array([1.], dtype=float32)
    """
    x = convert_to_tensor(input)
    return _ops.full_like(x if dtype is None else cast(x, dtype), value=1.0)


def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None,
        dtype: DTypeLike = "float32", name: str | None = None) -> Tensor:  # fmt: skip
    """Create identity matrices: ones on the diagonal, zeros elsewhere.

    Args:
        num_rows: The number of rows.
        num_columns: The number of columns; None: that of the rows.
        batch_shape: The sizes of leading axes; None: one matrix.
        dtype: The dtype of the elements.
        name: Ignored.

    Returns:
        A tensor [*batch_shape, num_rows, num_columns].

    Raises:
        ValueError: A size is negative.

    Example:
        >>> eye(2).numpy()
        array([[1., 0.],
               [0., 1.]], dtype=float32)
        >>> eye(2, batch_shape=[3]).shape
        (3, 2, 2)
    """
    if batch_shape is not None:
        one = eye(num_rows, num_columns, None, dtype)
        return _sizes.broadcast(one, [*_sizes.sizes_of(batch_shape), *one.shape])
    rows = _sizes.size_of(num_rows)
    columns = rows if num_columns is None else _sizes.size_of(num_columns)
    if any(isinstance(size, int) and size < 0 for size in (rows, columns)):
        raise ValueError(
            f"[eye] num_rows and num_columns must not be negative: got {rows} and {columns}; pass "
            "sizes of 0 or more."
        )
    if _sizes.dim_in((rows, columns)) is not None:
        row, column = _ops.expand_dims(_sizes.iota(rows), axes=[1]), _sizes.iota(columns)
        return cast(_ops.equal(row, column), dtype)
    return Tensor(np.eye(rows, columns, dtype=as_dtype(dtype)._numpy))


def range_(start: Any, limit: Any = None, delta: Any = 1, dtype: DTypeLike | None = None,
           name: str | None = None) -> Tensor:  # fmt: skip
    """Create a vector of the numbers start, start + delta, … below the limit.

    Args:
        start: The first number; without `limit`, the limit itself, and the first number is 0.
        limit: The limit, which is not in the result.
        delta: The step, not 0; negative steps count down.
        dtype: The dtype of the result; None: the widest of the arguments'.
        name: Ignored.

    Returns:
        A vector.

    Raises:
        TypeError: A bound is a tensor of the traced function: the shape would be unknown.
        InvalidArgumentError: `delta` is 0, or a bound is not finite.

    Example:
        >>> import samegrad as tf
        >>> tf.range(3).numpy()
        array([0, 1, 2], dtype=int32)
    """
    first, last = (0, start) if limit is None else (start, limit)
    sizes = [_size_or(n) for n in (first, last, delta)]
    given = (first, last, delta)
    if dtype is None:  # the widest of the bounds': the numbers may be none
        kinds = {_dtype_of(n) for n in given}
        if not kinds.issubset(_WIDER):
            raise TypeError(f"[range] bounds must be real numbers: got {shown(given)}.")
        dtype = max(kinds, key=_WIDER.index)
    if _sizes.dim_in(sizes) is not None:
        return _range_of_sizes(sizes, dtype)
    numbers = [_number(n) if isinstance(n, Tensor) else n for n in given]
    try:
        values = np.arange(*numbers)
    except (ValueError, ArithmeticError):
        raise InvalidArgumentError(
            "[range] bounds must be finite, and delta must not be 0: got "
            f"{', '.join(map(shown, given))}."
        ) from None
    return Tensor(values.astype(as_dtype(dtype)._numpy))


def _dtype_of(n: Any) -> str:
    if isinstance(n, Tensor):
        return str(n._dtype)
    if isinstance(n, Dim):
        return "int32"
    if type(n) is int and -(2**31) <= n < 2**31:
        return "int32"
    return "float32" if type(n) is float else convert_to_tensor(n)._dtype


def _number(n: Tensor) -> Any:
    """Return NumPy's number; a 16-bit one, in which NumPy would compute, as a float."""
    return float(n.numpy()) if n._dtype in ("float16", "bfloat16") else n.numpy()


def _size_or(number: Any) -> Any:
    """Return a size that follows from the examples, or the number itself."""
    dims = dims_of(number) if isinstance(number, Tensor) and number._symbolic else None
    return dims[0] if dims is not None and len(dims) == 1 else number


def _range_of_sizes(bounds: list[Any], dtype: DTypeLike) -> Tensor:
    first, last, delta = bounds
    if not isinstance(delta, int) or not all(isinstance(n, int | Dim) for n in (first, last)):
        raise TypeError(
            "[range] bounds that follow from the number of examples go with integers: got "
            f"{first}, {last} and {delta}; cast the range instead."
        )
    if delta == 0:
        raise ValueError("[range] delta must not be 0: got 0.")
    span, step = (last - first, delta) if delta > 0 else (first - last, -delta)
    numbers = _sizes.iota(span if step == 1 else (span + (step - 1)) // step)
    if delta != 1:
        numbers = numbers * delta
    if isinstance(first, Dim) or first != 0:
        numbers = numbers + cast(convert_to_tensor(first), "int64")
    return cast(numbers, dtype)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None,
             axis: int = 0) -> Tensor:  # fmt: skip
    """Create evenly spaced numbers from start to stop, both included.

    Args:
        start: The first numbers: floats, or integers for results of float64.
        stop: The last numbers, which broadcast with `start`.
        num: The number of elements.
        name: Ignored.
        axis: The new axis of the result.

    Returns:
        A tensor in the dtype of the floats, with one more axis than start and stop.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> linspace(0.0, 1.0, 3).numpy()
        array([0. , 0.5, 1. ], dtype=float32)
        >>> linspace([0.0, 1.0], [2.0, 3.0], 3, axis=-1).numpy()
        array([[0., 1., 2.],
               [1., 2., 3.]], dtype=float32)
    """
    count = _sizes.size_of(num)
    if isinstance(count, int) and count < 0:
        raise ValueError(f"[linspace] num must not be negative: got {count}.")
    ends = [_float64_of(x) for x in (start, stop)]
    rank = max(x.ndim if isinstance(x, np.ndarray) else x._rank for x in ends) + 1
    axis = axis_in(rank, axis)
    kinds = (as_dtype(x.dtype) for x in (start, stop) if hasattr(x, "dtype"))
    kind = next(kinds, convert_to_tensor(start).dtype)
    kind = kind if kind.is_floating else as_dtype("float64")
    if isinstance(count, Dim) or not all(isinstance(x, np.ndarray) for x in ends):
        first, last = map(convert_to_tensor, ends)
        return cast(_linspace_of_tensors(first, last, count, axis), kind)
    return Tensor(np.asarray(np.linspace(ends[0], ends[1], count, axis=axis), kind._numpy))


def _float64_of(value: Any) -> Any:
    """Return an array of what is known, or a tensor: numbers are computed in float64."""
    if isinstance(value, int | float | list | tuple | np.ndarray | np.generic):
        return np.asarray(convert_to_tensor(value, "float64").numpy())
    return cast(convert_to_tensor(value), "float64")


def _linspace_of_tensors(first: Tensor, last: Tensor, count: Any, axis: int) -> Tensor:
    """Compute as NumPy does, in what may be part of a step."""
    both = first + last
    first, last = (
        _ops.expand_dims(_ops.broadcast_like(each, both), axes=[axis]) for each in (first, last)
    )
    place = _ops.cast(_sizes.iota(count), dtype="float64")
    place = _ops.expand_dims(place, axes=[n for n in range(first._rank) if n != axis])
    most = cast(convert_to_tensor(count - 1), "float64")
    numbers = place * ((last - first) / _ops.maximum(*pair(most, 1.0))) + first
    return where((place == most) & (most > 0), last, numbers)


def meshgrid(*args: TensorLike, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Expand vectors to coordinates of the points of a grid.

    Args:
        *args: Tensors; those with more than one axis are flattened to vectors.
        indexing: "xy": the first vector varies along axis 1, the second along axis 0. "ij": vector
            i varies along axis i.
        name: Ignored.

    Returns:
        A list of tensors, one for each vector, in the shape of the grid.

    Raises:
        ValueError: The indexing is unknown.

    Example:
        >>> [x.numpy().tolist() for x in meshgrid([1, 2, 3], [4, 5])]
        [[[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"[meshgrid] indexing must be 'xy' or 'ij': got {shown(indexing)}.")
    vectors = [x if x._rank == 1 else reshape(x, [-1]) for x in map(convert_to_tensor, args)]
    order = list(range(len(vectors)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    sizes = [vectors[i].shape[0] for i in order]
    made = []
    for place, x in enumerate(vectors):
        own = order.index(place)
        others = [axis for axis in range(len(order)) if axis != own]
        made.append(_sizes.broadcast(_ops.expand_dims(x, axes=others), sizes))
    return made
