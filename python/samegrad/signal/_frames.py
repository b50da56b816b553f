"""Parts of an axis, and what adds them up again."""

from __future__ import annotations

from typing import Any

import numpy as np

from samegrad import _core
from samegrad._ops import arrays, padding
from samegrad._ops import gather as gathers
from samegrad._tensor.complex_calls import Function, also_complex, linear
from samegrad._tensor.complex_tensor import ComplexTensor, to_complex
from samegrad._tensor.sizes import whole
from samegrad._tensor.tensor import Tensor, TensorLike, convert_to_tensor
from samegrad.math._segments import unsorted_segment_sum

_ops = _core.ops


def at_least(value: Any, least: int, who: str, name: str) -> int:
    """Return an integer that is not below another one.

    Raises:
        TypeError: The value is not an integer.
        ValueError: The value is below `least`.
    """
    number = whole(value, f"{name} is an integer")
    if number < least:
        raise ValueError(f"[{who}] {name} must be {least} or more: got {number}.")
    return number


def framed(x: Tensor, length: int, step: int, axis: int = -1) -> Tensor:
    """Split an axis into frames, `step` apart: [..., frames, length, ...].

    Example:
        >>> framed(convert_to_tensor([1, 2, 3, 4]), 2, 1).numpy().tolist()
        [[1, 2], [2, 3], [3, 4]]
    """
    count = max((int(x.shape[axis]) - length) // step + 1, 0)
    return gathers.gather(x, np.arange(count)[:, None] * step + np.arange(length), axis=axis)


def added_up(frames: Tensor, step: int) -> Tensor:
    """Sum frames [..., frames, length] where they overlap.

    Example:
        >>> added_up(convert_to_tensor([[1.0, 2.0], [10.0, 20.0]]), 1).numpy()
        array([ 1., 12., 20.], dtype=float32)
    """
    *rest, count, length = frames.shape
    places = np.arange(int(count))[:, None] * step + np.arange(int(length))
    flat = arrays.reshape(frames, (*rest, places.size))
    last = flat._rank - 1
    rows = arrays.transpose(flat, [last, *range(last)])
    size = (int(count) - 1) * step + int(length) if count else 0
    sums = unsorted_segment_sum(rows, places.reshape(-1), size)
    return arrays.transpose(sums, [*range(1, last + 1), 0])


def _with_complex_filling(function: Function) -> Function:
    """Wrap `frame` for complex signals, whose parts are padded by the parts of the value."""

    def rule(signal: Any, pad_value: Any = 0, **options: Any) -> ComplexTensor:
        z = to_complex(signal, "frame")
        fill = complex(pad_value)
        pairs = zip(z.parts, (fill.real, fill.imag), strict=True)
        return ComplexTensor(*(function(x, pad_value=n, **options) for x, n in pairs))

    return also_complex(function, rule)


@_with_complex_filling
def frame(
    signal: TensorLike, frame_length: Any, frame_step: Any, pad_end: bool = False,
    pad_value: Any = 0, axis: int = -1, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Split an axis into frames: [..., samples, ...] becomes [..., frames, frame_length, ...].

    Args:
        signal: A tensor of numbers, also complex, with at least one axis.
        frame_length: The number of samples of a frame.
        frame_step: The distance between the starts of two frames, in samples.
        pad_end: Pad the end, so that there is a frame at every start within the signal.
        pad_value: The scalar to pad with; complex only if the signal is complex.
        axis: The axis of the samples, negative from the last.
        name: Ignored.

    Returns:
        A tensor with one more axis, in the dtype of `signal`.

    Raises:
        ValueError: A length is below 1, or there is no such axis.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.frame([1, 2, 3, 4, 5], 3, 2).numpy().tolist()
        [[1, 2, 3], [3, 4, 5]]
    """
    x = convert_to_tensor(signal)
    length = at_least(frame_length, 1, "frame", "frame_length")
    step = at_least(frame_step, 1, "frame", "frame_step")
    place = whole(axis, "axis is an integer")
    if not -x._rank <= place < x._rank:
        raise ValueError(f"[frame] axis must be one of {x._rank}: got {place}.")
    place %= x._rank
    samples = int(x.shape[place])
    if pad_end and samples:
        more = max(0, (-(-samples // step) - 1) * step + length - samples)
        around = [[0, 0]] * place + [[0, more]] + [[0, 0]] * (x._rank - 1 - place)
        x = padding.pad(x, around, constant_values=pad_value)
    return framed(x, length, step, place)


@linear
def overlap_and_add(signal: TensorLike, frame_step: Any, name: str | None = None) -> Tensor:
    """Reconstruct a signal of frames, which are summed where they overlap.

    Args:
        signal: A tensor of shape [..., frames, frame_length], real or complex.
        frame_step: The distance between the starts of two frames, in samples.
        name: Ignored.

    Returns:
        A tensor [..., (frames - 1) * frame_step + frame_length], in the dtype of `signal`.

    Raises:
        ValueError: The signal has fewer than two axes, or the step is below 1.

    Example:
        >>> import samegrad as tf
        >>> tf.signal.overlap_and_add([[1.0, 2.0], [10.0, 20.0]], 1).numpy()
        array([ 1., 12., 20.], dtype=float32)
    """
    frames = convert_to_tensor(signal)
    if frames._rank < 2:
        raise ValueError(
            f"[overlap_and_add] signal must be [..., frames, frame_length]: got shape "
            f"{frames._shape}."
        )
    return added_up(frames, at_least(frame_step, 1, "overlap_and_add", "frame_step"))
