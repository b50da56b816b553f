"""Searching, sorting and counting of elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras.src.backend.common.dtypes import result_type

import samegrad as tf
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.numpy.common import (
    axis_in,
    constant,
    flat,
    is_float,
    known,
    made,
    matched_tensors,
    not_bool,
    sliced,
)
from samegrad._keras.numpy.creation import linspace
from samegrad._tensor.tensor import Tensor


def _place_of(find: Any, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    x = not_bool(x)
    lines = flat(x) if axis is None else x
    place = 0 if axis is None else axis_in(axis, x._rank)
    if lines._rank == 0:
        return tf.zeros([], "int32")
    found: Tensor = find(lines, place, output_type="int32")
    if not keepdims:
        return found
    return tf.reshape(found, [1] * x._rank) if axis is None else tf.expand_dims(found, place)


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first largest element along an axis; without one, of all in a row."""
    return _place_of(tf.argmax, x, axis, keepdims)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first smallest element along an axis; without one, of all in a row."""
    return _place_of(tf.argmin, x, axis, keepdims)


def _but_nan(find: Any, x: Any, axis: int | None, keepdims: bool, value: float) -> Tensor:
    x = convert_to_tensor(x)
    if not is_float(x):
        found: Tensor = find(x, axis, keepdims)
        return found
    nans = tf.math.is_nan(x)
    axes = list(range(x._rank)) if axis is None else [axis]
    none = tf.reduce_all(nans, axes, keepdims)
    numbers = tf.where(nans, constant(value, x), x)
    return tf.where(none, convert_to_tensor(-1), find(numbers, axis, keepdims))


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`argmax` of what is not NaN; -1 where all are."""
    return _but_nan(argmax, x, axis, keepdims, -math.inf)


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`argmin` of what is not NaN; -1 where all are."""
    return _but_nan(argmin, x, axis, keepdims, math.inf)


def sort(x: Any, axis: int | None = -1) -> Tensor:
    """The elements along an axis in order; without one, all in a row."""
    x = convert_to_tensor(x)
    return tf.sort(flat(x), axis=0) if axis is None else tf.sort(x, axis=axis)


def argsort(x: Any, axis: int | None = -1) -> Tensor:
    """The indices (int32) of the elements along an axis in order; without one, of all in a row."""
    x = convert_to_tensor(x)
    if x._rank == 0:
        return tf.zeros([1], "int32")
    return tf.argsort(flat(x), axis=0) if axis is None else tf.argsort(x, axis=axis)


def argpartition(x: Any, kth: int, axis: int | None = -1) -> Tensor:
    """Indices (int32) along an axis, those of the smallest elements up to the k-th first."""
    return argsort(x, axis)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> Tensor:
    """Return the positions at which values keep a sorted vector sorted.

    Raises:
        ValueError: The sequence is not a vector.
    """
    sequence = convert_to_tensor(sorted_sequence)
    if sequence._rank != 1:
        raise ValueError(
            "`searchsorted` only supports 1-D sorted sequences. You can use "
            "`keras.ops.vectorized_map` to extend it to N-D sequences. Received: "
            f"sorted_sequence.shape={tuple(sequence.shape)}"
        )
    own, wanted = (not_bool(x) for x in matched_tensors(sequence, values))
    return tf.reshape(tf.searchsorted(own, flat(wanted), side=side), wanted.shape)


def digitize(x: Any, bins: Any) -> Tensor:
    """Return the index of each element's bin (int32), cut by ascending bounds."""
    x = not_bool(x)
    wide = x._dtype if x._dtype in ("float32", "float64") else "float32"
    x = tf.cast(x, wide if is_float(x) else "float64")
    return searchsorted(convert_to_tensor(bins, x._dtype), x, side="right")


def nonzero(x: Any) -> tuple[Tensor, ...]:
    """Return the indices of elements that are not 0, int32, for each axis.

    Raises:
        TypeError: On several replicas: the result's size depends on values.
    """
    return tuple(made(places, "int32") for places in np.nonzero(known("nonzero", x)))


