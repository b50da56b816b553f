"""SqlDataset, sparse_batch, tuples as tensors and decorators, as TensorFlow 2.21 has them."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

import samegrad as tf

Sql = tf.data.experimental.SqlDataset


@pytest.fixture
def base(tmp_path):
    path = str(tmp_path / "a #?.db")
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE t (name TEXT, n INTEGER, x REAL, flag INTEGER)")
        rows = [("a", 1, 0.5, 1), ("ä", -2, 1.5, 0), ("", 2**40, -3.0, 1)]
        made.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        made.execute("CREATE TABLE gap (n INTEGER)")
        made.execute("INSERT INTO gap VALUES (NULL)")
    return path


def test_rows_have_their_types(base):
    kinds = (tf.string, tf.int64, tf.float64, tf.bool)
    data = Sql("sqlite", base, "SELECT * FROM t ORDER BY x", kinds)
    assert [spec.dtype for spec in data.element_spec] == list(kinds)
    for _ in range(2):
        assert [tuple(part.numpy() for part in row) for row in data] == [
            (b"", 2**40, -3.0, True), (b"a", 1, 0.5, True), ("ä".encode(), -2, 1.5, False),
        ]  # fmt: skip
    name, n = next(iter(data.map(lambda name, n, x, flag: (name, n + 1)).batch(2)))
    assert n.numpy().tolist() == [2**40 + 1, 2] and name.shape == (2,)
    assert [int(n) for (n,) in Sql("sqlite", base, "SELECT n FROM t LIMIT 0", (tf.int32,))] == []
    (text,) = next(iter(Sql("sqlite", base, "SELECT n FROM t", (tf.string,))))
    assert text.numpy() == b"1"


@pytest.mark.parametrize(
    ("query", "kinds", "said"),
    [
        ("SELECT n FROM t", (tf.int32,), r"int32 is needed: got 1099511627776 at row 2, column 0"),
        ("SELECT name FROM t", (tf.int32,), "int32 is needed: got b'a' at row 0, column 0, of /"),
        ("SELECT n FROM gap", (tf.int32,), "int32 is needed: got None at row 0"),
        ("SELECT x FROM t", (tf.int32,), "int32 is needed: got 0.5"),
        ("SELECT n, x FROM t", (tf.int32,), "each of the query's 2 columns: got 1"),
        ("SELECT nope FROM t", (tf.int32,), "no such column: nope"),
        ("DELETE FROM t", (tf.int32,), "readonly database"),
        ("nonsense", (tf.int32,), "syntax error"),
        ("", (tf.int32,), "got '' for .*finds no columns"),
        ("SELECT 1000000", (tf.float16,), "float16 is needed: got 1000000 at row 0"),
        ("SELECT 1e300", (tf.float32,), r"float32 is needed: got 1e\+300 at row 0"),
    ],
)
def test_what_is_wrong_is_named(base, query, kinds, said):
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        list(Sql("sqlite", base, query, kinds))


@pytest.mark.parametrize(
    "stage",
    [
        lambda data: data.prefetch(2),
        lambda data: data.map(lambda n: n, num_parallel_calls=2).batch(1),
        lambda data: data.skip(1).prefetch(2),
    ],
)
def test_rows_are_read_on_other_threads_and_resumed(base, stage):
    data = stage(Sql("sqlite", base, "SELECT n FROM t ORDER BY x", (tf.int64,)))
    numbers = [np.ravel(np.asarray(row)).tolist() for row in data]
    iterator = iter(data)
    next(iterator)
    place = dict(iterator._checkpoint_state())
    again = iter(data)
    again._restore_state(place)
    assert [np.ravel(np.asarray(row)).tolist() for row in again] == numbers[1:]


def test_a_path_may_begin_with_two_slashes(base):
    assert len(list(Sql("sqlite", f"/{base}", "SELECT n FROM t", (tf.int64,)))) == 3


def test_wrong_calls_are_refused(base, tmp_path):
    with pytest.raises(ValueError, match="must be 'sqlite': got 'mysql'"):
        Sql("mysql", base, "SELECT 1", (tf.int32,))
    with pytest.raises(ValueError, match="a tuple of dtypes: got int32|got samegrad.int32"):
        Sql("sqlite", base, "SELECT 1", tf.int32)
    with pytest.raises(tf.errors.NotFoundError, match="none.db"):
        Sql("sqlite", str(tmp_path / "none.db"), "SELECT 1", (tf.int32,))
    (tmp_path / "bad.db").write_bytes(b"no database" * 100)
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad.db .*not a database"):
        list(Sql("sqlite", str(tmp_path / "bad.db"), "SELECT 1 FROM t", (tf.int32,)))


def test_rows_of_different_sizes_become_sparse():
    data = tf.data.Dataset.range(4).map(lambda n: tf.fill([n], n)).sparse_batch(2, [4])
    first, second = data
    assert first.indices.numpy().tolist() == [[1, 0]] and first.values.numpy().tolist() == [1]
    assert first.dense_shape.numpy().tolist() == [2, 4]
    np.testing.assert_array_equal(tf.sparse.to_dense(second), [[2, 2, 0, 0], [3, 3, 3, 0]])
    assert data.element_spec == tf.TensorSpec([None, 4], tf.int64)
    same = tf.data.Dataset.range(4).map(lambda n: tf.fill([n], n)).sparse_batch(2, 4)
    assert same.element_spec == data.element_spec
    np.testing.assert_array_equal(next(iter(same)).dense_shape, [2, 4])
    open_size = tf.data.Dataset.range(1, 4).map(tf.range).sparse_batch(3, [None])
    assert next(iter(open_size)).dense_shape.numpy().tolist() == [3, 3]
    none = next(iter(tf.data.Dataset.range(1).map(tf.range).sparse_batch(3, [-1])))
    assert none.dense_shape.numpy().tolist() == [1, 0] and none.indices.shape == (0, 2)
    words = tf.data.Dataset.from_tensors(tf.constant([["a"], ["b"]])).sparse_batch(1, [2, 2])
    assert tf.sparse.to_dense(next(iter(words))).numpy().tolist() == [[[b"a", b""], [b"b", b""]]]


def test_rows_that_do_not_fit_are_refused():
    data = tf.data.Dataset.range(5).map(tf.range)
    with pytest.raises(ValueError, match=r"got shape \(3,\) for row_shape \(2,\)"):
        list(data.sparse_batch(2, [2]))
    with pytest.raises(ValueError, match=r"got shape \(0,\) for row_shape \(2, 2\)"):
        list(data.sparse_batch(2, [2, 2]))
    with pytest.raises(ValueError, match="one tensor each"):
        list(data.map(lambda x: (x, x)).sparse_batch(2, [4]))
    with pytest.raises(ValueError, match="batch_size"):
        data.sparse_batch(0, [4])


def test_a_tuple_of_numbers_may_be_one_tensor():
    spec = tf.TensorSpec((2,), tf.int64)
    data = tf.data.Dataset.from_generator(lambda: iter([(1, 2), (3, 4)]), output_signature=spec)
    assert [row.numpy().tolist() for row in data] == [[1, 2], [3, 4]]
    wrong = tf.data.Dataset.from_generator(lambda: iter([(1, 2, 3)]), output_signature=spec)
    with pytest.raises(ValueError, match=r"says shape \(2,\): got \(3,\)"):
        list(wrong)


def test_an_element_whose_parts_differ_in_length():
    spec = tf.TensorSpec((2, None), tf.int32)
    for element in (((1, 2), (3,)), [[1, 2], [3]]):
        data = tf.data.Dataset.from_generator(lambda e=element: iter([e]), output_signature=spec)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"one shape: got .*\[?\(?1, 2"):
            list(data)


def test_functions_of_python_decorate():
    @tf.py_function(Tout=tf.float32)
    def half(x):
        """Half of it."""
        return np.float32(x.numpy() / 2)

    @tf.numpy_function(Tout=[tf.int64, tf.string])
    def both(x):
        return x + 1, b"a"

    assert half.__name__ == "half" and float(half(3.0)) == 1.5
    rows = list(tf.data.Dataset.range(2).map(lambda n: (half(n), *both(n))))
    assert [(float(a), int(b), c.numpy()) for a, b, c in rows] == [(0, 1, b"a"), (0.5, 2, b"a")]
    with pytest.raises(TypeError, match="Tout must be the dtypes"):
        tf.py_function()
