"""Datasets raise InvalidArgumentError, a ValueError, where TensorFlow 2.21 does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf

D = tf.data.Dataset
CASES: dict[str, Callable[[], Any]] = {
    "batch": lambda: D.range(3).batch(0),
    "batch, negative": lambda: D.range(3).batch(-1),
    "ragged_batch": lambda: D.range(3).ragged_batch(0),
    "padded_batch": lambda: D.range(3).padded_batch(0),
    "shuffle": lambda: D.range(3).shuffle(0),
    "window size": lambda: D.range(3).window(0),
    "window shift": lambda: D.range(3).window(2, shift=0),
    "window stride": lambda: D.range(3).window(2, stride=0),
    "no shards": lambda: D.range(3).shard(0, 0),
    "shard": lambda: D.range(3).shard(3, 5),
    "shard, negative": lambda: D.range(3).shard(3, -1),
    "prefetch": lambda: D.range(3).prefetch(-5),
    "cycle_length": lambda: D.range(3).interleave(lambda x: D.range(2), cycle_length=0),
    "block_length": lambda: D.range(3).interleave(lambda x: D.range(2), block_length=0),
    "interleave's calls": lambda: D.range(3).interleave(
        lambda x: D.range(2), cycle_length=1, num_parallel_calls=0
    ),
    "map's calls": lambda: D.range(3).map(lambda x: x, num_parallel_calls=0),
    "map's calls, negative": lambda: D.range(3).map(lambda x: x, num_parallel_calls=-3),
    "shapes in a batch": lambda: D.from_generator(
        lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int32)
    ).batch(2),
    "shape of a generator": lambda: D.from_generator(
        lambda: iter([[1]]), output_signature=tf.TensorSpec([2], tf.int32)
    ),
    "dtype of a generator": lambda: D.from_generator(
        lambda: iter(["a"]), output_signature=tf.TensorSpec([], tf.int32)
    ),
    "range": lambda: D.range(0, 3, 0),
    "window_size": lambda: D.range(3).group_by_window(
        key_func=lambda x: x % 2, reduce_func=lambda key, rows: rows.batch(2), window_size=0
    ),
    "choice": lambda: D.choose_from_datasets([D.range(3)], D.range(3)),
    "single element": lambda: D.range(3).get_single_element(),
}


@pytest.mark.parametrize("name", CASES)
def test_a_dataset_raises_invalid_argument_error(name: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(CASES[name]())


NO_BOOLS: dict[str, Callable[[Any], Any]] = {
    "integer": lambda x: x,
    "float": lambda x: tf.cast(x, tf.float32),
    "Python's integer": lambda x: 1,
    "None": lambda x: None,
    "string": lambda x: "a",
    "list": lambda x: [x > 1, x > 2],
    "tuple": lambda x: (x > 1,),
    "dict": lambda x: {"a": x > 1},
    "vector": lambda x: tf.constant([True]),
    "array": lambda x: np.array([True]),
}
BOOLS: dict[str, Callable[[Any], Any]] = {
    "comparison": lambda x: x < 2,
    "Python's bool": lambda x: True,
    "NumPy's bool": lambda x: np.bool_(True),
    "array": lambda x: np.array(True),
    "variable": lambda x: tf.Variable(True),
    "reduce_all": lambda x: tf.reduce_all([x < 2, x < 3]),
}


@pytest.mark.parametrize("predicate", NO_BOOLS)
@pytest.mark.parametrize("method", ["filter", "take_while"])
def test_predicate_that_returns_no_bool_is_a_value_error(method: str, predicate: str) -> None:
    with pytest.raises(ValueError, match=rf"\[Dataset.{method}\] predicate must return one bool"):
        list(getattr(D.range(2), method)(NO_BOOLS[predicate]))


@pytest.mark.parametrize("predicate", BOOLS)
@pytest.mark.parametrize("method", ["filter", "take_while"])
def test_predicate_that_returns_a_bool_chooses_elements(method: str, predicate: str) -> None:
    assert [int(n) for n in getattr(D.range(2), method)(BOOLS[predicate])] == [0, 1]


@pytest.mark.parametrize("choice", [0.5, True, "a", [0]])
def test_choice_that_is_no_integer_is_a_type_error(choice: Any) -> None:
    choices = D.from_tensors(choice).repeat(2)
    with pytest.raises(TypeError, match="an element of choice_dataset must be one integer"):
        D.choose_from_datasets([D.range(2), D.range(2)], choices)
