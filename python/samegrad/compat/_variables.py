"""Functions of `tf.compat.v1` that change variables, and older forms of those on rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import math
from samegrad._autodiff.variable import unwrapped
from samegrad._ops.arrays import cast, reshape
from samegrad._ops.complex_arrays import gather
from samegrad._ops.indexed_slices import IndexedSlices
from samegrad._ops.printing import print_
from samegrad._ops.scatter import tensor_scatter_nd_update
from samegrad._ops.text_arrays import fill
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad._tensor.version_1_values import SparseTensorValue
from samegrad.compat._namespace import add_own

_DOES = {
    "add": "Add to",
    "div": "Divide",
    "max": "Raise to at least the updates",
    "min": "Lower to at most the updates",
    "mul": "Multiply",
    "sub": "Subtract from",
    "update": "Set",
}


def _of_rows(how: str) -> Callable[..., Any]:
    """Return the function that changes rows of a variable."""

    def function(
        ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
    ) -> Any:
        variable, rows = unwrapped(ref), convert_to_tensor(indices)
        whole = [*rows.shape, *variable.shape[1:]]
        values = fill(whole, cast(updates, variable.dtype)) if _is_scalar(updates) else updates
        change = getattr(variable, f"scatter_{how}")
        return change(IndexedSlices(values, rows))

    words = f"""{_DOES[how]} rows of a variable.

    Args:
        ref: The variable.
        indices: The rows: integers of any shape.
        updates: A scalar, or a tensor of shape indices.shape + ref.shape[1:].
        use_locking: Ignored.
        name: Ignored.

    Returns:
        The variable.

    Raises:
        InvalidArgumentError: An index is outside of the first axis.
    """
    return _named(function, f"scatter_{how}", words)


def _is_scalar(value: Any) -> bool:
    return len(value.shape if hasattr(value, "shape") else convert_to_tensor(value).shape) == 0


def _of_places(how: str) -> Callable[..., Any]:
    """Return the function that changes elements or slices of a variable."""

    def function(
        ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
    ) -> Any:
        change = getattr(unwrapped(ref), f"scatter_nd_{how}")
        return change(indices, updates)

    words = f"""{_DOES[how]} elements or slices of a variable.

    Args:
        ref: The variable.
        indices: Integers of shape [..., k]: k indices into the first k axes.
        updates: A tensor of shape [..., *ref.shape[k:]].
        use_locking: Ignored.
        name: Ignored.

    Returns:
        The variable.

    Raises:
        InvalidArgumentError: An index is outside of its axis.
    """
    return _named(function, f"scatter_nd_{how}", words)


def _named(function: Callable[..., Any], name: str, words: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = words
    return function


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Set rows of a variable, with other indices in each batch.

    Args:
        ref: The variable.
        indices: Integers [..., n]: the n rows of each batch.
        updates: A tensor of shape indices.shape + the rest of ref.shape.
        use_locking: Ignored.
        name: Ignored.

    Returns:
        The variable.

    Example:
        >>> import samegrad as tf
        >>> v = tf.Variable([[1, 2], [3, 4]])
        >>> batch_scatter_update(v, [[0], [1]], [[8], [9]]).numpy()
        array([[8, 2],
               [3, 9]], dtype=int32)
    """
    variable = unwrapped(ref)
    slices = IndexedSlices(convert_to_tensor(updates), convert_to_tensor(indices))
    return variable.batch_scatter_update(slices)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """Gather along the last axis of the indices, with other indices in each batch.

    Args:
        params: A tensor.
        indices: Integers whose shape begins that of `params`, but for the last axis.
        name: Ignored.

    Returns:
        A tensor of shape indices.shape + the rest of params.shape.

    Example:
        >>> batch_gather([[1, 2], [3, 4]], [[1], [0]]).numpy()
        array([[2],
               [3]], dtype=int32)
    """
    axis = len(convert_to_tensor(indices).shape) - 1
    return gather(params, indices, axis=axis, batch_dims=axis)


def sparse_to_dense(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0,
    validate_indices: bool = True, name: str | None = None,
) -> Any:  # fmt: skip
    """Make a tensor of one value, but for the values at some indices.

    Args:
        sparse_indices: Integers: a scalar or vector for one axis, or [values, axes].
        output_shape: The sizes.
        sparse_values: A scalar, or a vector with a value for each index.
        default_value: The value elsewhere.
        validate_indices: Ignored: indices outside of the shape are refused, others may repeat.
        name: Ignored.

    Returns:
        A tensor of the dtype of the values.

    Raises:
        InvalidArgumentError: An index is outside of the shape.

    Example:
        >>> sparse_to_dense([1, 3], [4], 7).numpy()
        array([0, 7, 0, 7], dtype=int32)
    """
    places, values = convert_to_tensor(sparse_indices), convert_to_tensor(sparse_values)
    if len(places.shape) < 2:
        places = reshape(places, [-1, 1])
    count = int(places.shape[0])
    values = fill([count], values) if not values.shape else values
    every = fill(output_shape, convert_to_tensor(default_value, values.dtype))
    return tensor_scatter_nd_update(every, places, values)


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """Scale a tensor so that its norm divided by its number of elements is at most a number.

    Args:
        t: A tensor of floats.
        clip_norm: The number.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `t`.

    Example:
        >>> clip_by_average_norm([3.0, 4.0], 1.0).numpy()
        array([1.2, 1.6], dtype=float32)
    """
    values = convert_to_tensor(t)
    count = cast(values.shape.num_elements(), values.dtype)
    norm = math.sqrt(math.reduce_sum(values * values))
    limit = cast(clip_norm, values.dtype)
    return values * limit / math.maximum(norm / count, limit)


def print_and_return(
    input_: Any, data: Any, message: str | None = None, first_n: int | None = None,
    summarize: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Print tensors on standard error, and return another.

    Args:
        input_: The tensor to return.
        data: A list of tensors to print.
        message: Words before them.
        first_n: Ignored: every call prints.
        summarize: Number of elements to print at each end of an axis. None: 3.
        name: Ignored.

    Returns:
        `input_`.
    """
    print_(message or "", *data, summarize=3 if summarize is None else summarize)
    return convert_to_tensor(input_)


add_own("", {
    **{f"scatter_{how}": _of_rows(how) for how in _DOES},
    **{f"scatter_nd_{how}": _of_places(how) for how in ("add", "sub", "update")},
    "Print": print_and_return, "SparseTensorValue": SparseTensorValue,
    "batch_gather": batch_gather, "batch_scatter_update": batch_scatter_update,
    "clip_by_average_norm": clip_by_average_norm, "sparse_to_dense": sparse_to_dense,
})  # fmt: skip
