"""Isotonic regression."""

from __future__ import annotations

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._ops.arrays import reshape
from samegrad._ops.gather import gather
from samegrad._ops.host_arrays import host_arrays
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._segments import unsorted_segment_mean
from samegrad.math._softmax import move_axis_last

_ops = _core.ops


def isotonic_regression(
    inputs: TensorLike, decreasing: bool = True, axis: int = -1
) -> tuple[Tensor, Tensor]:
    """Find the monotonic sequences nearest to sequences, in least squares.

    Adjacent elements that violate the order get their mean (pool adjacent violators, Barlow et al.,
    1972). Gradients are averaged likewise. It needs values: functions fall back to Python.

    Args:
        inputs: Real numbers with at least one axis; integers become floats.
        decreasing: The order of the results: decreasing, else increasing.
        axis: The axis of the sequences.

    Returns:
        A pair: the sequences, in the shape of `inputs`, and the number of the mean of each element,
        int32, which counts from 0 in each sequence.

    Raises:
        ValueError: There is no such axis.

    Example:
        >>> found, segments = isotonic_regression([3.0, 1.0, 2.0])
        >>> found.numpy(), segments.numpy()
        (array([3. , 1.5, 1.5], dtype=float32), array([0, 1, 1], dtype=int32))
    """
    who = "isotonic_regression"
    given = convert_to_tensor(inputs)
    if not as_dtype(given._dtype).is_floating:
        given = _ops.cast(given, dtype="float64" if as_dtype(given._dtype).size > 2 else "float32")
    moved, swap = move_axis_last(who, given, axis)
    (values,) = host_arrays(who, moved)
    rows = values.reshape(-1, values.shape[-1])
    numbers = np.array([_blocks(row if decreasing else -row) for row in rows], np.int32)
    numbers = numbers.reshape(rows.shape)
    counts = numbers.max(axis=1, initial=-1, keepdims=True) + 1
    each = (numbers + np.cumsum(counts).reshape(-1, 1) - counts).reshape(-1)
    means = unsorted_segment_mean(reshape(moved, [-1]), each, sum(counts.ravel().tolist()))
    found = reshape(gather(means, each), values.shape)
    segments = convert_to_tensor(numbers.reshape(values.shape))
    if swap is None:
        return found, segments
    return _ops.transpose(found, perm=swap), _ops.transpose(segments, perm=swap)


def _blocks(row: np.ndarray) -> np.ndarray:
    """Return the number of the block of each element of a sequence that shall decrease."""
    sums: list[float] = []
    sizes: list[int] = []
    for value in row.tolist():
        total, size = value, 1
        while sums and total * sizes[-1] > sums[-1] * size:
            total, size = total + sums.pop(), size + sizes.pop()
        sums.append(total)
        sizes.append(size)
    return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)


__all__ = ["isotonic_regression"]
