"""Functions of ragged tensors: TensorFlow's answers, and what is refused."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
from ragged_calls import CALLS, REFUSED, SLOPES, answer, slope, tensors

import samegrad as tf
from samegrad.ragged._rules import RULES

RECORDED = json.loads(pathlib.Path(__file__).with_name("tensorflow_ragged_calls.json").read_text())


def assert_same(found, expected):
    """Floats to the last bits but one, all else as it is."""
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), (found, expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=2e-6, nan_ok=True)
    else:
        assert found == expected


@pytest.mark.parametrize("call", CALLS)
def test_results_are_those_of_tensorflow(call):
    assert_same(answer(tf, call), RECORDED["results"][call])


def test_every_recorded_call_is_there():
    assert set(RECORDED["results"]) == {*CALLS, *(f"slope of {call}" for call in SLOPES)}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("call", SLOPES)
def test_derivatives_are_those_of_tensorflow(call, traced):
    expected = RECORDED["results"][f"slope of {call}"]
    np.testing.assert_allclose(slope(tf, call, traced), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("call", REFUSED)
def test_a_second_axis_of_different_sizes_is_refused(call):
    with pytest.raises(NotImplementedError, match=r"^\[[a-z_.]+\] one axis has different sizes.*;"):
        eval(call, tensors(tf))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("tf.add(r, q)", r"\[add\] rows .* the lengths \[3, 0, 2\] and \[2, 2\]"),
        ("tf.add(r, [[1], [2]])", r"\[add\] beside 3 rows .* \[rows, 1\].* got shape \(2, 1\)"),
        ("tf.concat([r, q], 1)", r"\[concat\] .* got \[3, 2\], of the lengths \[3, 0, 2\] and"),
        ("tf.concat([r, [1]], 0)", r"\[concat\] .* as many axes: got shapes \(3, None\) and \(1,"),
        ("tf.concat([r, r], 2)", r"\[concat\] axis must lie in \[-2, 2\): got 2"),
        ("tf.tile(r, [2])", r"\[tile\] multiples must be 2 integers.* got \[2\]"),
        ("tf.gather(r, [3])", r"\[gather\] the index of a row must lie in \[0, 3\): got 3"),
        ("tf.gather(r, [0], axis=1)", r"an index in each row must lie in \[0, 0\): got 0"),
        ("tf.gather(r, [[0], [0], [2]], batch_dims=1)", r"in its row must lie in \[0, 0\)"),
        ("tf.gather_nd(r, [[0, 3]])", r"\[gather_nd\] an index in its row .* \[0, 3\): got 3"),
        ("tf.gather(r, [0.5])", "indices must be integers: got float32"),
        ("tf.squeeze(r, 1)", r"must have size 1: got axis=\[1\] for 3 rows of the lengths \[3, 0"),
        ("tf.split(r, [1, 1])", r"must add up to the number of rows, 3: got \[1, 1\]"),
        (
            "tf.split(r, 3, axis=1)",
            r"ragged axis cannot be split: got axis=1 for shape \(3, None\)",
        ),
        ("tf.map_fn(lambda x: x, (r, q))", r"as many rows: got \[3, 2\]"),
        ("tf.map_fn(lambda x: x, r, tf.int32)", "must have one shape.* leave it out"),
        ("tf.map_fn(lambda x: x, r, tf.float32)", "must be float32.*: got int32"),
        ("tf.map_fn(5, r)", r"\[map_fn\] fn must be a function: got 5"),
        ("tf.ragged.boolean_mask(r, q > 2)", r"lengths \[3, 0, 2\] and \[2, 2\]"),
        ("tf.nn.dropout(f, 0.5, noise_shape=[3, 1])", "noise_shape is for tensors of one length"),
        ("tf.clip_by_value([1, 2], r, 3)", r"\[clip_by_value\] t may be ragged, other arguments"),
        ("tf.cast(r, tf.complex64)", "real numbers or strings: got samegrad.complex64"),
        ("tf.strings.join(w)", r"join\] a list of operands is needed: got one"),
        ("tf.sort(r)", r"\[sort\] a dense tensor is needed.* to_tensor\(\)"),
        ("tf.RaggedTensorSpec([2, None, None])", r"and ragged_rank=2; pass ragged_rank=1"),
        ("tf.RaggedTensorSpec()", r"ragged_rank must be known: got shape=None"),
    ],
)
def test_wrong_calls_say_who_what_and_the_remedy(call, said):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=said) as caught:
        eval(call, tensors(tf))
    assert str(caught.value).startswith("[")


@pytest.mark.parametrize("count", [0, 1, 200])
def test_any_number_of_rows(count):
    random = np.random.default_rng(count)
    lengths = random.integers(0, 7, count)
    values = random.integers(-50, 50, lengths.sum()).astype(np.int32)
    rows = tf.RaggedTensor.from_row_lengths(values, lengths)
    lists = rows.to_list()
    ends = tf.fill([count, 1], -99)
    joined = tf.concat([ends, rows, rows * 2, ends], axis=1).to_list()
    assert joined == [[-99, *row, *(2 * x for x in row), -99] for row in lists]
    assert tf.reduce_sum(rows, 1).numpy().tolist() == [sum(row) for row in lists]
    width = max(map(len, lists), default=0)
    columns = [[row[i] for row in lists if i < len(row)] for i in range(width)]
    assert tf.reduce_max(rows, 0).numpy().tolist() == [max(column) for column in columns]
    chosen = random.permutation(count)
    assert tf.gather(rows, chosen).to_list() == [lists[place] for place in chosen]
    assert tf.tile(rows, [2, 3]).to_list() == [row * 3 for row in lists] * 2
    assert tf.reverse(rows, [0, 1]).to_list() == [row[::-1] for row in lists[::-1]]
    mask = tf.ragged.boolean_mask(rows, rows > 0)
    assert mask.to_list() == [[x for x in row if x > 0] for row in lists]
    assert tf.where(rows > 0).shape == [sum(x > 0 for row in lists for x in row), 2]
    running = tf.cumsum(rows, axis=1, exclusive=True).to_list()
    assert running == [[sum(row[:i]) for i in range(len(row))] for row in lists]


def test_every_rule_is_one_of_a_public_function():
    for path in RULES:
        function = tf
        for part in path.split("."):
            function = getattr(function, part) if part != "dtypes" else function
        assert f"{function.__module__}.{function.__name__}" == f"samegrad.{path}"


def test_rows_made_outside_are_constants_of_a_traced_function():
    rows = tf.ragged.constant([[3.0, 1.0, 4.0], [], [5.0, 9.0]])

    @tf.function
    def scaled(x, column):
        return tf.reduce_sum(tf.concat([column, tf.multiply(rows, x)], 1), 1)

    for number in (2.0, 3.0):
        found = scaled(tf.constant(number), tf.ones([3, 1]))
        np.testing.assert_array_equal(found, [1 + 8 * number, 1, 1 + 14 * number])

    @tf.function(input_signature=[tf.TensorSpec([None, 1])])
    def of_any_number(column):
        return tf.concat([rows, column], 1).to_tensor()

    assert of_any_number(tf.ones([3, 1]))[2].numpy().tolist() == [5.0, 9.0, 1.0, 0.0]

    @tf.function
    def some(places):
        return tf.gather(rows, places).to_tensor()

    assert some(tf.constant([0, 2])).numpy().tolist() == [[3.0, 1.0, 4.0], [5.0, 9.0, 0.0]]


def test_texts_become_padded_rows_in_a_dataset():
    def prepared(lines):
        words = tf.strings.split(tf.strings.lower(lines))
        ids = tf.cast(tf.strings.to_hash_bucket_fast(words, 100), tf.int32)
        count = ids.nrows()
        ids = tf.concat([tf.fill([count, 1], 101), ids, tf.fill([count, 1], 102)], axis=1)
        return ids.to_tensor(), tf.reduce_sum(tf.ones_like(ids), axis=1)

    data = tf.data.Dataset.from_tensor_slices(["Hello big world", "", "a b"]).batch(2).map(prepared)
    (first, lengths), (last, _) = data
    assert lengths.numpy().tolist() == [5, 2]
    assert first.shape == (2, 5) and first.numpy()[1].tolist() == [101, 102, 0, 0, 0]
    assert last.numpy()[0][[0, -1]].tolist() == [101, 102]


def test_a_function_of_no_rows_is_not_called():
    def never(row):
        raise AssertionError

    rows = tf.RaggedTensor.from_row_splits(np.zeros(0, np.float32), [0])
    assert tf.map_fn(never, rows, fn_output_signature=tf.TensorSpec([2], tf.int32)).shape == (0, 2)
    found = tf.map_fn(never, rows, fn_output_signature=tf.RaggedTensorSpec([None, 3], tf.int32, 0))
    assert found.shape == (0, None, 3) and found.dtype == tf.int32
