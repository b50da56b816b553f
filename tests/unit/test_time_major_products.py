"""One matrix for all time steps, where the examples are behind the axis of time."""

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import both_ways, cut, examples, local, on, shares, strategy

import samegrad as tf
from samegrad._tensor.example_axis import as_examples

rng = np.random.default_rng(3)
T, I, O = 5, 3, 4  # noqa: E741 - time steps, columns of x and of y


def by_time(x):
    return tf.transpose(x, [1, 0, 2])


def products(x, w, u, v):
    """Each of the ways in which a matrix meets rows: as it is, turned, and rows turned."""
    z = by_time(x)
    turned = tf.transpose(z, [0, 2, 1])
    return (
        tf.tanh(tf.matmul(z, w))
        + tf.sin(tf.matmul(z, u, transpose_b=True))
        + tf.tanh(tf.matmul(turned, v, transpose_a=True))
    )


def arrays(n, dtype="float64"):
    made = [rng.normal(size=size) for size in ((n, T, I), (I, O), (O, I), (I, O))]
    return [array.astype(dtype) for array in made]


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_derivatives_agree_with_differences_to_second_order(traced):
    x, w, u, v = arrays(3)

    def of_examples(x, w, u, v):
        return products(as_examples(x), w, u, v)

    check_derivatives(of_examples, x, w, u, v, traced=traced)
    check_derivatives(products, x, w, u, v, traced=traced)


def gradients(weights):
    def step(x):
        with tf.GradientTape() as tape:
            y = products(x, *weights)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(y * y, [0, 2]))
        total = tape.gradient(loss, list(weights))
        return tf.distribute.get_replica_context().all_reduce("sum", total)

    return step


# Shares that are subtrees of the tree over all examples.
SHARES = ([12], [6, 6], [3, 3, 6], [3, 3, 3, 3])


@both_ways
def test_replicas_have_the_bits_of_one_device(traced):
    x, *weights = arrays(12, "float32")
    weights = [tf.Variable(w) for w in weights]
    found = []
    for counts in SHARES:
        parts = shares(*cut(x, counts)) if len(counts) > 1 else examples(x)
        run = on(strategy(len(counts)), gradients(weights), traced)
        found.append([local(g)[0].tobytes() for g in run(parts)])
    assert all(one == found[0] for one in found)


@pytest.mark.parametrize("counts", [[5, 7], [1, 4, 7], [12, 0]])
def test_any_shares_have_the_sum_of_all(counts):
    x, *weights = arrays(12)
    weights = [tf.Variable(w) for w in weights]
    whole = gradients(weights)
    expected = [local(g)[0] for g in strategy(1).run(whole, (examples(x),))]
    found = strategy(len(counts)).run(whole, (shares(*cut(x, counts)),))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(local(a)[0], b, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_eager_and_traced_gradients_have_equal_bits(n):
    x, *weights = arrays(n, "float32")
    weights = [tf.Variable(w) for w in weights]

    def program(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(products(x, *weights))
        return tape.gradient(y, weights)

    for a, b in zip(program(examples(x)), tf.function(program)(examples(x)), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def test_the_gradient_is_one_product_over_examples_and_time():
    x, w, *_ = arrays(8, "float32")
    w = tf.Variable(w)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(tf.matmul(by_time(x), w), [0, 2]))
        return tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, w))

    two = strategy(2)
    plan = str(two.explain(step, (shares(x[:4], x[4:]),)))
    assert "bitwise identical to one replica: yes" in plan
    assert f"({I}, {O})" in plan
    assert f"({T}, {I}, {O})" not in plan


def test_nan_of_a_step_reaches_the_gradient():
    x, w, *_ = arrays(4)
    w, bad = tf.Variable(w), x.copy()
    bad[2, 3, 1] = np.nan
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.matmul(by_time(examples(bad)), w))
    found = tape.gradient(y, w).numpy()
    assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2]]).any()
