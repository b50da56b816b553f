"""How shapes, sizes and ranges answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused


@manner
def a_shape_equals_lists_and_tuples(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [
        s == [3, 2],
        s == (3, 2),
        s != [3, 2],
        s == [3],
        s == [3, 2],
        s == (3, 2),
        s == tf.TensorShape([3, 2]),
    ]


@manner
def a_shape_equals_a_number_of_one_axis(tf: Any) -> Any:
    return tf.zeros([3]).shape == 3


@manner
def shapes_have_dims(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [
        s.rank,
        s.ndims,
        [int(n) for n in s.dims],
        s.as_list(),
        s.num_elements(),
        len(s),
        s[0],
        s[-1],
    ]


@manner
def shapes_are_compatible(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [
        s.is_compatible_with([3, 2]),
        s.is_compatible_with([None, 2]),
        s.is_compatible_with([4, 2]),
        s.is_compatible_with([3]),
        s.is_fully_defined(),
        s.is_compatible_with(tf.TensorShape(None)),
    ]


@manner
def shapes_assert_and_merge(tf: Any) -> Any:
    s = tf.TensorShape([None, 2])
    merged = s.merge_with([3, None])
    return [
        merged.as_list(),
        s.assert_is_compatible_with([5, 2]),
        s.is_fully_defined(),
        refused(lambda: s.assert_is_compatible_with([5, 3]), ValueError),
        refused(lambda: s.merge_with([5, 3]), ValueError),
        s.assert_has_rank(2),
        s.concatenate([4]).as_list(),
        s.with_rank_at_least(1).as_list(),
    ]


@manner
def shapes_with_unknown_sizes(tf: Any) -> Any:
    s = tf.TensorShape([None, 2])
    return [
        str(s),
        repr(s),
        s.as_list(),
        s.num_elements(),
        str(tf.TensorShape([3])),
        s[1:].as_list(),
    ]


@manner
def a_shape_that_is_not_known_at_all(tf: Any) -> Any:
    s = tf.TensorShape(None)
    return [
        s.rank,
        str(s),
        s.is_fully_defined(),
        s.is_compatible_with([1, 2]),
        refused(s.as_list, ValueError),
    ]


@manner
def shapes_add_up(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [((*s, 4)).as_list(), ((4, *s)).as_list(), s[:1].as_list(), (s[:1] + s[1:]).as_list()]


@manner
def constants_of_nothing(tf: Any) -> Any:
    return [
        tf.constant([], dtype=tf.int32),
        tf.constant([]),
        tf.constant([[], []]),
        tf.constant([], tf.bool),
    ]


@manner
def a_shape_may_be_one_number(tf: Any) -> Any:
    return [tf.constant(4.0, shape=3), tf.zeros(3), tf.ones(2), tf.fill([2], 1.0), tf.zeros([])]


@manner
def a_constant_fills_its_shape(tf: Any) -> Any:
    return [
        tf.constant(0, shape=[2, 2]),
        tf.constant([1, 2, 3, 4], shape=[2, 2]),
        tf.constant(1.0, shape=()),
    ]


@manner
def an_input_of_one_number(tf: Any) -> Any:
    return str(tuple(tf.keras.Input(shape=(4)).shape))


@manner
def axes_may_be_arrays(tf: Any) -> Any:
    x = tf.reshape(tf.range(24.0), [2, 3, 4])
    return [
        tf.reduce_sum(x, axis=np.array([0, 1])),
        tf.reduce_sum(x, axis=tf.constant([0, 1])),
        tf.reduce_max(x, axis=tf.constant(2)),
        tf.reduce_mean(x, axis=np.int64(1)),
        tf.argmax(x, axis=tf.constant(1)),
    ]


@manner
def specs_without_a_shape(tf: Any) -> Any:
    spec = tf.TensorSpec(None, tf.float32)
    return [
        spec.shape.rank,
        spec.is_compatible_with(tf.zeros([1, 2])),
        spec.is_compatible_with(tf.zeros([1], tf.int32)),
    ]


@manner
def empty_ranges_are_whole_numbers(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0])
    return [tf.range(0), tf.range(3, 3), tf.gather(x, tf.range(0)), tf.range(0.0)]


@manner
def ranges_have_the_dtype_of_their_limit(tf: Any) -> Any:
    return [
        tf.range(np.int64(3)),
        tf.range(3),
        tf.range(tf.constant(3, tf.int64)),
        tf.range(1, 2, 0.5),
    ]


@manner
def ranges_of_counts_of_numpy(tf: Any) -> Any:
    return [
        tf.range(np.int32(2)),
        tf.range(np.float32(2)),
        tf.range(np.float64(2.0)),
        tf.range(2.0),
    ]


@manner
def sizes_in_arrays_of_floats(tf: Any) -> Any:
    sizes, six = np.array([2.0, 3.0]), tf.zeros([6])
    made = [tf.zeros(sizes), tf.ones(np.float32([3])), tf.reshape(six, sizes), tf.fill(sizes, 1.0),
            tf.broadcast_to(six[:1], sizes), tf.zeros(np.float64(3))]  # fmt: skip
    return [
        [x.shape.as_list() for x in made],
        refused(lambda: tf.zeros(tf.constant([2.0, 3.0])), tf.errors.InvalidArgumentError),
        refused(lambda: tf.zeros([2.0, 3.0]), TypeError),
    ]


@manner
def shapes_are_subtypes(tf: Any) -> Any:
    shapes = [tf.TensorShape(n) for n in ([1, 2], [None, 2], [1, 2, 3], None)]
    common = [a.most_specific_compatible_shape(b) for a in shapes for b in shapes]
    return [
        [a.is_subtype_of(b) for a in shapes for b in shapes],
        [None if s.rank is None else s.as_list() for s in common],
        shapes[0].most_specific_common_supertype([tf.TensorShape([3, 2])]).as_list(),
    ]
