"""Reductions of ragged tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad._base.shown import shown
from samegrad._ops import complex_arrays as arrays
from samegrad._tensor.axes import axis_in
from samegrad._tensor.ragged import RaggedTensor
from samegrad._tensor.ragged_broadcast import fitted
from samegrad._tensor.ragged_places import in_rows, known
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.math import _complex as mathematics
from samegrad.math import _reductions, _segments
from samegrad.ragged._each import as_rows, name_of

Function = Callable[..., Any]


def _axes(rows: RaggedTensor, axis: Any) -> list[int]:
    """The axes from the last to the first: each is reduced for itself."""
    if isinstance(axis, Tensor):
        axis = known(axis, "axes").tolist()
    given = axis if isinstance(axis, list | tuple | np.ndarray) else [axis]
    return sorted({axis_in(rows._rank, one) for one in given}, reverse=True)


def _segment_of(rows: RaggedTensor, axis: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return the segment of each value when axis 0 or 1 is reduced, and their number."""
    lengths = np.diff(rows._ends)
    row = np.repeat(np.arange(rows.nrows()), lengths)
    if axis == 1:
        return row, rows.nrows()
    return np.arange(len(row)) - rows._ends[row], int(lengths.max(initial=0))


def _reduced(
    values: Any, axis: Any, keepdims: bool, dense: Function, by_segments: Function, who: str
) -> Any:
    if axis is None:
        found = dense(values.flat_values, None)
        return arrays.reshape(found, [1] * values._rank) if keepdims else found
    found = values
    for one in _axes(values, axis):
        if not isinstance(found, RaggedTensor):
            found = dense(found, one, keepdims)
        elif one > 1:
            found = as_rows(found, dense(found.flat_values, one - 1, keepdims), who)
        else:
            ids, count = _segment_of(found, one)
            found = by_segments(found.flat_values, convert_to_tensor(ids), count)
            found = arrays.expand_dims(found, one) if keepdims else found
    return found


