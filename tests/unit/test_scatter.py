"""Elements at indices are read, summed and replaced as NumPy does, in an order that is fixed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import examples, local, shares, strategy

import samegrad as tf

TRACED = pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
NUMBERS = pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
RNG = np.random.default_rng(0)


def called(fn: Any, traced: bool, *values: Any) -> np.ndarray:
    found = (tf.function(fn) if traced else fn)(*map(tf.constant, values)).numpy()
    assert isinstance(found, np.ndarray | np.generic)
    return np.asarray(found)


def places(indices: np.ndarray) -> tuple[np.ndarray, ...]:
    """As NumPy takes them."""
    return tuple(np.moveaxis(indices, -1, 0))


# Shape of the tensor, of the indices without their last axis, and how many axes are indexed.
FORMS = pytest.mark.parametrize(("shape", "rows", "depth"), [
    ((5,), (8,), 1), ((5, 3), (8,), 1), ((4, 3), (7,), 2), ((4, 3, 2), (2, 4), 2),
    ((3, 2), (0,), 1), ((3,), (), 1), ((2, 3, 1), (4,), 3), ((4, 0), (3,), 1), ((2, 3), (4,), 0),
    ((1,), (6,), 1),
])  # fmt: skip


def drawn(shape, rows, depth, seed=0, kind=np.int32):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(n, size=rows) for n in shape[:depth]]
    return np.stack(columns, -1).astype(kind) if depth else np.zeros((*rows, 0), kind)


def written(at: Any, tensor: np.ndarray, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """One update after the other."""
    result = tensor.copy()
    for row in np.ndindex(*index.shape[:-1]):
        place = tuple(index[row])
        result[place] = at(result[place], updates[row], dtype=tensor.dtype)
    return result


@FORMS
@TRACED
@NUMBERS
def test_what_is_written_at_indices_is_numpys(shape, rows, depth, traced, dtype):
    index = drawn(shape, rows, depth)
    tensor = RNG.integers(1, 50, size=shape).astype(dtype)
    updates = RNG.integers(1, 5, size=(*rows, *shape[depth:])).astype(dtype)
    for name, at in {"add": np.add, "sub": np.subtract, "max": np.maximum,
                     "min": np.minimum}.items():  # fmt: skip
        expected = written(at, tensor, index, updates)
        found = called(getattr(tf, f"tensor_scatter_nd_{name}"), traced, tensor, index, updates)
        assert found.dtype == tensor.dtype
        np.testing.assert_array_equal(found, expected, err_msg=name)
    sums = written(np.add, np.zeros(shape, dtype), index, updates)
    found = called(lambda i, u: tf.scatter_nd(i, u, shape), traced, index, updates)
    np.testing.assert_array_equal(found, sums)


@FORMS
@TRACED
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_of_equal_indices_the_last_update_stays(shape, rows, depth, traced, dtype):
    index = drawn(shape, rows, depth, kind=np.int64)
    tensor = RNG.integers(100, size=shape).astype(dtype)
    updates = RNG.integers(100, size=(*rows, *shape[depth:])).astype(dtype)
    expected = tensor.copy()
    for row in np.ndindex(*rows):
        expected[tuple(index[row])] = updates[row]
    found = called(tf.tensor_scatter_nd_update, traced, tensor, index, updates)
    np.testing.assert_array_equal(found, expected)


@FORMS
@TRACED
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_what_is_read_at_indices_is_numpys(shape, rows, depth, traced, dtype):
    index = drawn(shape, rows, depth)
    tensor = RNG.integers(100, size=shape).astype(dtype)
    found = called(tf.gather_nd, traced, tensor, index)
    expected = tensor[places(index)] if depth else np.broadcast_to(tensor, (*rows, *shape))
    np.testing.assert_array_equal(found, expected)


@TRACED
@pytest.mark.parametrize("dims", [1, 2])
def test_reads_in_the_parts_of_a_batch(traced, dims):
    tensor = RNG.normal(size=(2, 3, 4, 5)[: dims + 2])
    index = np.stack([RNG.integers(n, size=(*tensor.shape[:dims], 6))
                      for n in tensor.shape[dims : dims + 2]], -1)  # fmt: skip
    found = called(lambda x, i: tf.gather_nd(x, i, batch_dims=dims), traced, tensor, index)
    expected = np.empty(found.shape)
    for part in np.ndindex(*tensor.shape[:dims]):
        expected[part] = tensor[part][places(index[part])]
    np.testing.assert_array_equal(found, expected)


@TRACED
@pytest.mark.parametrize(("shape", "index_shape", "axis", "dims"), [
    ((2, 5), (2, 3), None, 1), ((2, 5, 4), (2, 3), 1, 1), ((2, 5, 4), (2, 3), -1, 1),
    ((2, 3, 5, 4), (2, 3, 2, 2), 3, 2), ((2, 3, 5, 4), (2, 3), None, 2), ((2, 5, 4), (2,), 2, 1),
    ((2, 3, 5, 4), (2, 6), 3, 1), ((2, 5), (2, 3), 1, -1), ((0, 5), (0, 3), None, 1),
    ((2, 5, 0), (2, 3), 1, 1), ((2, 1), (2, 0), 1, 1),
])  # fmt: skip
def test_gather_in_the_parts_of_a_batch(traced, shape, index_shape, axis, dims):
    x = RNG.normal(size=shape)
    batch = dims if dims >= 0 else dims + len(index_shape)
    place = batch if axis is None else axis % len(shape)
    index = RNG.integers(shape[place], size=index_shape)
    found = called(lambda v, i: tf.gather(v, i, axis=axis, batch_dims=dims), traced, x, index)
    expected = np.empty((*shape[:place], *index_shape[batch:], *shape[place + 1 :]))
    for part in np.ndindex(*shape[:batch]):
        expected[part] = np.take(x[part], index[part], axis=place - batch)
    np.testing.assert_array_equal(found, expected)


@TRACED
def test_derivatives_agree_with_differences(traced):
    tensor, updates = RNG.normal(size=(3, 2)), RNG.normal(size=(5, 2))
    index = np.int32([[2], [0], [2], [2], [0]])
    pairs = np.int32([[2, 1], [0, 0], [2, 1], [1, 1], [0, 0]])
    for name in ("add", "sub", "update", "max", "min"):
        write = getattr(tf, f"tensor_scatter_nd_{name}")

        def fn(x: Any, u: Any, write: Any = write) -> Any:
            return tf.square(write(x, index, u))

        check_derivatives(fn, tensor, updates, traced=traced)
    check_derivatives(lambda u: tf.square(tf.scatter_nd(pairs, u[:, 0], [3, 2])), updates)
    check_derivatives(lambda x: tf.square(tf.gather_nd(x, pairs)), tensor, traced=traced)
    batch = np.int32([[1, 1], [0, 1], [1, 0]])
    check_derivatives(lambda x: tf.square(tf.gather(x, batch, batch_dims=1)), tensor, traced=traced)
    deep = RNG.normal(size=(2, 3, 2))
    check_derivatives(
        lambda x: tf.square(tf.gather(x, batch[:2], axis=2, batch_dims=1)), deep, traced=traced
    )


def test_many_updates_have_one_order_whatever_the_threads():
    index = RNG.integers(7, size=(100_000, 1))
    updates = RNG.normal(size=100_000).astype(np.float32)
    found = []
    for threads in (1, 2, 4):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        found.append(tf.scatter_nd(index, updates, [7]).numpy())
    tf.config.threading.set_intra_op_parallelism_threads(0)
    expected = np.zeros(7)
    np.add.at(expected, index[:, 0], updates)
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_nan_and_infinity_stay_where_they_are_written():
    updates = np.float64([np.nan, np.inf, 1.0, -np.inf])
    found = tf.scatter_nd([[0], [1], [2], [1]], updates, [4]).numpy()
    np.testing.assert_array_equal(found, [np.nan, np.nan, 1.0, 0.0])
    tensor = np.zeros(3)
    largest = tf.tensor_scatter_nd_max(tensor, [[0], [0], [1]], np.float64([np.nan, 5.0, -np.inf]))
    np.testing.assert_array_equal(largest.numpy(), [np.nan, 0.0, 0.0])


@pytest.mark.parametrize("counts", [(6, 6), (3, 3, 3, 3), (12,)])
def test_sums_over_examples_have_the_bits_of_one_device(counts):
    index = RNG.integers(5, size=(12, 1))
    updates = RNG.normal(size=(12, 3)).astype(np.float32)
    replicas = strategy(len(counts))
    cuts = np.cumsum(counts)[:-1]

    def each(i, u):
        context = tf.distribute.get_replica_context()
        return context.all_reduce("sum", tf.scatter_nd(i, u, [5, 3]))

    step = tf.function(lambda i, u: replicas.run(each, (i, u)))
    if len(counts) == 1:
        parts = examples(index), examples(updates)
    else:
        parts = shares(*np.split(index, cuts)), shares(*np.split(updates, cuts))
    whole = tf.function(lambda i, u: tf.scatter_nd(i, u, [5, 3]))(
        examples(index), examples(updates)
    )
    for part in local(step(*parts)):
        np.testing.assert_array_equal(part, whole.numpy())


@pytest.mark.parametrize("counts", [(5, 4, 3), (6, 0, 6)])
def test_reads_of_examples_are_the_same_on_any_replicas(counts):
    x, index = RNG.normal(size=(12, 5, 2)).astype(np.float32), RNG.integers(5, size=(12, 3))
    cuts = np.cumsum(counts)[:-1]
    replicas = strategy(len(counts))

    def each(rows, i):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            y = tf.square(tf.gather(rows, i, batch_dims=1))
        one = tf.gather_nd(rows, tf.expand_dims(i, -1), batch_dims=1)
        return y, tape.gradient(y, rows), one

    step = tf.function(lambda v, i: replicas.run(each, (v, i)))
    found = step(shares(*np.split(x, cuts)), shares(*np.split(index, cuts)))
    for got, expected in zip(found, each(examples(x), examples(index)), strict=True):
        np.testing.assert_array_equal(np.concatenate(local(got)), expected.numpy())


@TRACED
def test_writes_into_examples_are_each_replicas_own(traced):
    parts = [RNG.normal(size=(n, 2)) for n in (4, 1, 3)]
    replicas = strategy(3)

    def each(rows):
        return tf.tensor_scatter_nd_update(rows, [[0]], [[7.0, 8.0]] + 0.0 * rows[:1])

    def run(v):
        return replicas.run(each, (v,))

    found = (tf.function(run) if traced else run)(shares(*parts))
    for got, part in zip(local(found), parts, strict=True):
        np.testing.assert_array_equal(got, np.concatenate([[[7.0, 8.0]], part[1:]]))


def test_a_shape_may_follow_from_the_examples():
    @tf.function
    def fn(rows):
        n = tf.shape(rows)[0]
        index = tf.expand_dims(tf.range(n), 1)
        return tf.scatter_nd(index, rows, [n + 1, 2])

    for n in (3, 5):
        x = RNG.normal(size=(n, 2))
        found = fn(examples(x)).numpy()
        np.testing.assert_array_equal(found, np.concatenate([x, np.zeros((1, 2))]))


BAD = tf.errors.InvalidArgumentError


@pytest.mark.parametrize(("call", "kind", "words"), [
    (lambda: tf.scatter_nd([[0], [4]], [1.0, 1.0], [4]), BAD,
     r"indices must lie in \[0, 4\): got 4 at position \(1, 0\)"),
    (lambda: tf.scatter_nd([[0, 0], [1, -1]], [1.0, 1.0], [4, 3]), BAD,
     r"indices must lie in \[0, 3\): got -1 at position \(1, 1\)"),
    (lambda: tf.gather_nd([1.0], [[1]]), BAD, r"\[0, 1\): got 1 at position \(0, 0\)"),
    (lambda: tf.gather([[1.0, 2.0]], [[2]], batch_dims=1), BAD,
     r"\[0, 2\): got 2 at position \(0, 0\)"),
    (lambda: tf.tensor_scatter_nd_update([1.0], [[-1]], [2.0]), BAD, r"\[0, 1\): got -1"),
    (lambda: tf.scatter_nd([[0]], [1.0, 2.0], [4]), ValueError,
     r"\[scatter_nd\] updates must have .* \(1,\): got \(2,\)"),
    (lambda: tf.scatter_nd([[0, 0]], [1.0], [4]), ValueError, "that has 1 to index"),
    (lambda: tf.scatter_nd(0, [1.0], [4]), ValueError, r"indices of shape \(\)"),
    (lambda: tf.scatter_nd([[0.5]], [1.0], [4]), TypeError, "int32 or int64: got float32"),
    (lambda: tf.scatter_nd([[0]], [True], [4]), TypeError, "bool"),
    (lambda: tf.scatter_nd([[0]], [1.0], [-4]), ValueError, "0 or more: got"),
    (lambda: tf.tensor_scatter_nd_add(tf.constant([1.0]), [[0]], tf.constant([1])), TypeError,
     "one dtype"),
    (lambda: tf.gather_nd([[1.0]], [[0]], batch_dims=-1), ValueError, "gather_nd"),
    (lambda: tf.gather_nd([[1.0]], [[[0]], [[0]]], batch_dims=1), ValueError, "share"),
    (lambda: tf.gather([1.0], [0], axis=0, batch_dims=1), ValueError, "batch_dims must lie"),
    (lambda: tf.gather([[1.0]], [[0]], batch_dims=3), ValueError, "batch_dims must lie"),
    (lambda: tf.gather([[1.0]], [[0], [0]], batch_dims=1), ValueError, "share"),
    (lambda: tf.gather([[1.0]], [[0.0]], batch_dims=1), TypeError, "int32 or int64"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_an_index_outside_names_its_place_in_the_batch_and_the_replica():
    replicas = strategy(2)
    index = [np.int32([[0], [1]]), np.int32([[2], [9]])]
    step = tf.function(
        lambda i: replicas.run(lambda v: tf.gather_nd(tf.constant([1.0, 2.0, 3.0]), v), (i,))
    )
    with pytest.raises(BAD, match=r"\[0, 3\): got 9 at position \(3, 0\) of the batch, on .* 1"):
        step(shares(*index))


@pytest.mark.parametrize("batches", [(), (2,), (3, 2)])
def test_rows_are_put_into_each_batch_by_its_own_numbers(batches):
    rng = np.random.default_rng(len(batches))
    start = rng.normal(size=(*batches, 5, 2)).astype(np.float32)
    values = rng.normal(size=(*batches, 3, 2)).astype(np.float32)
    places = np.array([rng.permutation(5)[:3] for _ in range(int(np.prod(batches)))])
    places = places.reshape(*batches, 3)
    variable = tf.Variable(start)
    assert variable.batch_scatter_update(tf.IndexedSlices(values, places)) is variable
    for batch in np.ndindex(*batches):
        start[batch][places[batch]] = values[batch]
    np.testing.assert_array_equal(variable.numpy(), start)


def test_rows_for_batches_come_with_their_numbers():
    with pytest.raises(
        TypeError, match=r"batch_scatter_update\] rows and their numbers .*IndexedSl"
    ):
        tf.Variable([1.0]).batch_scatter_update([2.0])
