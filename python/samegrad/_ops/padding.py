"""Elements added at the ends of axes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._ops.arrays import cast, concat, python_number
from samegrad._tensor import sizes as _sizes
from samegrad._tensor.axes import counts_examples
from samegrad._tensor.tensor import Dim, Tensor, TensorLike, convert_to_tensor

_ops = _core.ops
# How many elements of the end itself are left out, by mode.
_MIRRORS = {"REFLECT": 1, "SYMMETRIC": 0}


def pad(tensor: TensorLike, paddings: Any, mode: str = "CONSTANT", constant_values: TensorLike = 0,
        name: str | None = None) -> Tensor:  # fmt: skip
    """Pad a tensor with `paddings[i] = (before, after)` elements along axis i.

    Args:
        tensor: A tensor of any dtype.
        paddings: A pair of integers for each axis.
        mode: "CONSTANT"; "REFLECT" mirrors at the first and last element without repeating them;
            "SYMMETRIC" repeats them.
        constant_values: The scalar to pad with in mode "CONSTANT".
        name: Ignored.

    Returns:
        A tensor in the dtype of `tensor`, larger by before + after along each axis.

    Raises:
        ValueError: The mode is unknown, or an axis has fewer elements than are mirrored.

    Example:
        >>> pad([1.0], [[1, 2]]).numpy()
        array([0., 1., 0., 0.], dtype=float32)
        >>> pad([1, 2, 3], [[1, 2]], "REFLECT").numpy()
        array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = convert_to_tensor(tensor)
    if mode.upper() in _MIRRORS:
        return _mirrored(x, paddings, mode.upper())
    if mode.upper() != "CONSTANT":
        raise ValueError(
            f"[pad] the mode must be CONSTANT, REFLECT or SYMMETRIC: got {shown(mode)}."
        )
    spans = paddings if isinstance(paddings, list | tuple) else convert_to_tensor(paddings).numpy()
    pairs = [_sizes.sizes_of(span) for span in spans]
    if _sizes.dim_in(itertools.chain(*pairs)) is None:
        flat = [int(n) for pair_ in pairs for n in pair_]
        return _ops.pad(x, paddings=flat, value=python_number(constant_values))
    for axis, (before, after) in enumerate(pairs):
        parts = [x]
        for size, at in ((before, 0), (after, 2)):
            if isinstance(size, Dim) or size:
                sizes = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
                number = cast(convert_to_tensor(constant_values), x._dtype)
                parts.insert(at, _sizes.broadcast(number, sizes))
        x = concat(parts, axis)
    return x


def _mirrored(x: Tensor, paddings: Any, mode: str) -> Tensor:
    """Mirror the elements at both ends of each axis."""
    pairs = convert_to_tensor(paddings)
    if tuple(pairs._shape) != (x._rank, 2):
        raise ValueError(
            f"[pad] paddings of mode {mode} must be two numbers for each axis: "
            f"got shape {tuple(pairs._shape)} for {tuple(x._shape)}."
        )
    spans = np.asarray(pairs.numpy()).tolist()
    for axis, (before, after) in enumerate(spans):
        if not before and not after:
            continue
        left_out = _MIRRORS[mode]
        if counts_examples(x, axis):
            raise ValueError(
                f"[pad] an axis that counts examples cannot be mirrored: got axis {axis}; use "
                "mode CONSTANT."
            )
        size = int(x.shape[axis])
        if not 0 <= min(before, after) <= max(before, after) <= size - left_out:
            raise _core.InvalidArgumentError(
                f"[pad] mode {mode} adds 0 to {size - left_out} elements at each end of an axis of "
                f"{size}: got {[before, after]} for axis {axis}."
            )
        kind: Any = "reflect" if left_out else "symmetric"
        places = np.pad(np.arange(size, dtype=np.int32), (before, after), kind)
        x = _ops.gather(x, convert_to_tensor(places), axis=axis)
    return x