def reduced(by_segments: Function) -> Function:
    """The rule of a function whose rows may be reduced one axis after the other."""

    def rule(
        function: Function, input_tensor: Any, axis: Any = None, keepdims: Any = False,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        given = input_tensor, axis, bool(keepdims)
        return _reduced(*given, function, by_segments, name_of(function))

    return rule


_total = reduced(_segments.unsorted_segment_sum)


def _sum(rows: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    return _total(_reductions.reduce_sum, rows, axis, keepdims)


def truth(by_segments: Function) -> Function:
    """The rule of reduce_all and reduce_any: the least or greatest of zeros and ones."""

    def rule(
        function: Function, input_tensor: Any, axis: Any = None, keepdims: Any = False,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        def least_or_most(values: Any, ids: Any, count: int) -> Any:
            found = by_segments(arrays.cast(values, "int32"), ids, count)
            return mathematics.equal(found, 1) if most else mathematics.not_equal(found, 0)

        most = by_segments is _segments.unsorted_segment_max
        values = input_tensor.flat_values
        if values._dtype != "bool":
            whole = arrays.cast(values, "int32")
            input_tensor = input_tensor._like(mathematics.not_equal(whole, 0))
        given = input_tensor, axis, bool(keepdims)
        return _reduced(*given, function, least_or_most, name_of(function))

    return rule


def _mean(rows: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    total = _sum(rows, axis, keepdims)
    ones = rows._like(arrays.ones_like(rows.flat_values))
    count = _sum(ones, axis, keepdims)
    if not isinstance(total, RaggedTensor):
        return mathematics.divide(total, count)
    return total._like(mathematics.divide(total.flat_values, count.flat_values))


def mean(
    function: Function, input_tensor: Any, axis: Any = None, keepdims: Any = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Return the mean; NaN for no values, float64 for integers."""
    return _mean(input_tensor, axis, bool(keepdims))


def _spread(found: Any, rows: RaggedTensor, axes: list[int]) -> Any:
    """For each value of rows what was found for it, with the reduced axes kept."""
    if isinstance(found, RaggedTensor):
        return found.flat_values
    width = found._shape[1]
    row = np.repeat(np.arange(rows.nrows()), np.diff(rows._ends))
    within = np.arange(len(row)) - rows._ends[row]
    flat = (0 if 0 in axes else row) * width + (0 if 1 in axes else within)
    merged = arrays.reshape(found, [found._shape[0] * width, *found._shape[2:]])
    return in_rows(merged, np.broadcast_to(flat, row.shape))


def _all_axes(rows: RaggedTensor, axis: Any) -> list[int]:
    return _axes(rows, list(range(rows._rank)) if axis is None else axis)


def _without(found: Any, axes: list[int], keepdims: Any) -> Any:
    """A result whose reduced axes have size 1, without them."""
    if keepdims or not axes:
        return found
    if isinstance(found, RaggedTensor):
        return found._like(arrays.squeeze(found.flat_values, [axis - 1 for axis in axes]))
    return arrays.squeeze(found, sorted(axes))


def variance(
    function: Function, input_tensor: Any, axis: Any = None, keepdims: Any = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The mean of squared differences from the mean, or its root."""
    who = name_of(function)
    axes = _all_axes(input_tensor, axis)
    values = input_tensor.flat_values
    if "float" not in values._dtype:
        values = arrays.cast(values, "float64")
    rows = input_tensor._like(values)
    middle = _spread(_mean(rows, axes, True), rows, axes) if axes else values
    squares = rows._like(mathematics.square(mathematics.subtract(values, middle)))
    found = _without(_mean(squares, axes, True), axes, keepdims)
    if who != "reduce_std":
        return found
    if isinstance(found, RaggedTensor):
        return found._like(mathematics.sqrt(found.flat_values))
    return mathematics.sqrt(found)


def _exponentials(rows: RaggedTensor, axes: list[int], who: str) -> tuple[Any, Any]:
    """The largest values, and e to the power of the differences from them."""
    largest = reduced(_segments.unsorted_segment_max)(_reductions.reduce_max, rows, axes, True)
    if isinstance(largest, RaggedTensor):
        largest = largest._like(arrays.stop_gradient(largest.flat_values))
    else:
        largest = arrays.stop_gradient(largest)
    less = mathematics.subtract(rows.flat_values, _spread(largest, rows, axes))
    return largest, as_rows(rows, mathematics.exp(less), who)


def softmax(
    function: Function, logits: Any, axis: Any = None, name: str | None = None
) -> RaggedTensor:
    """Exponentials that add up to 1 along an axis; of rows by default the last one."""
    along = axis_in(logits._rank, -1 if axis is None else axis)
    if along > 1:
        return as_rows(logits, function(logits.flat_values, along - 1), "softmax")
    if "float" not in logits._dtype:
        raise TypeError(f"[softmax] logits must be floats: got {logits._dtype}; use samegrad.cast.")
    _, powers = _exponentials(logits, [along], "softmax")
    total = _spread(_sum(powers, along, True), powers, [along])
    return as_rows(logits, mathematics.divide(powers.flat_values, total), "softmax")


def logsumexp(
    function: Function, input_tensor: Any, axis: Any = None, keepdims: Any = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The logarithm of the sum of exponentials."""
    who = name_of(function)
    axes = _all_axes(input_tensor, axis)
    largest, powers = _exponentials(input_tensor, axes, who)
    total = _sum(powers, axes, True)
    if isinstance(total, RaggedTensor):
        found = mathematics.add(mathematics.log(total.flat_values), largest.flat_values)
        return _without(total._like(found), axes, keepdims)
    return _without(mathematics.add(mathematics.log(total), largest), axes, keepdims)


def cumsum(
    function: Function, x: Any, axis: Any = 0, exclusive: Any = False, reverse: Any = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Running sums of each row, of each place in rows, or within values."""
    along = axis_in(x._rank, axis)
    if along > 1:
        return as_rows(x, function(x.flat_values, along - 1, exclusive, reverse), "cumsum")
    made = function(x.to_tensor(), along, exclusive, reverse)
    return RaggedTensor.from_tensor(made, lengths=np.diff(x._ends))


def bincount(
    function: Function, arr: Any, weights: Any = None, minlength: Any = None,
    maxlength: Any = None, dtype: Any = "int32", name: str | None = None, axis: Any = None,
    binary_output: Any = False,
) -> Any:  # fmt: skip
    """Counts of all values, or row by row."""
    if isinstance(weights, RaggedTensor):
        weights = fitted([arr, weights], "bincount")[0][1]
    options = {"dtype": dtype, "binary_output": binary_output}
    if axis in (None, 0):
        return function(arr.flat_values, weights, minlength, maxlength, **options)
    if axis not in (-1, 1) or arr._rank != 2:
        raise ValueError(
            f"[bincount] axis must be None, 0, 1 or -1, of rows of numbers: got {shown(axis)} for "
            f"shape {arr.shape}."
        )
    numbers = known(arr.flat_values, "counts")
    most = max(int(numbers.max(initial=-1)) + 1, minlength or 0)
    most = most if maxlength is None else min(most, maxlength)
    if not arr.nrows():
        return arrays.zeros([0, most], dtype if weights is None else weights.dtype)
    rows = [arr[row] for row in range(arr.nrows())]
    parts = [None] * len(rows) if weights is None else [*arr.with_values(weights)]
    return arrays.stack([
        function(row, part, most, most, **options) for row, part in zip(rows, parts, strict=True)
    ])  # fmt: skip


def matmul(function: Function, a: Any, b: Any, *args: Any, **options: Any) -> Any:
    """The matrix of each row's values times that of the row."""
    turned = any(args[::2]) or options.get("transpose_a") or options.get("adjoint_a")
    right = isinstance(a, RaggedTensor) and not isinstance(b, RaggedTensor) and not turned
    if not right or a._rank != 3:
        raise (ValueError if right else NotImplementedError)(
            "[matmul] the first factor may be rows of vectors, [rows, None, n], beside a tensor "
            f"[rows, n, m]: got shapes {a.shape} and {getattr(b, 'shape', shown(b))}; take "
            "to_tensor()."
        )
    made = function(a.to_tensor(), b, *args, **options)
    return RaggedTensor.from_tensor(made, lengths=np.diff(a._ends))
