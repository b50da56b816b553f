"""Sparse tensors as the source of datasets: TensorFlow's elements."""

from typing import Any

import numpy as np
import pytest

import samegrad as tf

D = tf.data.Dataset
DENSE = np.array([[0, 1, 0, 3], [0, 0, 0, 0], [2, 0, 0, 0]], np.float32)


def sparse() -> Any:
    """Return DENSE as a sparse tensor."""
    places = np.argwhere(DENSE)
    return tf.sparse.SparseTensor(places, DENSE[tuple(places.T)], DENSE.shape)


def test_slices_of_a_sparse_tensor_are_its_rows() -> None:
    dataset = D.from_tensor_slices(sparse())
    assert len(dataset) == 3
    rows = list(dataset)
    assert [row.shape for row in rows] == [(4,)] * 3
    assert [row.values.numpy().tolist() for row in rows] == [[1.0, 3.0], [], [2.0]]
    np.testing.assert_array_equal([tf.sparse.to_dense(row) for row in rows], DENSE)


def test_sparse_rows_go_through_batch_map_shuffle_zip_and_structures() -> None:
    pairs = D.from_tensor_slices({"a": sparse(), "b": np.arange(3)})
    [batch] = pairs.batch(3)
    np.testing.assert_array_equal(tf.sparse.to_dense(batch["a"]), DENSE)
    assert batch["b"].numpy().tolist() == [0, 1, 2]
    dense = D.from_tensor_slices(sparse()).batch(2).map(tf.sparse.to_dense)
    assert [part.numpy().tolist() for part in dense] == [DENSE[:2].tolist(), DENSE[2:].tolist()]
    shuffled = D.from_tensor_slices(sparse()).shuffle(3, seed=1).repeat(2).map(tf.sparse.to_dense)
    np.testing.assert_array_equal(np.sum([row.numpy() for row in shuffled], 0), 2 * DENSE.sum(0))
    row, number = next(iter(D.zip((D.from_tensor_slices(sparse()).skip(2), D.range(3)))))
    assert row.values.numpy().tolist() == [2.0] and int(number) == 0


def test_sparse_vectors_and_text_have_rows() -> None:
    vector = tf.sparse.SparseTensor([[1]], [5], [3])
    rows = [tf.sparse.to_dense(row).numpy().tolist() for row in D.from_tensor_slices(vector)]
    assert rows == [0, 5, 0]
    text = tf.sparse.SparseTensor([[1, 0]], ["a"], [2, 2])
    assert [r.values.numpy().tolist() for r in D.from_tensor_slices(text)] == [[], [b"a"]]


def test_from_tensors_keeps_sparse_and_ragged_tensors_whole() -> None:
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    [(one, other, plain)] = D.from_tensors((sparse(), ragged, [1, 2]))
    np.testing.assert_array_equal(tf.sparse.to_dense(one), DENSE)
    assert other.to_list() == ragged.to_list() and plain.numpy().tolist() == [1, 2]


def test_sparse_slices_need_as_many_rows_as_other_components() -> None:
    with pytest.raises(ValueError, match="the same length along axis 0"):
        D.from_tensor_slices((sparse(), [1, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="see tf.sparse.reorder"):
        D.from_tensor_slices(tf.sparse.SparseTensor([[1], [0]], [1, 2], [2]))
