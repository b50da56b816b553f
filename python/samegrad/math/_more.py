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
    """The polynomial with these coefficients, the one of the highest power first.

    Args:
        coeffs: A list of tensors that broadcast with x; none: 0.
        x: Where.
        name: Ignored.

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
    """The share of elements that are 0 (float32).

    Example:
        >>> float(zero_fraction([0.0, 1.0, 0.0, 2.0]))
        0.5
    """
    x = convert_to_tensor(value)
    zeros = _ops.equal(x, convert_to_tensor(0, x._dtype))
    return reduce_mean(_ops.cast(zeros, dtype="float32"))


def accumulate_n(inputs: Sequence[TensorLike], shape: Any = None, tensor_dtype: Any = None,
                 name: str | None = None) -> Tensor:  # fmt: skip
    """The sum of tensors; see `add_n`.

    Example:
        >>> float(accumulate_n([1.0, 2.0]))
        3.0
    """
    return add_n(inputs)


def rint(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest whole number, halves to the even one, as a float.

    Example:
        >>> rint([0.5, 1.5, -2.4]).numpy()
        array([ 0.,  2., -2.], dtype=float32)
    """
    return _ops.round(convert_to_tensor(x))


def _steps(x: TensorLike) -> tuple[Tensor, Tensor]:
    flat = _ops.reshape(convert_to_tensor(x), shape=[-1])
    return flat[:-1], flat[1:]


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether no element is smaller than the one before it.

    Example:
        >>> bool(is_non_decreasing([1, 1, 2]))
        True
    """
    return _ops.reduce_all(_ops.less_equal(*_steps(x)), axes=[0], keepdims=False)


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is larger than the one before it.

    Example:
        >>> bool(is_strictly_increasing([1, 1, 2]))
        False
    """
    return _ops.reduce_all(_ops.less(*_steps(x)), axes=[0], keepdims=False)


def histogram_fixed_width_bins(values: TensorLike, value_range: TensorLike, nbins: int = 100,
                               dtype: DTypeLike = "int32",
                               name: str | None = None) -> Tensor:  # fmt: skip
    """In which of equally wide bins each number lies; those outside count to the outer ones.

    Args:
        values: Numbers.
        value_range: Where the first bin begins and the last one ends.
        nbins: How many there are.
        dtype: "int32" or "int64", of the result.
        name: Ignored.

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
    """How many numbers lie in each of equally wide bins; see `histogram_fixed_width_bins`.

    Example:
        >>> histogram_fixed_width([-1.0, 0.0, 1.5, 9.0], [0.0, 5.0], nbins=5).numpy()
        array([2, 1, 0, 0, 1], dtype=int32)
    """
    places = _ops.reshape(histogram_fixed_width_bins(values, value_range, nbins), shape=[-1])
    ones = _ops.cast(_ops.full_like(places, value=1), dtype=as_dtype(dtype).name)
    return unsorted_segment_sum(ones, places, nbins)
