"""Reductions over axes."""

from __future__ import annotations

from typing import Any

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._ops.norms import root_of_squares
from samegrad._tensor.axes import axes_of
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._binary import truncatediv
from samegrad.math._unary import exp, is_finite, log, sqrt, square

_ops = _core.ops


def zeros_as(x: Tensor) -> Tensor:
    """Return zeros in the shape and dtype of x.

    Example:
        >>> zeros_as(convert_to_tensor([1.0])).numpy()
        array([0.], dtype=float32)
    """
    return _ops.full_like(x, value=0.0)


def reduce_sum(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Sum the elements over axes; the sum of no elements is 0.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A tensor of numbers.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor holds bools.

    Example:
        >>> float(reduce_sum([1.0, 2.0]))
        3.0
    """
    x = convert_to_tensor(input_tensor)
    return _ops.reduce_sum(x, axes=axes_of(x, axis), keepdims=keepdims)


def reduce_prod(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Multiply the elements over axes; the product of no elements is 1.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A tensor of numbers.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor holds bools.

    Example:
        >>> float(reduce_prod([2.0, 3.0]))
        6.0
    """
    x = convert_to_tensor(input_tensor)
    return _ops.reduce_prod(x, axes=axes_of(x, axis), keepdims=keepdims)


def reduce_max(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the maximum over axes; that of no elements is -inf, or the least integer.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A tensor of real numbers.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor holds bools.

    Example:
        >>> float(reduce_max([1.0, 2.0]))
        2.0
    """
    x = convert_to_tensor(input_tensor)
    return _ops.reduce_max(x, axes=axes_of(x, axis), keepdims=keepdims)


def reduce_min(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the minimum over axes; that of no elements is inf, or the largest integer.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A tensor of real numbers.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor holds bools.

    Example:
        >>> float(reduce_min([1.0, 2.0]))
        1.0
    """
    x = convert_to_tensor(input_tensor)
    return _ops.reduce_min(x, axes=axes_of(x, axis), keepdims=keepdims)


def reduce_any(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the logical or over axes; that of no elements is False.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A bool tensor.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A bool tensor without those axes, unless keepdims.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor does not hold bools.

    Example:
        >>> float(reduce_any([True, False]))
        1.0
    """
    x = convert_to_tensor(input_tensor)
    return _ops.reduce_any(x, axes=axes_of(x, axis), keepdims=keepdims)


def reduce_all(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the logical and over axes; that of no elements is True.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A bool tensor.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A bool tensor without those axes, unless keepdims.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor does not hold bools.

    Example:
        >>> float(reduce_all([True, False]))
        0.0
    """
    x = convert_to_tensor(input_tensor)
    return _ops.reduce_all(x, axes=axes_of(x, axis), keepdims=keepdims)


def reduce_mean(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the mean over axes; that of no elements is NaN.

    Inside `run`, the mean is over this replica's examples. Means of integers are rounded to 0.

    Args:
        input_tensor: A tensor of numbers.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor holds bools.

    Example:
        >>> float(reduce_mean([1.0, 2.0, 6.0]))
        3.0
    """
    x = convert_to_tensor(input_tensor)
    axes = axes_of(x, axis)
    count = _ops.size_of(x, axes=axes)
    if as_dtype(x._dtype).is_integer:
        wide = _ops.cast(x, dtype="uint64" if x._dtype == "uint64" else "int64")
        total = _ops.reduce_sum(wide, axes=axes, keepdims=keepdims)
        return _ops.cast(truncatediv(total, _ops.cast(count, dtype=wide._dtype)), dtype=x._dtype)
    return _ops.reduce_sum(x, axes=axes, keepdims=keepdims) / _ops.cast(count, dtype=x._dtype)


def reduce_variance(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the variance over axes, the mean squared distance from the mean.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A tensor of floats.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        TypeError: The tensor does not hold floats.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> float(reduce_variance([1.0, 3.0]))
        1.0
    """
    x = convert_to_tensor(input_tensor)
    if not as_dtype(x._dtype).is_floating:
        raise TypeError(
            f"[reduce_variance] input_tensor must hold floats: got {x._dtype}; use samegrad.cast."
        )
    return mean_and_variance(x, axis, keepdims)[1]


def mean_and_variance(x: Tensor, axis: Any, keepdims: bool) -> tuple[Tensor, Tensor]:
    """Return both over axes (None: all).

    The variance is mean((x - c)²) - (mean - c)² forevery number c. With the mean as c, taken as a
    constant, the derivative is 2 (x - mean) / n without a second sum over all of x, and so is what
    is derived from it: (mean - c)² is 0, but has derivatives of its own.

    Example:
        >>> [float(moment) for moment in mean_and_variance(convert_to_tensor([1.0, 3.0]), 0, False)]
        [2.0, 1.0]
    """
    axes = axes_of(x, axis)
    mean = reduce_mean(x, axes, keepdims=True)
    center = _ops.stop_gradient(mean)
    variance = reduce_mean(square(x - center), axes, keepdims=True) - square(mean - center)
    if keepdims:
        return mean, variance
    return _ops.squeeze(mean, axes=axes), _ops.squeeze(variance, axes=axes)


def reduce_std(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the standard deviation over axes.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A tensor of floats.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        TypeError: The tensor does not hold floats.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> float(reduce_std([1.0, 3.0]))
        1.0
    """
    return sqrt(reduce_variance(input_tensor, axis, keepdims))


def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute the Euclidean norm over axes, √ Σ x².

    The gradient is 0 where the norm is 0, as PyTorch's; TensorFlow's is NaN there.

    Args:
        input_tensor: A tensor of numbers.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        InvalidArgumentError: There is no such axis.
        TypeError: The tensor holds bools.

    Example:
        >>> float(reduce_euclidean_norm([3.0, 4.0]))
        5.0
    """
    return root_of_squares(reduce_sum(square(input_tensor), axis, keepdims))


def reduce_logsumexp(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Compute log Σ exp(x) over axes, without overflow.

    Inside `run`, the reduction is over this replica's examples.

    Args:
        input_tensor: A tensor of floats.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype of `input_tensor`.

    Raises:
        TypeError: The tensor does not hold floats.
        InvalidArgumentError: There is no such axis.

    Example:
        >>> float(reduce_logsumexp([1000.0, -1000.0]))
        1000.0
    """
    x = convert_to_tensor(input_tensor)
    largest = _ops.stop_gradient(reduce_max(x, axis, keepdims=True))
    largest = _ops.select(is_finite(largest), largest, zeros_as(largest))
    total = log(reduce_sum(exp(x - largest), axis, keepdims))
    return total + (largest if keepdims else _ops.reshape_like(largest, total))


def count_nonzero(
    input: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = "int64",
    name: str | None = None,
) -> Tensor:
    """Count the elements over axes that are not zero.

    Args:
        input: A tensor of numbers.
        axis: One axis, or a list of axes, negative from the last; None: all.
        keepdims: Keep the reduced axes, with size 1.
        dtype: The dtype of the counts.
        name: Ignored.

    Returns:
        A tensor without those axes (unless keepdims), in the dtype `dtype`.

    Raises:
        InvalidArgumentError: There is no such axis.

    Example:
        >>> int(count_nonzero([0.0, 2.0, 3.0]))
        2
    """
    x = convert_to_tensor(input)
    hits = _ops.cast(_ops.not_equal(x, zeros_as(x)), dtype=as_dtype(dtype).name)
    return reduce_sum(hits, axis, bool(keepdims))


def argmax(input: TensorLike, axis: int | None = None, output_type: Any = "int64",
           name: str | None = None) -> Tensor:  # fmt: skip
    """Return the index of the largest element along an axis, the first one of equals.

    Args:
        input: A tensor of real numbers or bools.
        axis: The axis, negative from the last; None: the first one.
        output_type: "int32" or "int64", the dtype of the indices.
        name: Ignored.

    Returns:
        The indices: the shape of `input` without that axis.

    Raises:
        InvalidArgumentError: There is no such axis, or it has no elements.

    Example:
        >>> int(argmax([1.0, 5.0, 2.0]))
        1
    """
    index = _ops.arg_max(_numbers(input), axis=int(axis or 0))
    return _ops.cast(index, dtype=as_dtype(output_type).name)


def argmin(input: TensorLike, axis: int | None = None, output_type: Any = "int64",
           name: str | None = None) -> Tensor:  # fmt: skip
    """Return the index of the smallest element along an axis, the first one of equals.

    Args:
        input: A tensor of real numbers or bools.
        axis: The axis, negative from the last; None: the first one.
        output_type: "int32" or "int64", the dtype of the indices.
        name: Ignored.

    Returns:
        The indices: the shape of `input` without that axis.

    Raises:
        InvalidArgumentError: There is no such axis, or it has no elements.

    Example:
        >>> int(argmin([1.0, 5.0, 0.0]))
        2
    """
    index = _ops.arg_min(_numbers(input), axis=int(axis or 0))
    return _ops.cast(index, dtype=as_dtype(output_type).name)


def _numbers(value: TensorLike) -> Tensor:
    """Return the tensor; bools as 0 and 1."""
    x = convert_to_tensor(value)
    return _ops.cast(x, dtype="int8") if x._dtype == "bool" else x
