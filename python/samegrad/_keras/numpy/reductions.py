"""Sums, products, extremes and running ones over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import (
    axes_in,
    axis_in,
    constant,
    flat,
    is_float,
    not_bool,
    widened,
)
from samegrad._keras.numpy.elementwise import nan_to_num
from samegrad._tensor.tensor import Tensor


def _axes(x: Tensor, axis: Any) -> list[int]:
    return axes_in(axis, x._rank)


def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes (default all)."""
    x = widened(x)
    return tf.reduce_sum(x, _axes(x, axis), keepdims)


def prod(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The product over axes (default all), in a dtype if one is given."""
    x = widened(x) if dtype is None else not_bool(convert_to_tensor(x, dtype))
    return tf.reduce_prod(x, _axes(x, axis), keepdims)


def all(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Tell if all elements over axes (default all) are true, or not 0."""
    x = convert_to_tensor(x)
    return tf.reduce_all(tf.cast(x, "bool"), _axes(x, axis), keepdims)


def any(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Tell if an element over axes (default all) is true, or not 0."""
    x = convert_to_tensor(x)
    return tf.reduce_any(tf.cast(x, "bool"), _axes(x, axis), keepdims)


_Reduce = Callable[..., Tensor]
_EXTREMES: dict[str, tuple[_Reduce, _Reduce, _Reduce]] = {
    "max": (tf.reduce_max, tf.reduce_any, tf.maximum),
    "min": (tf.reduce_min, tf.reduce_all, tf.minimum),
}


def _extreme(name: str, x: Any, axis: Any, keepdims: bool, initial: Any) -> Tensor:
    numbers, bools, larger = _EXTREMES[name]
    x = convert_to_tensor(x)
    axes = _axes(x, axis)
    if initial is None and 0 in [x.shape[a] for a in axes if isinstance(x.shape[a], int)]:
        raise ValueError(f"Cannot compute the {name} of an empty tensor.")
    found = (bools if x._dtype == "bool" else numbers)(x, axes, keepdims)
    if initial is None:
        return found
    both = larger(not_bool(found), not_bool(convert_to_tensor(initial, x._dtype)))
    return tf.cast(both, x._dtype)


def max(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """The largest element over axes (default all), or `initial` if that is larger.

    Raises:
        ValueError: There are no elements, and no `initial`.
    """
    return _extreme("max", x, axis, keepdims, initial)


def min(x: Any, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Tensor:
    """The smallest element over axes (default all), or `initial` if that is smaller.

    Raises:
        ValueError: There are no elements, and no `initial`.
    """
    return _extreme("min", x, axis, keepdims, initial)


def amax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes (default all)."""
    return max(x, axis, keepdims)


def amin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes (default all)."""
    return min(x, axis, keepdims)


def ptp(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element less the smallest one over axes (default all)."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def count_nonzero(x: Any, axis: Any = None) -> Tensor:
    """Count the elements over axes (default all) that are not 0, as int32."""
    x = convert_to_tensor(x)
    return tf.reduce_sum(tf.cast(tf.cast(x, "bool"), "int32"), _axes(x, axis))


def _along(x: Any, axis: Any, dtype: Any) -> tuple[Tensor, int]:
    x = not_bool(convert_to_tensor(x, dtype))
    return (flat(x), 0) if axis is None else (x, axis_in(axis, x._rank))


def cumsum(x: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """The sums up to each element along an axis; without one, of all elements."""
    x, place = _along(x, axis, dtype)
    return tf.math.cumsum(x, place)


def cumprod(x: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """The products up to each element along an axis; without one, of all elements."""
    x, place = _along(x, axis, dtype)
    return tf.math.cumprod(x, place)


def nancumsum(x: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """`cumsum`, with 0 for NaN."""
    return cumsum(_without_nan(x, 0.0), axis, dtype)


def nancumprod(x: Any, axis: Any = None, dtype: Any = None) -> Tensor:
    """`cumprod`, with 1 for NaN."""
    return cumprod(_without_nan(x, 1.0), axis, dtype)


def _without_nan(x: Any, value: float) -> Tensor:
    return nan_to_num(x, nan=value, posinf=math.inf, neginf=-math.inf)


def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes (default all) of what is not NaN."""
    return sum(_without_nan(x, 0.0), axis, keepdims)


def nanprod(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes (default all) of what is not NaN."""
    return prod(_without_nan(x, 1.0), axis, keepdims)


def _nan_extreme(name: str, x: Any, axis: Any, keepdims: bool, least: float) -> Tensor:
    x = convert_to_tensor(x)
    if not is_float(x):
        return _extreme(name, x, axis, keepdims, None)
    found = _extreme(name, _without_nan(x, least), axis, keepdims, None)
    none = tf.reduce_all(tf.math.is_nan(x), _axes(x, axis), keepdims)
    return tf.where(none, constant(math.nan, x), found)


def nanmax(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes (default all) that is not NaN; NaN where all are."""
    return _nan_extreme("max", x, axis, keepdims, -math.inf)


def nanmin(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes (default all) that is not NaN; NaN where all are."""
    return _nan_extreme("min", x, axis, keepdims, math.inf)
