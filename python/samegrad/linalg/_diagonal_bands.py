"""Bands of several neighboring diagonals, packed as the rows of a matrix.

Row i of a packed band is diagonal `upper - i`; shorter diagonals are padded on the side that
`align` does not name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.errors import InvalidArgumentError

_ops = _core.ops
_ALIGNMENTS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def limits(who: str, k: Any) -> tuple[int, int]:
    """Return the lowest and the highest diagonal of `k`: a number, or a pair of them."""
    values = np.asarray(k.numpy() if isinstance(k, Tensor) else k)
    if values.ndim > 1 or values.size not in (1, 2):
        raise InvalidArgumentError(
            f"[{who}] k is the number of one diagonal, or the lowest and the highest of several: "
            f"got {shown(k)}."
        )
    numbers = [_sizes.whole(x, "k is an integer") for x in values.reshape(-1).tolist()]
    if numbers[0] > numbers[-1]:
        raise InvalidArgumentError(
            f"[{who}] k begins with the lowest diagonal: got {numbers}; turn it round."
        )
    return numbers[0], numbers[-1]


def band_part_of(x: Tensor, band: tuple[int, int], padding: Any, align: str) -> Tensor:
    """Return the diagonals of a band as a tensor [..., diagonals, longest length]."""
    rows, columns = x.shape[-2:]
    longest = longest_of(rows, columns, band)
    diagonal = convert_to_tensor(band[1] - np.arange(band[1] - band[0] + 1)[:, None], "int64")
    length = _length(diagonal, rows, columns)
    place = _sizes.iota(longest) - _offset(diagonal, length, longest, align)
    inside = _ops.logical_and(place >= 0, _ops.less(place, length))
    row, column = place - _ops.minimum(diagonal, _zero()), place + _ops.maximum(diagonal, _zero())
    index = _ops.select(inside, row * columns + column, _zero())
    found = _picked(x, index, 2)
    return _ops.select(inside, found, convert_to_tensor(padding, x._dtype))


def placed(line: Tensor, band: tuple[int, int], rows: Any, columns: Any,
           others: Tensor, align: str) -> Tensor:  # fmt: skip
    """Return matrices with a packed band, and the elements of `others` outside of it."""
    longest = longest_of(rows, columns, band)
    row, column = _ops.expand_dims(_sizes.iota(rows), axes=[1]), _sizes.iota(columns)
    diagonal = column - row
    inside = _ops.logical_and(diagonal >= band[0], diagonal <= band[1])
    place = column - _ops.maximum(diagonal, _zero())
    place = place + _offset(diagonal, _length(diagonal, rows, columns), longest, align)
    index = place if band[0] == band[1] else (band[1] - diagonal) * longest + place
    index = _ops.select(inside, index, _zero())
    return _ops.select(inside, _picked(line, index, 1 + (band[0] != band[1])), others)


def longest_of(rows: Any, columns: Any, band: tuple[int, int]) -> Any:
    """Return the length of the longest diagonal of a band."""
    tall, wide = rows + min(band[1], 0), columns - max(band[0], 0)
    return tall if tall < wide else wide


def checked_alignment(who: str, align: Any) -> str:
    """Return the alignment; raise ValueError for other values."""
    if align not in _ALIGNMENTS:
        raise ValueError(f"[{who}] align must be one of {_ALIGNMENTS}: got {shown(align)}.")
    return str(align)


def _zero() -> Tensor:
    return convert_to_tensor(0, "int64")


def _size(size: Any) -> Tensor:
    return _ops.cast(convert_to_tensor(size), dtype="int64")


def _length(diagonal: Tensor, rows: Any, columns: Any) -> Tensor:
    """Return the length of each diagonal."""
    tall = _size(rows) + _ops.minimum(diagonal, _zero())
    return _ops.minimum(tall, _size(columns) - _ops.maximum(diagonal, _zero()))


def _offset(diagonal: Tensor, length: Tensor, longest: Any, align: str) -> Tensor:
    """Return how many padding elements are in front of each diagonal."""
    above, _, below = align.partition("_")
    # The main diagonal is aligned to the left where one of the two sides is.
    at_left = _ops.less(diagonal, _zero()) if below == "LEFT" else _ops.less(length, _zero())
    if above == "LEFT":
        at_left = _ops.logical_or(at_left, _ops.greater(diagonal, _zero()))
    if "LEFT" in align:
        at_left = _ops.logical_or(at_left, _ops.equal(diagonal, _zero()))
    return _ops.select(at_left, _zero(), _size(longest) - length)


def _picked(x: Tensor, index: Tensor, axes: int) -> Tensor:
    """Return elements of the last axes, flattened, by their index."""
    flat = _sizes.reshape(x, [*x.shape[:-axes], _product(x.shape[-axes:])]) if axes > 1 else x
    return _ops.gather(flat, index, axis=flat._rank - 1)


def _product(sizes: Any) -> Any:
    found: Any = 1
    for size in sizes:
        found = size * found
    return found
