"""Small functions that programs of TensorFlow use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor, pair
from samegrad.math._binary import add_n
from samegrad.math._reductions import reduce_mean
from samegrad.math._segments import unsorted_segment_sum

_ops = _core.ops


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """Evaluate a polynomial by Horner's scheme.

    Args:
        coeffs: A list of tensors that broadcast with `x`, the highest power first; an empty list
            gives 0.
        x: The points, a tensor of numbers.
        name: Ignored.

    Returns:
        A tensor of the broadcast shape.

    Raises:
        ValueError: The coefficients are not a list or tuple.

    Example:
        >>> polyval([1.0, 0.0, 2.0], [3.0]).numpy()
        array([11.], dtype=float32)
    """
    if not isinstance(coeffs, list | tuple):
        raise ValueError(
            f"[polyval] coeffs is a list of tensors: got {type(coeffs).__name__}; unstack it."
        )
    at = convert_to_tensor(x)
    found = _ops.full_like(at, value=0)
    for coefficient in coeffs:
        product, added = pair(found * at, coefficient)
        found = _ops.add(product, added)
    return found


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """Compute the fraction of elements that are 0.

    Args:
        value: A tensor of numbers of any shape.
        name: Ignored.

    Returns:
        A float32 scalar in [0, 1].

    Example:
        >>> float(zero_fraction([0.0, 1.0, 0.0, 2.0]))
        0.5
    """
    x = convert_to_tensor(value)
    zeros = _ops.equal(x, convert_to_tensor(0, x._dtype))
    return reduce_mean(_ops.cast(zeros, dtype="float32"))


def accumulate_n(inputs: Sequence[TensorLike], shape: Any = None, tensor_dtype: Any = None,
                 name: str | None = None) -> Tensor:  # fmt: skip
    """Add tensors from left to right, as `add_n` does.

    Args:
        inputs: A list of tensors of one shape and dtype, at least one.
        shape: Ignored.
        tensor_dtype: Ignored.
        name: Ignored.

    Returns:
        A tensor of that shape and dtype.

    Raises:
        ValueError: The list is empty.

    Example:
        >>> float(accumulate_n([1.0, 2.0]))
        3.0
    """
    return add_n(inputs)


def rint(x: TensorLike, name: str | None = None) -> Tensor:
    """Round each element to the nearest integer, halves to the even one.

    Args:
        x: A tensor of floats of any shape.
        name: Ignored.

    Returns:
        Integers as floats, in the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.

    Example:
        >>> rint([0.5, 1.5, -2.4]).numpy()
        array([ 0.,  2., -2.], dtype=float32)
    """
    return _ops.round(convert_to_tensor(x))


def _steps(x: TensorLike) -> tuple[Tensor, Tensor]:
    flat = _ops.reshape(convert_to_tensor(x), shape=[-1])
    return flat[:-1], flat[1:]


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Test that no element is smaller than the one before it.

    Args:
        x: A tensor of real numbers, of any shape; its elements are compared in row-major order.
        name: Ignored.

    Returns:
        A bool scalar; True for fewer than two elements.

    Example:
        >>> bool(is_non_decreasing([1, 1, 2]))
        True
    """
    return _ops.reduce_all(_ops.less_equal(*_steps(x)), axes=[0], keepdims=False)


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Test that each element is larger than the one before it.

    Args:
        x: A tensor of real numbers, of any shape; its elements are compared in row-major order.
        name: Ignored.

    Returns:
        A bool scalar; True for fewer than two elements.

    Example:
        >>> bool(is_strictly_increasing([1, 1, 2]))
        False
    """
    return _ops.reduce_all(_ops.less(*_steps(x)), axes=[0], keepdims=False)


def histogram_fixed_width_bins(values: TensorLike, value_range: TensorLike, nbins: int = 100,
                               dtype: DTypeLike = "int32",
                               name: str | None = None) -> Tensor:  # fmt: skip
    """Return the bin of each value among bins of equal width.

    Values outside of the range count to the outer bins.

    Args:
        values: A tensor of real numbers of any shape.
        value_range: Two numbers: the lower limit of the first bin, and the upper limit of the last
            one.
        nbins: The number of bins.
        dtype: "int32" or "int64", the dtype of the result.
        name: Ignored.

    Returns:
        A tensor of bin numbers in [0, nbins), of the shape of `values`.

    Raises:
        ValueError: `nbins` is below 1, or `value_range` is not two numbers.

    Example:
        >>> histogram_fixed_width_bins([-1.0, 0.0, 1.5, 9.0], [0.0, 5.0], nbins=5).numpy()
        array([0, 0, 1, 4], dtype=int32)
    """
    if not isinstance(nbins, int) or nbins < 1:
        raise ValueError(f"[histogram_fixed_width] nbins is a number from 1 on: got {nbins!r}.")
    x = convert_to_tensor(values)
    limits = convert_to_tensor(value_range, x._dtype)
    if limits._rank != 1 or limits.shape[0] != 2:
        raise ValueError(
            f"[histogram_fixed_width] value_range has two numbers: got shape {limits._shape}."
        )
    kind = x._dtype if as_dtype(x._dtype).is_floating else "float64"
    low, high = (_ops.cast(limits[i], dtype=kind) for i in (0, 1))
    share = (_ops.cast(x, dtype=kind) - low) / (high - low)
    place = _ops.floor(share * float(nbins))
    place = _ops.maximum(place, convert_to_tensor(0.0, kind))
    place = _ops.minimum(place, convert_to_tensor(float(nbins - 1), kind))
    return _ops.cast(place, dtype=as_dtype(dtype).name)


def histogram_fixed_width(values: TensorLike, value_range: TensorLike, nbins: int = 100,
                          dtype: DTypeLike = "int32",
                          name: str | None = None) -> Tensor:  # fmt: skip
    """Count the values in each of `nbins` bins of equal width.

    Values outside of the range count to the outer bins.

    Args:
        values: A tensor of real numbers of any shape.
        value_range: Two numbers: the lower limit of the first bin, and the upper limit of the last
            one.
        nbins: The number of bins.
        dtype: The dtype of the counts.
        name: Ignored.

    Returns:
        A tensor of counts of shape [nbins].

    Raises:
        ValueError: `nbins` is below 1, or `value_range` is not two numbers.

    Example:
        >>> histogram_fixed_width([-1.0, 0.0, 1.5, 9.0], [0.0, 5.0], nbins=5).numpy()
        array([2, 1, 0, 0, 1], dtype=int32)
    """
    places = _ops.reshape(histogram_fixed_width_bins(values, value_range, nbins), shape=[-1])
    ones = _ops.cast(_ops.full_like(places, value=1), dtype=as_dtype(dtype).name)
    return unsorted_segment_sum(ones, places, nbins)
