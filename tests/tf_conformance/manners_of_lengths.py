"""How often a function is traced whose sizes are open, and what Python sees of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused


def ids(n: int) -> np.ndarray:
    """Three sentences of n words."""
    return np.arange(3 * n).reshape(3, n) % 7


def counted(tf: Any, fn: Any, *shapes: Any, calls: Any, **options: Any) -> Any:
    """The results of calls of a function that returns one, and how often Python ran."""
    runs = []

    def traced(*args: Any) -> Any:
        runs.append([arg.shape.as_list() for arg in args])
        return fn(*args)

    if shapes:
        options["input_signature"] = [tf.TensorSpec(shape, tf.int64) for shape in shapes]
    function = tf.function(traced, **options)
    results = [function(*(tf.constant(ids(n)) for n in args)) for args in calls]
    return [*results, runs]


@manner
def every_length_is_traced_once(tf: Any) -> Any:
    def f(x: Any) -> Any:
        return tf.reduce_sum(x * x) + tf.cast(tf.shape(x)[1], tf.int64)

    return counted(tf, f, [None, None], calls=[(3,), (5,), (70,), (1,), (3,)])


@manner
def a_known_axis_stays_a_number(tf: Any) -> Any:
    return counted(tf, lambda x: x.shape[0] * tf.shape(x)[1], [3, None], calls=[(3,), (5,)])


@manner
def lengths_of_two_arguments_are_traced_once(tf: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return tf.matmul(x, x, transpose_b=True) + tf.reduce_max(y, axis=1)

    calls = [(3, 5), (5, 5), (2, 9)]
    return counted(tf, f, [None, None], [None, None], calls=calls)


@manner
def sizes_that_change_are_open_where_retracing_is_reduced(tf: Any) -> Any:
    calls = [(3,), (3,), (5,), (8,), (3,)]
    return counted(tf, lambda x: tf.reduce_sum(x, 1), calls=calls, reduce_retracing=True)


@manner
def other_shapes_are_traced_again(tf: Any) -> Any:
    return counted(tf, lambda x: tf.reduce_sum(x, 1), calls=[(3,), (5,), (3,), (4,)])


@manner
def a_range_of_the_length(tf: Any) -> Any:
    def f(x: Any) -> Any:
        return x * tf.range(tf.shape(x, out_type=tf.int64)[1])

    return counted(tf, f, [None, None], calls=[(3,), (1,), (6,)])


@manner
def a_loop_over_the_length(tf: Any) -> Any:
    def f(x: Any) -> Any:
        def body(i: Any, total: Any) -> Any:
            return i + 1, total * 2 + x[:, i]

        def condition(i: Any, total: Any) -> Any:
            return i < tf.shape(x)[1]

        return tf.while_loop(condition, body, [0, tf.zeros([3], tf.int64)])[1]

    return counted(tf, f, [3, None], calls=[(3,), (1,), (6,)])


@manner
def lengths_that_meet_must_fit(tf: Any) -> Any:
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int64)] * 2)
    def f(x: Any, y: Any) -> Any:
        return x + y

    equal, one = f(ids(3), ids(3)), f(ids(5), ids(1))
    kinds = (ValueError, tf.errors.InvalidArgumentError)
    return [equal, one, refused(lambda: f(ids(3), ids(5)), *kinds)]
