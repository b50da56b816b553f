"""Norms of tensors together, and limits on them."""

from __future__ import annotations

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import local, split

import samegrad as tf

rng = np.random.default_rng(12)
both = pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])


# Recorded with TensorFlow 2.21.
@both
@pytest.mark.parametrize(
    ("tensors", "clipped", "norm"),
    [
        ([[3.0, 4.0], None, [0.0, 12.0]], [[1.5, 2.0], None, [0.0, 6.0]], 13.0),
        ([[np.inf], [1.0]], [[np.nan], [np.nan]], np.inf),
        ([[np.nan], [2.0]], [[np.nan], [np.nan]], np.nan),
        ([[0.0, 0.0]], [[0.0, 0.0]], 0.0),
    ],
)
def test_numbers_of_tensorflow(tensors, clipped, norm, traced):
    run = tf.function(tf.clip_by_global_norm) if traced else tf.clip_by_global_norm
    given = [None if t is None else tf.constant(t) for t in tensors]
    found, length = run(given, 6.5)
    np.testing.assert_equal(float(length), norm)
    for got, wanted in zip(found, clipped, strict=True):
        assert (got is None) == (wanted is None)
        if got is not None:
            np.testing.assert_array_equal(got.numpy(), wanted)


def test_a_norm_that_is_known():
    found, norm = tf.clip_by_global_norm([tf.constant([1.0, 2.0])], 1.0, use_norm=4.0)
    np.testing.assert_array_equal(found[0].numpy(), [0.25, 0.5])
    assert float(norm) == 4.0


def test_no_tensors_dtypes_and_large_numbers():
    assert tf.clip_by_global_norm([], 1.0)[0] == []
    assert float(tf.linalg.global_norm([None])) == 0.0
    wide = [tf.constant([1e30, 1e30]), tf.constant([1.0], "float64")]
    found, norm = tf.clip_by_global_norm(wide, 1.0)
    assert [t.dtype for t in found] == [tf.float32, tf.float64] and norm.dtype == tf.float32
    x = rng.normal(size=100_003).astype("float32")
    np.testing.assert_allclose(
        float(tf.linalg.global_norm([x, x[:7]])),
        np.sqrt((x.astype("float64") ** 2).sum() + (x[:7].astype("float64") ** 2).sum()),
        rtol=1e-6,
    )


def test_gradients_of_limits():
    x, y = rng.normal(size=(3, 4)), rng.normal(size=(2,))
    for limit in (0.5, 50.0):
        check_derivatives(
            lambda x, y, limit=limit: tf.concat(
                [tf.reshape(t, [-1]) for t in tf.clip_by_global_norm([x, y], limit)[0]], 0
            ),
            x, y,
        )  # fmt: skip
        check_derivatives(lambda x, limit=limit: tf.clip_by_norm(x, limit, axes=[-1]), x)


def test_gradients_at_zero_are_finite():
    x = tf.zeros((3,))
    for norm in (
        lambda: tf.linalg.global_norm([x]),
        lambda: tf.reduce_sum(tf.clip_by_norm(x, 1.0)),
        lambda: tf.reduce_sum(tf.clip_by_global_norm([x], 1.0)[0][0]),
    ):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = norm()
        assert np.isfinite(tape.gradient(y, x).numpy()).all()
    clipped = tf.clip_by_norm([[3.0, 4.0], [0.0, 0.0]], 1.0, axes=[1]).numpy()
    np.testing.assert_allclose(clipped, [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)


def test_limits_after_an_all_reduce_have_equal_bits_on_replicas():
    x = rng.normal(size=(16, 5)).astype("float32")
    v, w = tf.Variable(rng.normal(size=(5, 3)).astype("float32")), tf.Variable([0.5, 1.0, 2.0])

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(tf.tanh(x @ v) * w, 1))
        gradients = tape.gradient(loss, [v, w])
        whole = tf.distribute.get_replica_context().all_reduce("sum", gradients)
        clipped, norm = tf.clip_by_global_norm(whole, 0.1)
        return [*clipped, norm]

    found = []
    for replicas in (1, 2, 3):
        s = tf.distribute.MirroredStrategy(replicas=replicas)
        parts = s.run(step, args=(split(x, replicas),))
        found.append([local(part)[-1].tobytes() for part in parts])
    assert found[0] == found[1] == found[2]


def test_the_optimizers_limit_is_the_same():
    v = [tf.Variable(rng.normal(size=n).astype("float32")) for n in (3, 17, 5)]
    gradients = [tf.constant(rng.normal(size=x.shape).astype("float32")) for x in v]
    zeros = [tf.Variable(x * 0.0) for x in v]
    optimizer = tf.keras.optimizers.SGD(1.0, global_clipnorm=0.7)
    optimizer.apply_gradients(list(zip(gradients, zeros, strict=True)))
    clipped, _ = tf.clip_by_global_norm(gradients, 0.7)
    for x, g in zip(zeros, clipped, strict=True):
        np.testing.assert_allclose(x.numpy(), -g.numpy(), rtol=1e-6)


def test_wrong_lists():
    for wrong in (tf.constant([1.0]), "text", 3, tf.Variable([1.0]), {"a": 1.0}):
        with pytest.raises(TypeError, match=r"\[global_norm\] t_list must be a list"):
            tf.linalg.global_norm(wrong)
    with pytest.raises(TypeError, match="floats: got int32"):
        tf.clip_by_global_norm([tf.constant([1])], 1.0)
    with pytest.raises(ValueError, match="use_norm must be one number"):
        tf.clip_by_global_norm([tf.constant([1.0])], 1.0, use_norm=[1.0])
    with pytest.raises(ValueError, match="clip_norm must be one number"):
        tf.clip_by_global_norm([tf.constant([1.0])], [1.0, 2.0])


NORMS = {
    "norm": lambda x: tf.norm(x, axis=1),
    "reduce_euclidean_norm": lambda x: tf.math.reduce_euclidean_norm(x, axis=1),
    "keras": lambda x: tf.keras.ops.norm(x, axis=1),
}


@both
@pytest.mark.parametrize("name", NORMS)
def test_derivatives_of_a_norm_of_zero_are_zero(name, traced):
    def derivatives(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                norms = NORMS[name](x)
            first = inner.gradient(norms, x)
        return norms, first, outer.gradient(first, x)

    run = tf.function(derivatives) if traced else derivatives
    x = tf.constant(np.array([[0.0, 0.0], [3.0, 4.0], [np.nan, 1.0]]))
    norms, first, second = (found.numpy() for found in run(x))
    np.testing.assert_array_equal(norms, [0.0, 5.0, np.nan])
    np.testing.assert_allclose(first[:2], [[0, 0], [0.6, 0.8]], rtol=1e-15)
    # (1 - u u') / norm, applied to ones
    np.testing.assert_allclose(second[:2], [[0, 0], [0.032, -0.024]], atol=1e-15)
