"""Shapes as tensors are integers, also those of scalars, which have no sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf

S, V = tf.constant(3.0), tf.constant([1.0, 2.0])
INTEGERS: dict[str, Callable[[], Any]] = {
    "convert": lambda: tf.convert_to_tensor(S.shape),
    "constant": lambda: tf.constant(S.shape),
    "hint": lambda: tf.convert_to_tensor(S.shape, dtype_hint=tf.float32),
    "new": lambda: tf.convert_to_tensor(tf.TensorShape([])),
    "shape": lambda: tf.shape(S),
    "shape_n": lambda: tf.shape_n([S, V])[0],
    "concat": lambda: tf.concat([S.shape, [3]], 0),
    "concat of none": lambda: tf.concat([S.shape, S.shape], 0),
    "slice": lambda: tf.convert_to_tensor(V.shape[1:]),
    "sum of shapes": lambda: tf.convert_to_tensor(S.shape + S.shape),
    "reduce_prod": lambda: tf.reduce_prod(S.shape),
    "reduce_sum": lambda: tf.reduce_sum(S.shape),
    "size": lambda: tf.size(S.shape),
    "identity": lambda: tf.identity(S.shape),
    "stack": lambda: tf.stack([S.shape, S.shape]),
    "add": lambda: tf.add(S.shape, 1),
    "expand_dims": lambda: tf.expand_dims(S.shape, 0),
    "sort": lambda: tf.sort(S.shape),
    "where": lambda: tf.where(True, S.shape, S.shape),
    "variable": lambda: tf.Variable(S.shape).read_value(),
    "in a function": lambda: tf.function(lambda x: tf.convert_to_tensor(x.shape) * 2)(S),
    "in map": lambda: next(
        iter(tf.data.Dataset.range(2).map(lambda x: tf.convert_to_tensor(x.shape)))
    ),
}
FLOATS: dict[str, Callable[[], Any]] = {
    "reshape": lambda: tf.reshape(V[:1], S.shape),
    "reshape by a tensor": lambda: tf.reshape(V[:1], tf.convert_to_tensor(S.shape)),
    "broadcast_to": lambda: tf.broadcast_to(S, S.shape),
    "zeros": lambda: tf.zeros(S.shape),
    "fill": lambda: tf.fill(S.shape, 2.0),
    "tile": lambda: tf.tile(S, S.shape),
    "transpose": lambda: tf.transpose(S, S.shape),
    "normal": lambda: tf.random.normal(S.shape),
    "ensure_shape": lambda: tf.ensure_shape(S, S.shape),
    "slice": lambda: tf.slice(S, S.shape, S.shape),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_a_shape_becomes_integers(name: str) -> None:
    found = INTEGERS[name]()
    assert np.asarray(found).dtype == np.int32


@pytest.mark.parametrize("name", FLOATS)
def test_the_shape_of_a_scalar_is_taken_as_one(name: str) -> None:
    assert FLOATS[name]().shape == ()


def test_a_shape_takes_the_dtype_that_is_asked_for() -> None:
    assert tf.convert_to_tensor(S.shape, tf.int64).dtype == tf.int64
    assert tf.cast(S.shape, tf.int64).dtype == tf.int64
    assert tf.constant([]).dtype == tf.float32


def test_shape_in_a_dataset_is_one_vector():
    shape, vector = tf.TensorShape([2, 3]), tf.TensorSpec([2], tf.int32)
    data = tf.data.Dataset
    assert data.from_tensors(shape).element_spec == vector
    assert data.from_tensors({"a": (shape, 1)}).element_spec["a"][0] == vector
    assert [int(n) for n in data.from_tensor_slices(shape)] == [2, 3]
    made = data.range(1).map(lambda x: (tf.TensorShape([2, 3]), x))
    assert made.element_spec[0] == vector
    assert [each.numpy().tolist() for each, _ in made] == [[2, 3]]
    with pytest.raises(TypeError, match="None"):
        data.from_tensors(tf.TensorShape([None, 2]))


def test_shape_is_a_leaf_of_nested_structures():
    shape = tf.TensorShape([2, 3])
    (leaf,) = tf.nest.flatten({"a": shape})
    assert leaf is shape
    assert tf.nest.map_structure(len, [shape, shape]) == [2, 2]
    assert not tf.nest.is_nested(shape)


BROADCAST = [
    ([2, 1], [3], [2, 3]),
    ([], [3], [3]),
    ([5, 1, 4], [3, 1], [5, 3, 4]),
    ([None, 1], [3], [None, 3]),
    ([None, 2], [1, 2], [None, 2]),
    ([2, None], [None], [2, None]),
    ([2, None], [4], [2, 4]),
    (None, [1], None),
]


@pytest.mark.parametrize(("x", "y", "expected"), BROADCAST)
def test_broadcast_static_shape_is_that_of_tensorflow(x, y, expected):
    shapes = tf.TensorShape(x), tf.TensorShape(y)
    for pair in (shapes, shapes[::-1]):
        found = tf.broadcast_static_shape(*pair)
        assert found.rank == (None if expected is None else len(expected))
        assert expected is None or found.as_list() == expected


def test_broadcast_static_shape_refuses_other_sizes():
    with pytest.raises(ValueError, match=r"must be equal or 1: got 3 and 2 of shapes \(2, 3\)"):
        tf.broadcast_static_shape(tf.TensorShape([2, 3]), tf.TensorShape([2]))
