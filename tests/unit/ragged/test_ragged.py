"""tf.ragged and tf.RaggedTensor: TensorFlow's answers, and what rows refuse."""

from __future__ import annotations

import json
import operator
import pathlib

import numpy as np
import pytest
from ragged_programs import LAYERS, PROGRAMS, SLOPES, answer, encoded, slope

import samegrad as tf
from samegrad import keras

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_ragged.json").read_text())


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_tensorflow(name):
    assert answer(tf, name) == RECORDED["results"][name]


def test_every_recorded_program_is_there():
    more = {f"slope of {name}" for name in SLOPES} | {" ".join(one) for one in LAYERS}
    assert set(RECORDED["results"]) == {*PROGRAMS, *more}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_are_those_of_tensorflow(name, traced):
    assert slope(tf, name, traced) == RECORDED["results"][f"slope of {name}"]


@pytest.mark.parametrize(("layer", "mode"), LAYERS)
def test_layers_of_keras_take_rows(layer, mode):
    assert encoded(tf, layer, mode) == RECORDED["results"][f"{layer} {mode}"]


def test_nothing_is_filled_up_unless_asked_for():
    rows, whole = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[1, 2], [3]])
    for function in (
        lambda: tf.sort(rows), lambda: tf.transpose(rows), lambda: np.asarray(rows),
        lambda: tf.convert_to_tensor(rows), lambda: tf.pad(rows, [[0, 0], [1, 1]]),
        lambda: tf.constant([rows, rows]), lambda: keras.ops.convert_to_numpy(whole),
        lambda: keras.layers.RepeatVector(2)(rows), lambda: keras.layers.Flatten()(whole),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, NotImplementedError), match="to_tensor"):
            function()
    for given in (rows, whole):
        with pytest.raises(ValueError, match="must be fully-defined"):
            keras.layers.Dense(2)(given)


def test_ops_and_layers_of_single_values_keep_ragged_rows():
    rows, whole = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[1, 2], [3]])
    assert keras.ops.convert_to_tensor(whole) is whole
    assert keras.ops.convert_to_tensor(whole, ragged=False).numpy().tolist() == [[1, 2], [3, 0]]
    assert int(keras.ops.sum(whole)) == 6
    assert keras.layers.Rescaling(2.0)(rows).to_list() == [[2.0, 4.0], [6.0]]
    assert keras.layers.Add()([rows, rows]).to_list() == [[2.0, 4.0], [6.0]]
    table = keras.layers.Embedding(5, 2)
    assert table(whole).to_list() == [table(row).numpy().tolist() for row in whole]
    inner = [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]
    inner = tf.ragged.constant(inner, inner_shape=(2,))
    dense = keras.layers.Dense(3)
    assert dense(inner).to_list() == [dense(row).numpy().tolist() for row in inner]


@pytest.mark.parametrize("dense", [2.0, [[1.0], [2.0]]])
@pytest.mark.parametrize("symbol", ["add", "sub", "mul", "truediv", "pow", "lt", "ge", "eq"])
def test_operators_of_dense_and_ragged_operands_are_those_of_ragged_ones(symbol, dense):
    rows, function = tf.ragged.constant([[1.0, 2.0], [3.0]]), getattr(operator, symbol)
    whole = rows * 0 + tf.constant(dense)
    expected = function(whole, rows).to_list()
    assert function(tf.constant(dense), rows).to_list() == expected
    assert function(tf.Variable(dense), rows).to_list() == expected


