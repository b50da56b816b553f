"""Functions return tensors, whatever values of Python they compute: as TensorFlow's."""

import collections
from typing import Any

import numpy as np
import pytest

import samegrad as tf

Pair = collections.namedtuple("Pair", "a b")
VALUES: dict[str, tuple[Any, str, Any]] = {
    "int": (3, "int32", 3),
    "large": (2**40, "int64", 2**40),
    "float": (2.5, "float32", 2.5),
    "bool": (True, "bool", True),
    "str": ("abc", "string", b"abc"),
    "bytes": (b"abc", "string", b"abc"),
    "array": (np.arange(3), "int64", [0, 1, 2]),
    "scalar": (np.float64(2.0), "float64", 2.0),
    "complex": (1 + 2j, "complex128", 1 + 2j),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_of_python_is_returned_as_a_tensor(name: str) -> None:
    value, dtype, want = VALUES[name]

    @tf.function
    def f(x: tf.Tensor) -> Any:
        return value, {"k": [value, x]}, Pair(None, value)

    first, nested, pair = f(tf.constant(1.0))
    for found in (first, nested["k"][0], pair.b):
        assert found.dtype.name == dtype
        assert np.asarray(found.numpy()).tolist() == want
    assert pair.a is None and float(nested["k"][1]) == 1.0


def test_shapes_are_returned_as_vectors() -> None:
    shape = tf.function(lambda x: x.shape)
    assert shape(tf.ones([4, 2])).numpy().tolist() == [4, 2]
    assert shape(tf.constant(1.0)).numpy().shape == (0,)


def test_none_and_empty_structures_stay_what_they_are() -> None:
    assert tf.function(lambda: None)() is None
    assert tf.function(lambda: ([], {}, ()))() == ([], {}, ())


def test_a_function_in_a_function_and_one_that_reads_data_return_tensors() -> None:
    inner = tf.function(lambda: 3)
    assert tf.function(lambda: inner() + 1)().numpy() == 4

    @tf.function
    def count(dataset: tf.data.Dataset) -> Any:
        n = 0
        for _ in dataset:
            n += 1
        return n, "end"

    n, text = count(tf.data.Dataset.range(3))
    assert n.numpy() == 3 and text.numpy() == b"end"


def test_what_run_returns_is_left_alone() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    assert strategy.run(lambda: 3) == 3
