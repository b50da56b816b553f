"""Which calls of a function share a program."""

import collections
import types

import numpy as np
import pytest

import samegrad as tf


class Counter:
    """Counts the traces of a function and returns its arguments."""

    def __init__(self):
        self.traces = 0

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return args, kwargs


@pytest.fixture
def counter():
    return Counter()


def traces(counter, *calls):
    """How often the calls trace; each is (args, kwargs)."""
    function = tf.function(lambda *args, **kwargs: counter(*args, **kwargs) and None)
    for args, kwargs in calls:
        function(*args, **kwargs)
    return counter.traces


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (1, 1, 1),
        (1, 2, 2),
        (1, 1.0, 2),
        (1, True, 2),
        (None, 0, 2),
        ("a", "a", 1),
        (np.zeros(3), np.ones(3), 1),
        (np.zeros(3), np.zeros(3, "float32"), 2),
        (np.zeros(3), np.zeros((3, 1)), 2),
        (np.float32(1), np.float32(2), 1),
        (np.float32(1), 1.0, 2),
        ([1, 2], (1, 2), 2),
        ([1, 2], [1, [2]], 2),
        ((1, 2), Pair(1, 2), 2),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, 1),
        ({"a": 1}, {"b": 1}, 2),
        (types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 1}), 1),
    ],
)  # fmt: skip
def test_calls_share_a_program_if_only_numbers_in_tensors_differ(counter, first, second, count):
    assert traces(counter, ((first,), {}), ((second,), {})) == count


def test_an_unhashable_object_is_an_argument_of_its_own_even_where_memory_is_used_again(counter):
    class Unhashable:
        __hash__ = None

    calls = [((Unhashable(),), {}) for _ in range(3)]
    assert traces(counter, *calls, calls[0]) == 3
    function = tf.function(lambda thing: counter(thing) and None)
    for _ in range(3):  # each is gone before the next is made
        function(Unhashable())
    assert counter.traces == 6


def test_keywords_and_positions_are_different_arguments(counter):
    assert traces(counter, ((1,), {}), ((), {"a": 1}), ((), {"a": 1})) == 2


def test_any_number_of_examples_runs_the_same_program(counter):
    def batch(n):
        return tf.Tensor(np.arange(n, dtype="float32"), example_axis=0)

    function = tf.function(lambda x: counter(x) and tf.reduce_sum(x))
    assert [float(function(batch(n))) for n in (4, 3, 8)] == [6.0, 3.0, 28.0]
    assert counter.traces == 1


def test_a_program_that_looked_at_the_number_of_examples_is_traced_for_each():
    def batch(n):
        return tf.Tensor(np.ones(n, "float32"), example_axis=0)

    function = tf.function(lambda x: tf.constant(int(x.shape[0])))
    assert [int(function(batch(n))) for n in (4, 3, 4)] == [4, 3, 4]


def test_nested_results_keep_their_structure():
    @tf.function
    def function(x):
        return {"b": x + 1, "a": [Pair(x, 7), None, "text"]}

    result = function(np.float32(1))
    assert list(result) == ["b", "a"]
    assert float(result["b"]) == 2
    assert float(result["a"][0].a) == 1
    assert result["a"][0].b == 7
    assert result["a"][1:] == [None, "text"]


def test_a_result_never_shares_memory_with_an_argument():
    array = np.zeros(3, "float32")
    result = tf.function(lambda x: x)(array)
    array[:] = 1
    assert result.numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize("value", [2**62 + 1, -(2**53) - 1])
def test_an_int64_element_is_exact(value):
    assert int(tf.constant(value)) == value
