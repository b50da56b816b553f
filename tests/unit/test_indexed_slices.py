"""IndexedSlices where TensorFlow takes them: limits on norms, sums, optimizers, reductions."""

import numpy as np
import pytest

import samegrad as tf

VALUES, INDICES = np.float32([[3.0, 0.5], [-4.0, 2.0], [1.0, 7.0]]), np.array([1, 4, 1])
DENSE = np.zeros((6, 2), "float32")
np.add.at(DENSE, INDICES, VALUES)
SHAPES = {
    "list": [6, 2], "tuple": (6, 2), "numpy": np.array([6, 2]), "tensor": tf.constant([6, 2]),
    "int64": tf.constant([6, 2], tf.int64), "shape": tf.zeros([6, 2]).shape,
}  # fmt: skip


def slices(kind="tensor"):
    return tf.IndexedSlices(tf.constant(VALUES), tf.constant(INDICES), SHAPES[kind])


@pytest.fixture(params=["function", "eager"])
def wrap(request):
    return tf.function if request.param == "function" else lambda f: f


@pytest.mark.parametrize("kind", SHAPES)
def test_the_dense_tensor_adds_rows_of_equal_indices(kind, wrap):
    assert wrap(lambda: tf.convert_to_tensor(slices(kind)))().numpy().tolist() == DENSE.tolist()


def test_the_dense_shape_may_be_a_value_of_the_step():
    @tf.function
    def dense(table, rows):
        return tf.convert_to_tensor(tf.IndexedSlices(rows, INDICES, tf.shape(table)))

    found = dense(tf.zeros([6, 2]), tf.constant(VALUES))
    np.testing.assert_array_equal(found.numpy(), DENSE, strict=True)


def test_a_dense_tensor_without_a_shape_is_refused():
    with pytest.raises(ValueError, match=r"\[IndexedSlices\] .*dense_shape: got None"):
        tf.convert_to_tensor(tf.IndexedSlices(VALUES, INDICES))


ROWS = {
    "clip_by_value": (lambda x: tf.clip_by_value(x, -1.0, 2.5), VALUES.clip(-1.0, 2.5)),
    "clip_by_norm": (
        lambda x: tf.clip_by_norm(x, 2.0), VALUES * 2.0 / np.linalg.norm(VALUES)
    ),
    "clip_by_norm of rows": (
        lambda x: tf.clip_by_norm(x, 2.0, axes=[1]),
        VALUES * 2.0 / np.maximum(np.linalg.norm(VALUES, axis=1, keepdims=True), 2.0),
    ),
    "clip_by_norm below": (lambda x: tf.clip_by_norm(x, 100.0), VALUES),
    "scalar_mul": (lambda x: tf.scalar_mul(-0.5, x), VALUES * -0.5),
    "scalar_mul by a tensor": (lambda x: tf.math.scalar_mul(tf.constant(3.0), x), VALUES * 3.0),
    "clip_by_global_norm": (
        lambda x: tf.clip_by_global_norm([None, x], 2.0)[0][1],
        VALUES * 2.0 / np.linalg.norm(VALUES),
    ),
    "clip_by_global_norm, given": (
        lambda x: tf.clip_by_global_norm([x], 2.0, use_norm=tf.constant(4.0))[0][0], VALUES * 0.5
    ),
    "clip_by_global_norm with a tensor": (
        lambda x: tf.clip_by_global_norm([x, tf.constant([12.0])], 6.5)[0][0],
        VALUES * 6.5 / np.hypot(np.linalg.norm(VALUES), 12.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_limits_and_factors_leave_slices(name, wrap):
    call, expected = ROWS[name]
    kept = []

    def rows():
        found = call(slices())
        assert isinstance(found, tf.IndexedSlices)
        kept.append(found)
        return found.values, found.indices

    values, indices = wrap(rows)()
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-6)
    assert indices.numpy().tolist() == INDICES.tolist()
    assert kept[0].dense_shape is SHAPES["tensor"]


DENSE_RESULTS = {
    "global_norm": (lambda x: tf.linalg.global_norm([x, None, tf.constant([12.0])]),
                    np.hypot(np.linalg.norm(VALUES), 12.0)),
    "add_n": (lambda x: tf.add_n([x, x, tf.ones([6, 2])]), 2 * DENSE + 1.0),
    "accumulate_n": (lambda x: tf.math.accumulate_n([x]), DENSE),
    "reduce_sum": (tf.reduce_sum, DENSE.sum()),
    "product": (lambda x: tf.ones([1, 6]) @ x, DENSE.sum(0, keepdims=True)),
    "sum": (lambda x: tf.ones([6, 2]) + x, DENSE + 1.0),
    "cast": (lambda x: tf.cast(x, "float64"), DENSE.astype("float64")),
}  # fmt: skip


@pytest.mark.parametrize("name", DENSE_RESULTS)
def test_other_operations_take_the_dense_tensor(name, wrap):
    call, expected = DENSE_RESULTS[name]
    np.testing.assert_allclose(wrap(lambda: call(slices()))().numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("op", ["SUM", "MEAN"])
def test_replicas_reduce_their_slices(op, replicas, wrap):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)

    def step():
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group, "int64")
        own = tf.IndexedSlices(
            tf.constant(VALUES) * (tf.cast(number, tf.float32) + 1.0), INDICES + number, [8, 2]
        )
        found = context.all_reduce(op, {"slices": own, "tensor": tf.ones([2])})
        assert isinstance(found["slices"], tf.IndexedSlices)
        return tf.convert_to_tensor(found["slices"]), found["tensor"]

    dense, tensor = wrap(lambda: strategy.run(step))()
    expected = np.zeros((8, 2), "float32")
    for number in range(replicas):
        np.add.at(expected, INDICES + number, VALUES * (number + 1.0))
    share = replicas if op == "MEAN" else 1
    for part in strategy.experimental_local_results(dense):
        np.testing.assert_allclose(part.numpy(), expected / share, rtol=1e-6)
    for part in strategy.experimental_local_results(tensor):
        assert part.numpy().tolist() == [replicas / share] * 2


@pytest.mark.parametrize("replicas", [1, 2, 3])
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RMSprop"])
def test_optimizers_take_slices_as_gradients(optimizer, kind, replicas):
    def trained(gradient):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            v = tf.Variable(tf.ones([6, 2]))
            chosen = getattr(tf.keras.optimizers, optimizer)(0.1)
        strategy.run(lambda: chosen.apply_gradients([(gradient(), v)]))
        return v.numpy()

    dense = trained(lambda: tf.constant(DENSE))
    np.testing.assert_allclose(trained(lambda: slices(kind)), dense, rtol=1e-6)
    without = trained(lambda: tf.IndexedSlices(VALUES, INDICES))
    np.testing.assert_allclose(without, dense, rtol=1e-6)
