"""Means, spreads, quantiles, and how values go together."""

from __future__ import annotations

import math
from typing import Any

from keras.src.backend import config
from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import (
    axes_in,
    axis_in,
    constant,
    flat,
    float_of,
    is_float,
    matched_tensors,
)
from samegrad._keras.numpy.indexing import take_along_axis
from samegrad._keras.numpy.reductions import nansum
from samegrad._keras.numpy.shapes import squeeze
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor


def _computed(x: Tensor) -> Tensor:
    """In the dtype that moments are computed in: float32 at least."""
    return x if x._dtype in ("float32", "float64") else tf.cast(x, result_type(x._dtype, "float32"))


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes (default all); 16 bit floats are summed as float32."""
    x = convert_to_tensor(x)
    wide = _computed(x)
    found = tf.reduce_mean(wide, axes_in(axis, x._rank), keepdims)
    return tf.cast(found, x._dtype) if is_float(x) else found


def _variance(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    axes = axes_in(axis, x._rank)
    found = tf.math.reduce_variance(_computed(x), axes, keepdims=True)
    return found if keepdims else squeeze(found, axes)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The variance over axes (default all)."""
    x = convert_to_tensor(x)
    return tf.cast(_variance(x, axis, keepdims), result_type(x._dtype, float))


def std(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation over axes (default all)."""
    x = float_of(x)
    return tf.cast(tf.sqrt(_variance(x, axis, keepdims)), x._dtype)


def average(x: Any, axis: Any = None, weights: Any = None) -> Tensor:
    """The mean over axes (default all), with weights of x's shape or along the axis.

    Args:
        x: Numbers.
        axis: One axis, or several.
        weights: Of the shape of x, or a vector along the axis.
    """
    x = convert_to_tensor(x)
    if weights is None:
        x = tf.cast(x, result_type(x._dtype, float))
        return tf.reduce_mean(x, axes_in(axis, x._rank))
    x, shares = matched_tensors(x, weights, more=(float,))
    axes = axes_in(axis, x._rank)
    if shares._rank != x._rank:
        others = [a for a in range(x._rank) if a != axes[0]]
        for a in others:
            shares = tf.expand_dims(shares, a)
    total = tf.reduce_sum(shares, axes)
    return tf.reduce_sum(x * shares, axes) / total


def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes (default all) of what is not NaN."""
    tensor = convert_to_tensor(x)
    if axis is not None and not isinstance(axis, int) and not len(axis):
        return tensor
    if not is_float(tensor):
        return tf.reduce_mean(tf.cast(tensor, "float32"), axes_in(axis, tensor._rank), keepdims)
    held = tf.cast(tf.logical_not(tf.math.is_nan(tensor)), tensor._dtype)
    return nansum(tensor, axis, keepdims) / tf.reduce_sum(
        held, axes_in(axis, tensor._rank), keepdims
    )


def nanvar(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The variance over axes (default all) of what is not NaN."""
    x = float_of(x)
    held = tf.logical_not(tf.math.is_nan(x))
    axes = axes_in(axis, x._rank)
    own = tf.where(held, x, tf.zeros_like(x))
    count = tf.reduce_sum(tf.cast(held, x._dtype), axes, True)
    distance = own - tf.reduce_sum(own, axes, True) / count
    squares = tf.square(tf.where(held, distance, tf.zeros_like(x)))
    found = tf.reduce_sum(squares, axes, True) / count
    return found if keepdims else squeeze(found, axes)


def nanstd(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The standard deviation over axes (default all) of what is not NaN."""
    return tf.sqrt(nanvar(x, axis, keepdims))


def _lines(x: Tensor, axis: Any) -> tuple[Tensor, list[int]]:
    """With the axes joined as the last one, and which they were."""
    axes = axes_in(axis, x._rank)
    rest = [a for a in range(x._rank) if a not in axes]
    sizes = [x.shape[a] for a in rest]
    return tf.reshape(tf.transpose(x, [*rest, *axes]), [*sizes, -1]), axes


def _between(lines: Tensor, place: Tensor, method: str) -> Tensor:
    """Interpolate the elements of sorted lines at positions, which may be between two."""

    def at(where: Tensor) -> Tensor:
        indices = tf.broadcast_to(tf.cast(where, "int64"), [*lines.shape[:-1], where.shape[-1]])
        return take_along_axis(lines, indices, -1)

    if method == "nearest":
        return at(tf.round(place))
    lower, upper = tf.floor(place), tf.math.ceil(place)
    if method in ("lower", "higher"):
        return at(lower if method == "lower" else upper)
    low, high = at(lower), at(upper)
    if method == "midpoint":
        return (low + high) * 0.5
    if method != "linear":
        raise ValueError(
            "[keras.ops.quantile] method is 'linear', 'lower', 'higher', 'midpoint' or 'nearest': "
            f"got {method!r}."
        )
    share = tf.cast(place - lower, low._dtype)
    mixed = low * (1.0 - share) + high * share
    return tf.where(tf.equal(share, tf.zeros_like(share)), low, mixed)


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, but_nan: bool) -> Tensor:
    x = convert_to_tensor(x)
    x = tf.cast(x, result_type(x._dtype, float))
    q = convert_to_tensor(q, "float64")
    lines, axes = _lines(x, axis)
    nans = tf.math.is_nan(lines)
    if but_nan:
        held = tf.cast(tf.logical_not(nans), "float64")
        count = tf.reduce_sum(held, axis=-1, keepdims=True)
        no_number = tf.equal(count, tf.zeros_like(count))
    else:
        size = lines.shape[-1]
        count = tf.cast(convert_to_tensor(size), "float64") if isinstance(size, Dim) else size
        no_number = tf.reduce_any(nans, axis=-1, keepdims=True)
    place = flat(q) * tf.maximum(tf.cast(convert_to_tensor(count), "float64") - 1.0, 0.0)
    if not but_nan:
        place = tf.reshape(place, [1] * (lines._rank - 1) + [-1])
    found = _between(tf.sort(lines, axis=-1), place, method)
    found = tf.where(no_number, constant(math.nan, x), found)
    last = found._rank - 1
    found = tf.transpose(found, [last, *range(last)])
    sizes = [1 if a in axes else x.shape[a] for a in range(x._rank) if keepdims or a not in axes]
    return tf.reshape(found, [*q.shape, *sizes])


def quantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the values below which a fraction q of the elements over axes (default all) is.

    Args:
        x: Numbers.
        q: Shares from 0 to 1; their axes are the first ones of the result.
        axis: One axis, or several.
        method: Between two elements: "linear", "lower", "higher", "midpoint" or "nearest".
        keepdims: Whether the axes stay, with size 1.

    Raises:
        ValueError: There is no such method.
    """
    return _quantile(x, q, axis, method, keepdims, but_nan=False)


def nanquantile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`quantile` of what is not NaN; NaN where all are."""
    return _quantile(x, q, axis, method, keepdims, but_nan=True)


def _share(q: Any) -> Tensor:
    return convert_to_tensor(q, "float64") / 100.0


def percentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`quantile`, with q from 0 to 100."""
    return quantile(x, _share(q), axis, method, keepdims)


def nanpercentile(
    x: Any, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """`nanquantile`, with q from 0 to 100."""
    return nanquantile(x, _share(q), axis, method, keepdims)


def median(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The median over axes (default all)."""
    return quantile(x, 0.5, axis, keepdims=keepdims)


def nanmedian(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The median over axes (default all) of what is not NaN."""
    if axis is not None and not isinstance(axis, int) and not len(axis):
        return convert_to_tensor(x)
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def corrcoef(x: Any) -> Tensor:
    """The correlations of the rows of a matrix."""
    x = convert_to_tensor(x)
    x = x if is_float(x) else tf.cast(x, "float64" if x._dtype == "int64" else config.floatx())
    if x._rank == 0:
        return constant(math.nan, x)
    if x._rank == 1:
        return tf.clip_by_value(corrcoef(tf.expand_dims(x, 0))[0, 0], -1.0, 1.0)
    distance = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    products = tf.matmul(distance, distance, transpose_b=True)
    spread = tf.sqrt(tf.linalg.diag_part(products))
    scale = tf.expand_dims(spread, -1) * tf.expand_dims(spread, -2)
    return tf.clip_by_value(products / scale, -1.0, 1.0)


def _last(x: Tensor, axis: int) -> Tensor:
    rest = [a for a in range(x._rank) if a != axis]
    return tf.transpose(x, [*rest, axis])


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral along an axis by the trapezoidal rule.

    Args:
        y: What is integrated.
        x: Where its values are; None: `dx` apart.
        dx: How far apart.
        axis: Along which.
    """
    y = convert_to_tensor(y)
    y = tf.cast(y, result_type(y._dtype, float))
    lines = _last(y, axis_in(axis, y._rank))
    steps = convert_to_tensor(dx, y._dtype)
    if x is not None:
        places = convert_to_tensor(x, y._dtype)
        places = _last(places, axis_in(axis, places._rank))
        steps = places[..., 1:] - places[..., :-1]
    return tf.reduce_sum((lines[..., 1:] + lines[..., :-1]) * 0.5 * steps, axis=-1)
