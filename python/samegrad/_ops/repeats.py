"""Repeat counts of the slices of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._tensor.dim import Dim
from samegrad._tensor.tensor import Tensor

_ops = _core.ops


def counts_of_slices(repeats: Any) -> np.ndarray[Any, Any] | None:
    """Return a list or vector of numbers; None: it is one number."""
    listed = isinstance(repeats, list | tuple)
    if not listed and getattr(repeats, "ndim", 0) == 0:
        return None
    if listed and any(isinstance(n, Dim) for n in repeats):
        return None
    counts = np.asarray(repeats)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise TypeError(
            f"[repeat] repeats must be an integer or a vector of them: got {shown(repeats)}; "
            "pass an int, or one for each slice."
        )
    return counts


def repeated_each(x: Tensor, counts: np.ndarray[Any, Any], axis: int) -> Tensor:
    """Repeat each slice along an axis by its own number."""
    size = int(x.shape[axis])
    if len(counts) != size or (counts < 0).any():
        raise _core.InvalidArgumentError(
            f"[repeat] there is one number, not negative, for each of the {size} slices: got "
            f"{counts.tolist()[:20]}; pass as many."
        )
    return _ops.gather(x, Tensor(np.repeat(np.arange(size), counts)), axis=axis)
