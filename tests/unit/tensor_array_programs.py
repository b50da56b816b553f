"""Programs with arrays of tensors, for samegrad and for TensorFlow (`tf`), and their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

N = 5
X = np.round(np.sin(np.arange(N * 3) ** 2 / 7.0), 3).reshape(N, 3).astype("float32")


def written_and_stacked(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=N)
    for i in range(N):
        array = array.write(i, tf.tanh(x[i]) * x[N - 1 - i])
    return array.stack()


def loop_of_the_step(tf: Any, x: Any, n: Any) -> Any:
    given = tf.TensorArray(tf.float32, size=N, clear_after_read=False).unstack(x)
    array = tf.TensorArray(tf.float32, size=N)

    def body(i: Any, h: Any, array: Any) -> Any:
        h = tf.tanh(0.5 * h + given.read(i))
        return i + 1, h, array.write(i, h * h)

    _, h, array = tf.while_loop(
        lambda i, h, array: i < n, body, (tf.constant(0), tf.zeros([3]), array)
    )
    return array.stack() * h


def some_written(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=2 * N, element_shape=[3])
    _, array = tf.while_loop(
        lambda i, array: i < n,
        lambda i, array: (i + 1, array.write(2 * i, x[0] * tf.cast(i, tf.float32))),
        (tf.constant(0), array),
    )
    return array.stack()


def read_and_written(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=N + 1, clear_after_read=False, element_shape=[3])
    array = array.write(0, x[0])

    def body(i: Any, array: Any) -> Any:
        return i + 1, array.write(i + 1, tf.sin(array.read(i)) + x[1] * array.read(0))

    _, array = tf.while_loop(lambda i, array: i < n, body, (tf.constant(0), array))
    return array.stack()


def written_again(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=2, element_shape=[3])

    def body(i: Any, array: Any) -> Any:
        array = array.write(0, x[1] * tf.cast(i, tf.float32))
        return i + 1, array.write(i % 2, x[0] * x[2] * tf.cast(i, tf.float32))

    _, array = tf.while_loop(lambda i, array: i < n, body, (tf.constant(0), array))
    return array.stack()


def gathered_and_scattered(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=N).scatter([4, 2, 0], x[:3])
    return array.gather([0, 2, 2]) * x[2:]


def parts_joined(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=3, infer_shape=False).split(x, [1, 0, 4])
    return array.concat() * x


def joined_in_rows(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=N)
    _, array = tf.while_loop(
        lambda i, array: i < n,
        lambda i, array: (i + 1, array.write(i, x[:2] * x[i])),
        (tf.constant(0), array),
    )
    return array.concat()


def in_branches(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=3, element_shape=[3]).write(1, x[1])
    array = tf.cond(n > 3, lambda: array.write(0, x[0]), lambda: array.write(2, x[2]))
    return array.stack()


def of_whole_numbers(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.int32, size=N, element_shape=[])
    _, array = tf.while_loop(
        lambda i, array: i < n, lambda i, array: (i + 1, array.write(i, i * i)), (0, array)
    )
    return tf.cast(array.stack(), tf.float32)[:, None] * x


def grown(tf: Any, x: Any, n: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    array = array.write(2, x[2]).write(0, x[0])
    return array.stack() * tf.cast(array.size(), tf.float32)


PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    f.__name__: f
    for f in (
        written_and_stacked, loop_of_the_step, some_written, read_and_written, written_again,
        gathered_and_scattered, parts_joined, joined_in_rows, in_branches, of_whole_numbers, grown,
    )
}  # fmt: skip
COUNTS = (4, 2)


def with_derivatives(tf: Any, program: Callable[..., Any], x: Any, n: Any) -> list[Any]:
    """The result, the gradient of the sum of its cubes and that of the gradient's squares."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(tf, x, n)
            loss = tf.reduce_sum(y * y * y)
        first = tape.gradient(loss, x)
        total = tf.reduce_sum(first * first)
    return [y, first, outer.gradient(total, x)]
