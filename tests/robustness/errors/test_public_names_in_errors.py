"""Errors of functions that are made of several operations: they have the public name."""

import pytest

import samegrad as tf

FAR = [[5]]


def slices():
    return tf.IndexedSlices(tf.constant([1.0]), tf.constant([5]))


def variable():
    return tf.Variable(tf.zeros([3]))


CALLS = {
    "scatter_nd": lambda: tf.scatter_nd(FAR, [1.0], [3]),
    "tensor_scatter_nd_add": lambda: tf.tensor_scatter_nd_add(tf.zeros([3]), FAR, [1.0]),
    "tensor_scatter_nd_sub": lambda: tf.tensor_scatter_nd_sub(tf.zeros([3]), FAR, [1.0]),
    "tensor_scatter_nd_update": lambda: tf.tensor_scatter_nd_update(tf.zeros([3]), FAR, [1.0]),
    "tensor_scatter_nd_max": lambda: tf.tensor_scatter_nd_max(tf.zeros([3]), FAR, [1.0]),
    "tensor_scatter_nd_min": lambda: tf.tensor_scatter_nd_min(tf.zeros([3]), FAR, [1.0]),
    "gather_nd": lambda: tf.gather_nd(tf.zeros([3]), FAR),
    "embedding_lookup": lambda: tf.nn.embedding_lookup(tf.ones([3, 2]), [5]),
    "Variable.scatter_add": lambda: variable().scatter_add(slices()),
    "Variable.scatter_sub": lambda: variable().scatter_sub(slices()),
    "Variable.scatter_mul": lambda: variable().scatter_mul(slices()),
    "Variable.scatter_update": lambda: variable().scatter_update(slices()),
    "Variable.scatter_nd_add": lambda: variable().scatter_nd_add(FAR, [1.0]),
    "Variable.scatter_nd_update": lambda: variable().scatter_nd_update(FAR, [1.0]),
    "Variable.gather_nd": lambda: variable().gather_nd(FAR),
    "Variable.sparse_read": lambda: variable().sparse_read([5]),
    "unsorted_segment_sum": lambda: tf.math.unsorted_segment_sum([1.0], [5], 3),
    "unsorted_segment_mean": lambda: tf.math.unsorted_segment_mean([1.0], [5], 3),
    "unsorted_segment_max": lambda: tf.math.unsorted_segment_max([1.0, 2.0], [0], 3),
    "confusion_matrix": lambda: tf.math.confusion_matrix([5], [1], 3),
    "bincount": lambda: tf.math.bincount([-1, 2]),
    "stack": lambda: tf.stack([tf.ones([2]), tf.ones([3])]),
    "unstack": lambda: tf.unstack([1, 2, 3], num=2),
    "split": lambda: tf.split(tf.ones([5]), 2),
    "multiply": lambda: tf.multiply(tf.ones([2]), tf.ones([3])),
    "matvec": lambda: tf.linalg.matvec(tf.ones([2, 2]), tf.ones([3])),
    "moments": lambda: tf.nn.moments(tf.ones([2, 2]), [3]),
}
RULES = {
    "bincount": r"0 or more: got -1 at position \(0,\)",
    "stack": r"one shape: got \(2,\) and \(3,\)",
    "unstack": r"num must be 3.*got 2",
    "split": r"must divide axis 0 of size 5: got 2",
    "gather_nd": r"\[0, 3\): got 5 at position \(0, 0\)",
    "unsorted_segment_max": r"got \(2,\) and \(1,\)",
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_has_the_name_of_the_public_function(name):
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        CALLS[name]()
    assert str(raised.value).startswith(f"[{name}] ")


@pytest.mark.parametrize("name", RULES)
def test_an_error_has_the_values_that_the_user_gave(name):
    with pytest.raises(tf.errors.InvalidArgumentError, match=RULES[name]):
        CALLS[name]()


def test_an_operator_has_the_name_of_its_operation():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^\[mul\] shapes \(2,\) and \(3,\)"):
        tf.ones([2]) * tf.ones([3])


def test_a_check_of_numbers_names_the_operation_inside():
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.NonFiniteError, match=r"^\[div\]"):
            tf.math.truediv(1.0, 0.0)
    finally:
        tf.debugging.disable_check_numerics()
