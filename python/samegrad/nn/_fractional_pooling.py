"""Fractional pooling: windows of two adjacent sizes, in drawn order (Graham, 2014)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype, is_plain_number
from samegrad._base.shown import shown
from samegrad._ops.arrays import concat, reshape
from samegrad._ops.gather import gather
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.errors import InvalidArgumentError
from samegrad.math._binary import minimum, truncatediv
from samegrad.math._reductions import argmax, reduce_sum
from samegrad.math._scans import cumsum
from samegrad.nn._window import images_of, space_of
from samegrad.random import shuffle, uniform

_ops = _core.ops


class FractionalPool(NamedTuple):
    """Result of `fractional_max_pool` and `fractional_avg_pool`.

    Args:
        output: The pooled images.
        row_pooling_sequence: Where the windows begin along the height, and the height: int64.
        col_pooling_sequence: Where the windows begin along the width, and the width: int64.
    """

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def fractional_max_pool(
    value: TensorLike,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Compute the maximum of each window, of windows whose sizes differ by one.

    Args:
        value: Images [n, height, width, channels].
        pooling_ratio: How many times smaller the result is: a number, or [1, height, width, 1].
        pseudo_random: Draw an offset, which spreads the larger windows evenly, instead of an order.
        overlapping: Each window includes the first pixel of the next one.
        seed: Any integer. 0: derived from `set_seed`.
        name: Ignored.

    Returns:
        A `FractionalPool`. The gradient flows to the first of equal pixels of a window.

    Raises:
        ValueError: Shapes or arguments do not fit.
        InvalidArgumentError: The ratio is larger than the images.

    Example:
        >>> x = [[[[1.0], [5.0]], [[2.0], [4.0]]]]
        >>> fractional_max_pool(x, 2.0).output.numpy().ravel()
        array([5.], dtype=float32)
    """
    who = "fractional_max_pool"
    x, rows, columns = _windows(who, value, pooling_ratio, pseudo_random, overlapping, seed)
    return FractionalPool(_maxima(x, rows, columns), rows.starts, columns.starts)


