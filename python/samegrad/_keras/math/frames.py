"""Parts of the last axis, and what adds them up again."""

from __future__ import annotations

import numpy as np

import samegrad as tf
from samegrad import math
from samegrad._tensor.tensor import Tensor


def framed(x: Tensor, length: int, step: int) -> Tensor:
    """Parts of the last axis, `step` apart: [..., parts, length].

    Example:
        >>> framed(tf.constant([1, 2, 3, 4]), 2, 1).numpy().tolist()
        [[1, 2], [2, 3], [3, 4]]
    """
    count = max((int(x.shape[-1]) - length) // step + 1, 0)
    return tf.gather(x, np.arange(count)[:, None] * step + np.arange(length), axis=-1)


def added_up(frames: Tensor, step: int) -> Tensor:
    """Frames [..., parts, length] where they lie, the sum where they overlap.

    Example:
        >>> added_up(tf.constant([[1.0, 2.0], [10.0, 20.0]]), 1).numpy()
        array([ 1., 12., 20.], dtype=float32)
    """
    *rest, count, length = frames.shape
    places = np.arange(int(count))[:, None] * step + np.arange(int(length))
    flat = tf.reshape(frames, (*rest, places.size))
    last = flat._rank - 1
    rows = tf.transpose(flat, [last, *range(last)])
    size = (int(count) - 1) * step + int(length) if count else 0
    sums = math.unsorted_segment_sum(rows, places.reshape(-1), size)
    return tf.transpose(sums, [*range(1, last + 1), 0])
