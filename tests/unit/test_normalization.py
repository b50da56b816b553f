"""Moments, what is normalized by them or by neighbours, and rows of tables."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import local, split

import samegrad as tf
from samegrad import nn

rng = np.random.default_rng(13)


@pytest.mark.parametrize("axes", [[0], [-1], [0, 1], [0, 1, 2], []])
@pytest.mark.parametrize("keepdims", [False, True])
def test_moments_are_numpys(axes, keepdims):
    x = rng.normal(size=(3, 4, 5)) + 1000.0
    mean, variance = nn.moments(x, axes, keepdims=keepdims)
    over = tuple(axes)
    np.testing.assert_allclose(mean.numpy(), x.mean(over, keepdims=keepdims), rtol=1e-14)
    np.testing.assert_allclose(
        variance.numpy(), x.var(over, keepdims=keepdims), rtol=1e-12, atol=1e-20
    )
    check_derivatives(lambda x: nn.moments(x, axes)[1] * nn.moments(x, axes)[0], x - 1000.0)


def test_moments_of_integers_are_refused():
    with pytest.raises(TypeError, match="floats: got int32"):
        nn.moments([1, 2], [0])


@pytest.mark.parametrize("given", [(True, True), (True, False), (False, True), (False, False)])
def test_batches_are_normalized(given):
    x, mean, scale, offset = (rng.normal(size=s) for s in [(6, 4), (4,), (4,), (4,)])
    variance = rng.uniform(0.5, 2, size=4)
    used = (offset if given[0] else None, scale if given[1] else None)
    y = nn.batch_normalization(x, mean, variance, *used, 1e-3)
    expected = (x - mean) / np.sqrt(variance + 1e-3)
    expected = expected * (scale if given[1] else 1) + (offset if given[0] else 0)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12, atol=1e-13)
    check_derivatives(
        lambda x, m, v: nn.batch_normalization(x, m, v, *used, 1e-3), x, mean, variance
    )


def test_numbers_of_tensorflow():
    x = np.array([1.0, 3.0])
    y = nn.batch_normalization(x, 2.0, 1.0, 0.5, 2.0, 0.1).numpy()
    np.testing.assert_allclose(y, [-1.4069252, 2.4069252], rtol=1e-7)
    x = np.arange(12, dtype="float32").reshape(1, 2, 1, 6) / 3
    y = nn.local_response_normalization(x, 2, 1.5, 0.7, 0.6).numpy().ravel()
    expected = [
        0.0, 0.18836956, 0.29768902, 0.34909487, 0.46926031, 0.60666537,
        0.42745292, 0.39395353, 0.36774515, 0.36303005, 0.43340671, 0.53164691,
    ]  # fmt: skip
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    table = np.arange(8, dtype="float32").reshape(4, 2)
    y = nn.embedding_lookup(table, [1, 3], max_norm=2.0).numpy()
    np.testing.assert_allclose(y, [[1.1094004, 1.6641006], [1.3015827, 1.5185132]], rtol=1e-6)


@pytest.mark.parametrize("radius", [0, 1, 3, 50])
def test_neighbours_normalize(radius):
    x = rng.normal(size=(2, 1, 3, 5))
    near = np.stack(
        [(x[..., max(c - radius, 0) : c + radius + 1] ** 2).sum(-1) for c in range(5)], -1
    )
    y = nn.local_response_normalization(x, radius, 1.1, 0.3, 0.75)
    np.testing.assert_allclose(y.numpy(), x / (1.1 + 0.3 * near) ** 0.75, rtol=1e-12)
    check_derivatives(lambda x: nn.local_response_normalization(x, radius, 1.1, 0.3, 0.75), x)


def test_wrong_and_empty_images():
    assert nn.local_response_normalization(np.zeros((0, 2, 2, 3))).shape == (0, 2, 2, 3)
    with pytest.raises(ValueError, match="rows, columns, channels"):
        nn.local_response_normalization([[1.0]])
    with pytest.raises(ValueError, match="depth_radius"):
        nn.local_response_normalization(np.zeros((1, 1, 1, 1)), -1)
    with pytest.raises(TypeError, match="floats"):
        nn.local_response_normalization(np.zeros((1, 1, 1, 1), "int32"))


def test_rows_of_a_table():
    table, ids = rng.normal(size=(7, 3)), np.array([[6, 0], [2, 2]])
    np.testing.assert_array_equal(nn.embedding_lookup(table, ids).numpy(), table[ids])
    check_derivatives(lambda t: nn.embedding_lookup(t, ids, max_norm=1.0), table)
    v = tf.Variable(table)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(nn.embedding_lookup([v], ids))
    np.testing.assert_array_equal(tape.gradient(y, v).numpy()[:, 0], [1, 0, 2, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="one table: got 2"):
        nn.embedding_lookup([table, table], ids)
    with pytest.raises((IndexError, ValueError)):
        nn.embedding_lookup(table, [7])


def test_replicas_and_functions_have_the_bits_of_one_device():
    x, table = rng.integers(0, 9, size=(16, 2)), rng.normal(size=(9, 4)).astype("float32")
    v = tf.Variable(table)

    def step(ids):
        with tf.GradientTape() as tape:
            rows = nn.embedding_lookup(v, ids)
            mean, variance = nn.moments(rows, [1], keepdims=True)
            y = nn.batch_normalization(rows, mean, variance, None, None, 1e-3)
            y = nn.local_response_normalization(tf.expand_dims(tf.square(y), 1), 2)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(y, [1, 2, 3]))
        return tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, v))

    found = []
    for replicas in (1, 2, 3):
        s = tf.distribute.MirroredStrategy(replicas=replicas)
        share = split(x.astype("int32"), replicas)
        found.append(local(s.run(step, args=(share,)))[0].tobytes())
        run = tf.function(lambda share, s=s: s.run(step, args=(share,)))
        found.append(local(run(share))[0].tobytes())
    assert len(set(found)) == 1