def fractional_avg_pool(
    value: TensorLike,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Compute the mean of each window, of windows whose sizes differ by one.

    Args:
        value: Images [n, height, width, channels].
        pooling_ratio: How many times smaller the result is: a number, or [1, height, width, 1].
        pseudo_random: Draw an offset, which spreads the larger windows evenly, instead of an order.
        overlapping: Each window includes the first pixel of the next one.
        seed: Any integer. 0: derived from `set_seed`.
        name: Ignored.

    Returns:
        A `FractionalPool`; means of integers are rounded towards zero.

    Raises:
        ValueError: Shapes or arguments do not fit.
        InvalidArgumentError: The ratio is larger than the images.

    Example:
        >>> x = [[[[1.0], [5.0]], [[2.0], [4.0]]]]
        >>> fractional_avg_pool(x, 2.0).output.numpy().ravel()
        array([3.], dtype=float32)
    """
    who = "fractional_avg_pool"
    x, rows, columns = _windows(who, value, pooling_ratio, pseudo_random, overlapping, seed)
    return FractionalPool(_means(x, rows, columns), rows.starts, columns.starts)


class _Places(NamedTuple):
    """The windows along an axis, each with the number of pixels of the largest.

    `starts` is the pooling sequence. `pixels` [windows, size] repeats the last pixel of a smaller
    window, and `counts` has the numbers of pixels.
    """

    starts: Tensor
    pixels: Tensor
    counts: Tensor


def _windows(
    who: str, value: TensorLike, ratio: Any, pseudo_random: bool, overlapping: bool, seed: int
) -> tuple[Tensor, _Places, _Places]:
    x = images_of(who, value)
    ratios = list(ratio) if isinstance(ratio, list | tuple) else [1.0, ratio, ratio, 1.0]
    ratios = [r.item() if isinstance(r, np.generic) else r for r in ratios]
    fits = len(ratios) == 4 and all(is_plain_number(r) and r >= 1 for r in ratios)
    if not fits or ratios[0] != 1 or ratios[3] != 1:
        raise ValueError(
            f"[{who}] pooling_ratio must be a number from 1 on, or [1, height, width, 1]: got "
            f"{shown(ratio)}."
        )
    drawn = None if is_plain_number(seed) and not seed else seed
    rows, columns = (
        _places(_starts(who, size, ratio, pseudo_random, drawn), size, ratio, overlapping)
        for size, ratio in zip(space_of(x), ratios[1:3], strict=True)
    )
    return x, rows, columns


def _starts(who: str, size: int, ratio: float, pseudo_random: bool, seed: int | None) -> Tensor:
    """Draw the pooling sequence of an axis."""
    count = int(size / ratio)
    if not count:
        raise InvalidArgumentError(
            f"[{who}] pooling_ratio must not be larger than an axis: got {ratio} for {size} pixels."
        )
    small, larger = divmod(size, count)
    if pseudo_random:
        alpha = size / count
        most = min((small + 2) / alpha - 1, (size + 1 - small) / alpha - (count - 1))
        offset = uniform([], 0.0, most, "float64", seed)
        inner = _ops.ceil((_numbers(1, count) + offset) * alpha) - 1
    else:
        sizes = convert_to_tensor([small + 1] * larger + [small] * (count - larger), "int64")
        inner = cumsum(shuffle(sizes, seed), axis=0)[:-1]
    first, last = (convert_to_tensor([end], "int64") for end in (0, size))
    return concat([first, _ops.cast(inner, dtype="int64"), last], 0)


def _numbers(first: int, end: int) -> Tensor:
    return convert_to_tensor(list(map(float, range(first, end))), "float64")


def _places(starts: Tensor, size: int, ratio: float, overlapping: bool) -> _Places:
    width = size // int(size / ratio) + 1 + overlapping
    first = starts[:-1]
    last = minimum(starts[1:] - (0 if overlapping else 1), size - 1)
    pixels = minimum(
        reshape(first, [-1, 1]) + convert_to_tensor([list(range(width))], "int64"),
        reshape(last, [-1, 1]),
    )
    return _Places(starts, pixels, last - first + 1)


def _taken(x: Tensor, rows: _Places, columns: _Places) -> Tensor:
    """Return the windows [n, windows, rows, windows, columns, channels]."""
    return gather(gather(x, rows.pixels, axis=1), columns.pixels, axis=3)


def _maxima(x: Tensor, rows: _Places, columns: _Places) -> Tensor:
    windows = _ops.transpose(_taken(x, rows, columns), perm=(0, 1, 3, 5, 2, 4))
    flat = reshape(windows, [*windows.shape[:4], -1])
    return gather(flat, argmax(flat, axis=-1), batch_dims=4)


def _means(x: Tensor, rows: _Places, columns: _Places) -> Tensor:
    def weights(places: _Places) -> Tensor:
        (_, width) = places.pixels._shape
        inside = convert_to_tensor([list(range(width))], "int64") < reshape(places.counts, [-1, 1])
        return _ops.cast(inside, dtype=x._dtype)

    high = reshape(weights(rows), [1, *rows.pixels.shape, 1, 1, 1])
    wide = reshape(weights(columns), [1, 1, 1, *columns.pixels.shape, 1])
    sums = reduce_sum(_taken(x, rows, columns) * high * wide, axis=(2, 4))
    counts = reshape(rows.counts, [1, -1, 1, 1]) * reshape(columns.counts, [1, 1, -1, 1])
    if as_dtype(x._dtype).is_integer:
        return truncatediv(sums, _ops.cast(counts, dtype=x._dtype))
    return sums / _ops.cast(counts, dtype=x._dtype)


__all__ = ["FractionalPool", "fractional_avg_pool", "fractional_max_pool"]