def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> Tensor:
    """Count each integer along the last axis, or sum its weights.

    Args:
        x: Whole numbers, not negative, a vector or rows.
        weights: A number for each.
        minlength: The result has at least so many numbers.
        sparse: True is refused: there are no sparse tensors.

    Raises:
        ValueError: `sparse`.
        TypeError: On several replicas: the result's size depends on values.
    """
    if sparse:
        raise ValueError("[keras.ops.bincount] there are no sparse tensors: got sparse=True.")
    x = convert_to_tensor(x)
    places = tf.cast(x, "int64")
    values = known("bincount", places)
    length = max(int(values.max(initial=-1)) + 1, int(minlength or 0))
    if weights is None:
        dtype, shares = "int32", tf.ones_like(places, "int32")
    else:
        shares = convert_to_tensor(weights)
        dtype = result_type(x._dtype, shares._dtype)
        shares = tf.cast(shares, dtype)
    if x._rank == 1:
        return tf.math.unsorted_segment_sum(shares, places, length)
    hits = tf.equal(tf.expand_dims(places, -1), tf.range(length, dtype="int64"))
    return tf.reduce_sum(tf.expand_dims(shares, -1) * tf.cast(hits, dtype), axis=-2)


def histogram(x: Any, bins: int = 10, range: Any = None) -> tuple[Tensor, Tensor]:
    """Count the elements of equal bins; return counts and the bounds of the bins.

    Args:
        x: Numbers.
        bins: How many.
        range: The first and the last bound; None: the smallest and the largest element.
    """
    x = flat(not_bool(x))
    low, high = (tf.reduce_min(x), tf.reduce_max(x)) if range is None else range
    low, high = convert_to_tensor(low, x._dtype), convert_to_tensor(high, x._dtype)
    edges = tf.cast(linspace(low, high, bins + 1), x._dtype)
    inside = tf.cast(tf.logical_and(x >= low, x <= high), x._dtype)
    place = tf.searchsorted(edges[1:-1], x, side="right")
    return tf.math.unsorted_segment_sum(inside, place, bins), edges


def _first_places(values: np.ndarray[Any, Any], axis: int, in_order: bool) -> Any:
    """Return the first index of each distinct slice, each slice's index among these, and counts."""
    lines = np.moveaxis(values, axis, 0)
    lines = lines.reshape(len(lines), math.prod(lines.shape[1:]))
    lines = lines if lines.dtype.kind in "biuf" else lines.astype(np.float32)
    _, first, inverse, counts = np.unique(
        lines[:, 0] if lines.shape[1] == 1 else lines,
        return_index=True, return_inverse=True, return_counts=True, equal_nan=False,
        axis=None if lines.shape[1] == 1 else 0,
    )  # fmt: skip
    inverse = inverse.reshape(-1)
    if in_order:
        return first, inverse, counts
    order = np.argsort(first)
    return first[order], np.argsort(order)[inverse], counts[order]


def unique(
    x: Any, sorted: bool = True, return_index: bool = False, return_inverse: bool = False,
    return_counts: bool = False, axis: int | None = None, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """The distinct elements, or slices along an axis.

    Args:
        x: Elements.
        sorted: Whether they are in order; else as they come.
        return_index: Whether where each is first is also returned.
        return_inverse: Whether which of them each element is is also returned.
        return_counts: Whether how often each is there is also returned.
        axis: Along which slices are compared; None: all elements in a row.
        size: How many are returned.
        fill_value: Value in place of those that lack (default 0).

    Raises:
        TypeError: On several replicas: the result's size depends on values.
    """
    x = convert_to_tensor(x)
    values = known("unique", x)
    whole = flat(x) if axis is None else x
    place = 0 if axis is None else axis_in(axis, x._rank)
    first, inverse, counts = _first_places(values.reshape(whole.shape), place, sorted)
    found = tf.gather(whole, first, axis=place)
    if size is not None:
        lacking = max(size - len(first), 0)
        first = np.pad(first[:size], (0, lacking), constant_values=1)
        counts = np.pad(counts[:size], (0, lacking))
        found = sliced(found, place, 0, size)
        spans = [[0, lacking if a == place else 0] for a in range(found._rank)]
        found = tf.pad(found, spans, constant_values=0 if fill_value is None else fill_value)
    shape = x.shape if axis is None else [-1]
    results = [found]
    results += [made(first, "int32")] if return_index else []
    results += [tf.reshape(made(inverse, "int32"), shape)] if return_inverse else []
    results += [made(counts, "int32")] if return_counts else []
    return tuple(results) if len(results) > 1 else found
