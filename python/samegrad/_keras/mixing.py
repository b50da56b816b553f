"""Computations of layers over the images of a whole batch: those of all replicas."""

from __future__ import annotations

from typing import Any

import samegrad as tf
from samegrad import _core
from samegrad._context import state as _context
from samegrad._keras import random
from samegrad._keras.conversion import convert_to_tensor
from samegrad._keras.losses import in_replica_of_several
from samegrad._tensor.example_axis import as_examples
from samegrad._tensor.tensor import Tensor
from samegrad.nn._loss_normalization import all_reduce_sum

_ops = _core.ops


def partners(count: Any, seed: Any) -> Tensor:
    """For each example of the replica, the number of another among those of all replicas.

    The numbers of all replicas together are a permutation, which the seed decides.

    Args:
        count: Of the replica's examples.
        seed: Of the draw.
    """
    draws = random.uniform((count,), dtype="float32", seed=seed)
    if not in_replica_of_several():
        return _context.note_one_replica("a permutation of examples", tf.argsort(draws))
    draws = as_examples(draws)
    return tf.gather(tf.argsort(_gathered(draws)), _ops.row_numbers(draws))


def rows_of(rows: Any, numbers: Tensor) -> Tensor:
    """The rows of all replicas that have these numbers.

    Args:
        rows: One for each example of the replica.
        numbers: Made by `partners`.
    """
    x = convert_to_tensor(rows)
    if not in_replica_of_several():
        return _context.note_one_replica("examples of the batch", tf.gather(x, numbers))
    return tf.gather(_gathered(x), numbers)


def histogram(numbers: Any, count: int) -> Tensor:
    """Count each integer below `count` over all replicas.

    Example:
        >>> histogram([0, 2, 2], 4).numpy()
        array([1, 0, 2, 0], dtype=int32)
    """
    flat = tf.reshape(convert_to_tensor(numbers, "int32"), (-1,))
    zeros = tf.zeros((count,), "int32")
    own = tf.tensor_scatter_nd_add(zeros, tf.expand_dims(flat, 1), tf.ones_like(flat))
    total: Tensor = all_reduce_sum(own)
    return total


def largest(values: Any) -> Tensor:
    """The largest value of all replicas.

    Example:
        >>> float(largest([[1.0, 3.0], [2.0, 0.0]]))
        3.0
    """
    own = tf.reduce_max(convert_to_tensor(values))
    if not in_replica_of_several():
        return _context.note_one_replica("the largest value of the batch", own)
    return tf.reduce_max(_of_all(tf.expand_dims(own, 0)))


def cropped(images: Any, top: Any, left: Any, sizes: tuple[int, int], data_format: str) -> Tensor:
    """A part of images, from a place that may be drawn in the step.

    Args:
        images: One or a batch.
        top: The first row of pixels.
        left: The first column.
        sizes: How many rows and columns; fewer where a known place leaves fewer.
        data_format: Position of the channel axis.
    """
    x = convert_to_tensor(images)
    first = x._rank - (3 if data_format == "channels_last" else 2)
    for axis, (start, size) in enumerate(zip((top, left), sizes, strict=True), first):
        end = size
        if not tf.is_tensor(start):
            end = min(size, int(x.shape[axis]) - start)
        x = tf.gather(x, tf.range(end) + tf.cast(start, "int32"), axis=axis)
    return x


def _gathered(rows: Any) -> Tensor:
    return _of_all(as_examples(rows))


def _of_all(parts: Tensor) -> Tensor:
    context = _context.get_replica_context()
    assert context is not None
    joined: Tensor = context.all_gather(parts, axis=0)
    return joined