def test_branches_and_loops_carry_ragged_tensors_of_the_same_rows():
    rows, others = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[1.0], [2.0, 3.0]])

    @tf.function
    def chosen(n):
        made = rows
        if n > 0:
            made = made * 2.0
        for _ in tf.range(n):
            made += 1.0
        return tf.reduce_sum(made, axis=1)

    assert chosen(tf.constant(3)).numpy().tolist() == [12.0, 9.0]
    assert chosen(tf.constant(0)).numpy().tolist() == [3.0, 3.0]
    with pytest.raises(ValueError, match=r"\[cond\] the result must have the same structure"):
        tf.function(lambda n: tf.reduce_sum(tf.cond(n > 0, lambda: rows, lambda: others)))(
            tf.constant(1)
        )


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tf.ragged.constant([[[1], [2, 3]]]), NotImplementedError, "one axis has diff"),
        (lambda: tf.ragged.constant([[[1]], [[2, 3]]]), NotImplementedError, "fill inner lists"),
        (lambda: tf.ragged.constant([[1]], ragged_rank=2), NotImplementedError, "ragged_rank=2"),
        (lambda: tf.ragged.constant(5), ValueError, "must be a list of lists: got 5"),
        (
            lambda: tf.ragged.constant([[[1, 2]]], inner_shape=()),
            NotImplementedError,
            r"got inner_shape=\(\) for values of shape \(2,\)",
        ),
        (lambda: tf.ragged.constant([[1]])[None], NotImplementedError, "no new axes: got None"),
        (lambda: tf.ragged.constant([[1]])[True], TypeError, "got bool True"),
        (lambda: tf.ragged.constant([[1]])[0, 0, 0], IndexError, "each of 2 axes"),
        (lambda: tf.ragged.constant([[1, 2]])[:, 0], ValueError, "rows differ in length"),
        (lambda: tf.ragged.range(0.0, np.inf), ValueError, "numbers must be finite"),
        (lambda: tf.ragged.range(np.int8([2])), TypeError, "got int32, int8, int32"),
        (
            lambda: tf.ragged.constant([[1]]).to_tensor([1, 2]),
            ValueError,
            r"shape of a value, \(\): got shape \(2,\)",
        ),
        (lambda: tf.ragged.stack([]), ValueError, r"at least one: got \[\]"),
        (lambda: tf.ragged.stack([[1]], axis=1), NotImplementedError, "axis must be 0: got 1"),
        (lambda: tf.ragged.stack([[1], ["a"]]), ValueError, "one dtype: got"),
        (lambda: tf.ragged.range([1, 2], [3, 4, 5]), ValueError, r"got shapes \(2,\), \(3,\)"),
        (lambda: tf.RaggedTensor.from_row_splits([1], [0.0, 1.0]), ValueError, "integers"),
        (lambda: tf.RaggedTensor.from_row_splits(1, [0, 1]), ValueError, "values must be a list"),
        (lambda: tf.RaggedTensor.from_tensor([1]), ValueError, r"a matrix, .* got shape \(1,\)"),
        (lambda: tf.ragged.constant([[1]])[5], IndexError, r"must lie in \[-1, 1\): got 5"),
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


def test_row_lengths_that_follow_from_an_argument_fall_back_to_python_outside_run():
    def rows_of(x):
        return tf.RaggedTensor.from_row_lengths([1, 2, 3], x).to_tensor()

    assert tf.function(rows_of)(tf.constant([1, 2])).numpy().tolist() == [[1, 0], [2, 3]]
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(TypeError, match="lengths of rows are not part of a traced function"):
        two.run(rows_of, args=(tf.constant([1, 2]),))


def test_rows_of_two_values_are_no_pairs():
    """Values [2, 2] beside [2, 1]: a number for each row is none for each part of a value."""
    pairs = tf.RaggedTensor.from_row_lengths([[0, 1], [2, 3]], [1, 1])
    with pytest.raises(ValueError, match="rows of the same"):
        pairs * [[10], [20]]
    with pytest.raises(ValueError, match="same lengths and axes"):
        pairs + tf.ragged.constant([[10], [20]])


def test_functions_neither_take_nor_return_rows():
    rows = tf.ragged.constant([[1.0], [2.0, 3.0]])
    with pytest.raises(TypeError, match=r"no arguments of a traced function: .* to_tensor\(\)"):
        tf.function(lambda x: x["rows"].flat_values)({"rows": rows})
    for make in (
        lambda x: rows, lambda x: (x, tf.RaggedTensor.from_row_lengths(x * 2, [1, 2])),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="no results of a traced function: got <samegrad.Ragg"):
            tf.function(make)(tf.ones(3))

    @tf.function
    def inside(x):
        return (tf.RaggedTensor.from_row_lengths(x, [1, 2]) * 2).to_tensor()

    np.testing.assert_array_equal(inside(tf.ones(3)), [[2, 0], [2, 2]])
