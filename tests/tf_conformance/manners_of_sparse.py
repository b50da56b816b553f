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
