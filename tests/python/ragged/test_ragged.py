"""tf.ragged and tf.RaggedTensor: TensorFlow's answers, and what rows refuse."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from ragged_programs import PROGRAMS, answer

import samegrad as tf

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_ragged.json").read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_tensorflow(name):
    assert answer(tf, name) == RECORDED["results"][name]


def test_every_recorded_program_is_there():
    assert set(RECORDED["results"]) == set(PROGRAMS)


def test_nothing_is_filled_up_unless_asked_for():
    rows = tf.ragged.constant([[1.0, 2.0], [3.0]])
    for function in (
        lambda: tf.reduce_mean(rows, axis=1), lambda: tf.add(rows, 1.0), lambda: np.asarray(rows),
        lambda: tf.convert_to_tensor(rows), lambda: tf.concat([rows, rows], 0),
        lambda: tf.keras.layers.Dense(2)(rows), lambda: tf.constant([rows, rows]),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match="to_tensor"):
            function()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tf.ragged.constant([[[1], [2, 3]]]), NotImplementedError, "one axis has diff"),
        (lambda: tf.ragged.constant([[[1]], [[2, 3]]]), NotImplementedError, "fill inner lists"),
        (lambda: tf.ragged.constant([[1]], ragged_rank=2), NotImplementedError, "ragged_rank=2"),
        (lambda: tf.ragged.constant(5), ValueError, "must be a list of lists: got 5"),
        (lambda: tf.ragged.stack([]), ValueError, r"at least one: got \[\]"),
        (lambda: tf.ragged.stack([[1]], axis=1), NotImplementedError, "axis must be 0: got 1"),
        (lambda: tf.ragged.stack([[1], ["a"]]), ValueError, "one dtype: got"),
        (lambda: tf.ragged.range([1, 2], [3, 4, 5]), ValueError, r"got shapes \(2,\), \(3,\)"),
        (lambda: tf.RaggedTensor.from_row_splits([1], [0.0, 1.0]), ValueError, "whole numbers"),
        (lambda: tf.RaggedTensor.from_row_splits(1, [0, 1]), ValueError, "values must be a list"),
        (lambda: tf.RaggedTensor.from_tensor([1]), ValueError, r"a matrix, .* got shape \(1,\)"),
        (lambda: tf.ragged.constant([[1]])[5], IndexError, "out of range"),
        (
            lambda: tf.ragged.constant([[1]]) + np.array([1, 2]),
            ValueError,
            r"rows of the same lengths",
        ),
    ],
)
def test_wrong_calls_are_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_many_rows():
    lengths = np.random.default_rng(0).integers(0, 5, 20000)
    values = np.arange(lengths.sum())
    rows = tf.RaggedTensor.from_row_lengths(values, lengths)
    assert len(rows) == 20000 and rows.ragged_rank == 1 and rows.shape == [20000, None]
    np.testing.assert_array_equal((rows * 2).flat_values, values * 2)
    again = tf.RaggedTensor.from_tensor(rows.to_tensor(-1), padding=-1)
    np.testing.assert_array_equal(again.row_lengths(), lengths)
    np.testing.assert_array_equal(
        rows[5000:, :1].flat_values, [r[0] for r in rows[5000:] if len(r)]
    )


def test_gradients_go_through_the_values():
    weight = tf.Variable(2.0)
    rows = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((rows * weight).flat_values)
    assert float(tape.gradient(loss, weight)) == 6.0


def test_rows_as_elements_of_a_dataset():
    rows = tf.ragged.constant([[3, 1, 4], [], [5]])
    data = tf.data.Dataset.from_tensor_slices({"x": rows, "n": [0, 1, 2]})
    assert len(data) == 3 and data.element_spec["x"].shape == [None]
    padded = next(iter(data.padded_batch(3, padded_shapes={"x": [None], "n": []})))
    np.testing.assert_array_equal(padded["x"], [[3, 1, 4], [0, 0, 0], [5, 0, 0]])
    taken = [element["x"].numpy().tolist() for element in data.skip(1).repeat(2)]
    assert taken == [[], [5]] * 2
    first = [int(e["n"]) for e in data.shuffle(3, seed=1)]
    assert sorted(first) == [0, 1, 2] and first == [int(e["n"]) for e in data.shuffle(3, seed=1)]
    with pytest.raises(ValueError, match="padded_batch"):
        next(iter(data.batch(2)))
    with pytest.raises(ValueError, match="same length"):
        tf.data.Dataset.from_tensor_slices((rows, [1, 2]))


def test_numbers_beside_a_tensor_take_its_dtype():
    made = tf.convert_to_tensor([tf.constant(1, tf.int64), 2])
    assert made.dtype == tf.int64 and made.numpy().tolist() == [1, 2]
    assert tf.convert_to_tensor([3, tf.constant(1.5, tf.float64)]).dtype == tf.float64
