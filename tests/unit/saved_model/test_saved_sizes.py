"""Sizes that a saved function leaves open, and what it took for granted of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf


def loaded_of(tmp_path: Path, function: Any, *specs: Any) -> Any:
    module = tf.Module()
    module.f = tf.function(function, input_signature=list(specs))
    tf.saved_model.save(module, tmp_path / "m")
    return tf.saved_model.load(tmp_path / "m").f, module.f


def ones(*shape: int) -> Any:
    return tf.constant(np.arange(np.prod(shape), dtype=np.float32).reshape(shape))


OPEN = {
    "reshape": lambda x: tf.reshape(x, [tf.shape(x)[0], -1]),
    "transpose": lambda x: tf.transpose(x, [0, 2, 1]) @ x,
    "pad": lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 0]]),
    "slice": lambda x: x[:, 1::2, :-1],
    "concat": lambda x: tf.concat([x, x[:, :1]], axis=1),
    "tile": lambda x: tf.tile(x, [1, 2, 1]),
    "range": lambda x: x + tf.cast(tf.range(tf.shape(x)[1])[None, :, None], tf.float32),
    "size": lambda x: tf.reduce_sum(x) / tf.cast(tf.size(x), tf.float32),
    "batch": lambda x: tf.reshape(x, [-1, x.shape[2]]),
    "split": lambda x: tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1], 2, -1]),
    "batches joined": lambda x: tf.concat([x, x * 2], axis=0),
    "gather": lambda x: tf.gather(x, tf.range(tf.shape(x)[1]) // 2, axis=1),
    "python": lambda x: sum(x[:, 0] for _ in range(x.shape[2])),
}


@pytest.mark.parametrize("name", OPEN)
def test_an_open_size_stays_open(tmp_path: Path, name: str) -> None:
    loaded, original = loaded_of(tmp_path, OPEN[name], tf.TensorSpec([None, None, 4], tf.float32))
    for rows, length in ((2, 3), (1, 7), (5, 2)):
        x = ones(rows, length, 4)
        assert loaded(x).numpy().tobytes() == original(x).numpy().tobytes()


def test_a_size_of_two_arguments_is_one_size(tmp_path: Path) -> None:
    specs = [tf.TensorSpec([None, None]), tf.TensorSpec([None, None])]
    loaded, original = loaded_of(tmp_path, lambda x, y: x + y, *specs)
    x = ones(2, 5)
    assert loaded(x, x).numpy().tobytes() == original(x, x).numpy().tobytes()
    with pytest.raises(ValueError, match="saved for other lengths"):
        loaded(x, ones(2, 1))


def test_a_length_that_python_asked_for_is_named_with_its_line(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return x * 2.0 if x.shape[1] > 8 else x

    loaded, original = loaded_of(tmp_path, function, tf.TensorSpec([None, None]))
    assert loaded(ones(1, 40)).numpy().tobytes() == original(ones(1, 40)).numpy().tobytes()
    with pytest.raises(ValueError, match=r"other lengths, .*\(test_saved_sizes\.py:\d+\); save it"):
        loaded(ones(1, 3))


def test_a_count_of_examples_that_python_asked_for_is_refused(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: sum(x[i] for i in range(int(x.shape[0]))))
    data = tf.data.Dataset.from_tensor_slices(np.ones((3, 2), np.float32)).batch(3)
    module.f(next(iter(data)))
    with pytest.raises(ValueError, match=r"asks for the number of examples.*tf\.shape\(x\)\[0\]"):
        tf.saved_model.save(module, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_a_closed_size_is_checked(tmp_path: Path) -> None:
    loaded, _ = loaded_of(tmp_path, lambda x: x * 2.0, tf.TensorSpec([2, 3]))
    assert loaded(ones(2, 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="Could not find matching"):
        loaded(ones(3, 3))
    with pytest.raises(ValueError, match="Could not find matching"):
        loaded(tf.constant([[1, 2, 3], [4, 5, 6]]))


def test_a_function_is_called_inside_another_with_open_sizes(tmp_path: Path) -> None:
    spec = tf.TensorSpec([None, None, 4], tf.float32)
    loaded, original = loaded_of(tmp_path, OPEN["split"], spec)
    outer = tf.function(lambda x: loaded(x) * 2.0, input_signature=[spec])
    closed = tf.function(lambda: loaded(tf.ones([2, 3, 4])))
    for length in (2, 9):
        x = ones(3, length, 4)
        assert outer(x).numpy().tobytes() == (original(x) * 2.0).numpy().tobytes()
    assert closed().shape == (2, 3, 2, 2)


def test_a_dataset_batch_is_an_argument(tmp_path: Path) -> None:
    module = tf.Module()
    module.f = tf.function(lambda x: tf.reduce_mean(x, axis=0))
    data = tf.data.Dataset.from_tensor_slices(np.ones((5, 2), np.float32)).batch(3)
    for batch in data:
        module.f(batch)
    tf.saved_model.save(module, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    for batch in data:
        assert loaded.f(batch).numpy().tobytes() == module.f(batch).numpy().tobytes()
