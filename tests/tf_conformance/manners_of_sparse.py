"""Sparse tensors with numbers, wrong dtypes, and how one number is shown."""

from __future__ import annotations

from typing import Any

from manner_programs import manner, refused


@manner
def sparse_tensors_times_numbers(tf: Any) -> Any:
    few = tf.SparseTensor([[0, 1], [1, 0], [2, 3]], [1.0, 2.0, 3.0], [3, 4])
    row = tf.constant([1.0, 2.0, 3.0, 4.0])
    made = few * 42.0, few / 2.0, few * row, few / (row + row)
    return [tf.sparse.to_dense(each) for each in made] + [refused(lambda: few + 1.0, TypeError)]


@manner
def wrong_dtypes_in_a_function_are_type_errors(tf: Any) -> Any:
    return refused(lambda: tf.function(lambda x: x + tf.constant(2))(tf.constant(1.0)), TypeError)


@manner
def one_number_is_shown_without_more(tf: Any) -> Any:
    values = tf.constant(1.5), tf.constant(True), tf.constant(3), tf.Variable(2.5)
    return [repr(value).partition("numpy=")[2] for value in values]


@manner
def rows_of_sparse_tensors(tf: Any) -> Any:
    few = tf.SparseTensor([[0, 1], [2, 0], [2, 3]], [1.0, 2.0, 3.0], [4, 5])
    other = tf.SparseTensor([[0, 1], [1, 1], [2, 3]], [-1.0, -2.0, 7.0], [4, 5])
    words = tf.SparseTensor([[1, 0]], ["1"], [2, 2])
    filled, was_empty = tf.sparse.fill_empty_rows(few, 9.0)
    both = [tf.sparse.maximum(few, other), tf.sparse.minimum(few, other)]
    numbers = tf.SparseTensor([[0, 0], [1, 1]], [2, 0], [2, 2])
    return [
        *[part for each in (filled, *both) for part in (each.indices, each.values)],
        was_empty,
        tf.sparse.fill_empty_rows(words, "2")[0].values.numpy().astype("int64"),
        tf.sparse.to_dense(tf.sparse.softmax(few)),
        tf.sparse.reset_shape(few).dense_shape,
        tf.sparse.reset_shape(few, [5, 5]).dense_shape,
        [part.dense_shape for part in tf.sparse.split(few, 2, 1)],
        [part.values for part in tf.sparse.split(few, num_split=3, axis=0)],
        tf.sparse.to_indicator(numbers, 3),
        tf.sparse.to_dense(tf.sparse.eye(2, 3)),
        refused(lambda: tf.sparse.reset_shape(few, [1, 1]), ValueError, tf.errors.OpError),
        refused(lambda: tf.sparse.to_indicator(numbers, 1), tf.errors.OpError),
        refused(lambda: tf.sparse.maximum(few, tf.sparse.eye(2)), tf.errors.OpError),
        refused(lambda: tf.sparse.split(few, 9, 1), tf.errors.OpError),
        refused(lambda: tf.sparse.softmax(tf.SparseTensor([[0]], [1.0], [2])), tf.errors.OpError),
    ]


@manner
def segments_of_chosen_rows(tf: Any) -> Any:
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape() as tape:
        tape.watch(rows)
        sums = tf.sparse.segment_sqrt_n(rows, [2, 0, 2], [0, 0, 2])
    return [
        tf.sparse.segment_sum(rows, [2, 0, 2], [0, 0, 2]),
        tf.sparse.segment_mean(rows, [2, 0, 2], [0, 0, 1], num_segments=3),
        sums,
        tape.gradient(sums, rows),
        refused(lambda: tf.sparse.segment_sum(rows, [9], [0]), tf.errors.OpError),
    ]


@manner
def counts_in_sparse_tensors(tf: Any) -> Any:
    count = tf.sparse.bincount
    dense, weights = [[3, 2, 1, 7], [7, 0, 4, 4]], [[0.5, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]]
    few = tf.sparse.from_dense([[3, 0, 1, 0], [0, 0, 0, 0], [5, 0, 4, 4]])
    rows = tf.ragged.constant([[6, 1, 1], [], [3]])
    found = [
        count(dense), count(dense, axis=-1), count([3, 1, 1], axis=-1), count(3),
        count(dense, axis=-1, maxlength=5), count(dense, axis=-1, minlength=9),
        count(dense, minlength=3, maxlength=2), count(dense, binary_output=True, axis=None),
        count(dense, weights, axis=-1), count(dense, weights, maxlength=4),
        count(dense, [[1, 2, 3, 4], [5, 6, 7, 8]]), count(tf.constant(dense, tf.int64)),
        count(few), count(few, axis=-1), count(few, few, axis=-1),
        count(rows), count(rows, axis=-1), count(rows, tf.cast(rows, tf.float64), axis=-1),
        count(tf.zeros([0], tf.int64)), count(tf.sparse.from_dense([3, 0, 1, 1]), axis=-1),
    ]  # fmt: skip
    bad = (ValueError, tf.errors.InvalidArgumentError)
    calls = [
        lambda: count(dense, axis=1), lambda: count([-1]), lambda: count([1.5]),
        lambda: count(dense, weights[:1]), lambda: count(dense, weights, binary_output=True),
        lambda: count(dense, few), lambda: count(few, weights), lambda: count(rows, weights),
        lambda: count(rows, tf.ragged.constant([[6], [1, 1], [3]])),
        lambda: count([[[1]]], axis=-1), lambda: count(few, tf.sparse.from_dense([[1]])),
    ]  # fmt: skip
    parts = [(each.indices, each.values, each.dense_shape) for each in found]
    return [parts, [refused(call, *bad) for call in calls]]
