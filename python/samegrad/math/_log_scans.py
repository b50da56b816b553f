"""Logarithms of the sums of exponentials up to each element."""

from __future__ import annotations

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import as_dtype
from samegrad._tensor.axes import axis_of, counts_examples
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._reductions import zeros_as

_ops = _core.ops


def cumulative_logsumexp(
    x: TensorLike, axis: int = 0, exclusive: bool = False, reverse: bool = False,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Compute the cumulative log Σ exp along an axis, without overflow.

    Neighbours are combined, then pairs, and so on: log2(n) passes over the array.

    Args:
        x: A tensor of floats with at least one axis.
        axis: The axis, negative from the last; not the batch axis.
        exclusive: Exclude each element from its own result: the first one is -inf.
        reverse: Accumulate from the last element to the first.
        name: Ignored.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: The tensor does not hold floats.
        ValueError: There is no such axis, or its size follows from the number of examples.

    Example:
        >>> cumulative_logsumexp([0.0, 1000.0, 1000.0]).numpy().round(2)
        array([   0.  , 1000.  , 1000.69], dtype=float32)
    """
    who = "cumulative_logsumexp"
    value = convert_to_tensor(x)
    if not as_dtype(value._dtype).is_floating:
        raise TypeError(f"[{who}] x must hold floats: got {value._dtype}; use samegrad.cast.")
    place = axis_of(value, axis)
    if counts_examples(value, place):
        raise ValueError(
            f"[{who}] axis {axis} counts examples, of which each replica has its own: take another "
            "axis."
        )
    if reverse:
        value = _ops.reverse(value, axes=[place])
    if exclusive:
        value = _shifted(value, place, 1)
    step, count = 1, int(value.shape[place])
    while step < count:
        value = _joined(value, _shifted(value, place, step))
        step *= 2
    return _ops.reverse(value, axes=[place]) if reverse else value


def _shifted(x: Tensor, axis: int, step: int) -> Tensor:
    """Shift the elements by `step`, after as many that add nothing."""
    before = (slice(None),) * axis
    first, rest = slice(0, step), slice(0, -step)
    lowest = _ops.full_like(x[before + (first,)], value=-np.inf)  # noqa: RUF005
    return _ops.concat(lowest, x[before + (rest,)], axis=axis)  # noqa: RUF005


def _joined(a: Tensor, b: Tensor) -> Tensor:
    largest = _ops.stop_gradient(_ops.maximum(a, b))
    largest = _ops.select(_ops.is_finite(largest), largest, zeros_as(largest))
    total = _ops.exp(a - largest) + _ops.exp(b - largest)
    holds = _ops.not_equal(total, zeros_as(total))  # so that no gradient of the others is infinite
    log = _ops.log(_ops.select(holds, total, _ops.full_like(total, value=1.0)))
    return largest + _ops.select(holds, log, _ops.full_like(total, value=-np.inf))
