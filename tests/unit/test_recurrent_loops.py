"""Recurrent layers: weights that each round of a loop multiplies with, and their gradients."""

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import both_ways, cut, examples, local, on, shares, strategy

import samegrad as tf

rng = np.random.default_rng(21)


def lstm(z, u, start):
    """All states of an LSTM, of the inputs' part of its gates, [time, batch, 4 units]."""

    def cell(state, z):
        h, c = state
        i, f, g, o = tf.split(z + tf.matmul(h, u), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    return tf.scan(cell, z, (start, start))[0]


def gru(z, u, start):
    """All states of a GRU, [time, batch, 3 units]: one matrix, of which rounds use two parts."""
    units = start.shape[1]

    def cell(h, z):
        gates = tf.sigmoid(z[:, : 2 * units] + tf.matmul(h, u[:, : 2 * units]))
        r, a = tf.split(gates, 2, axis=1)
        new = tf.tanh(z[:, 2 * units :] + tf.matmul(r * h, u[:, 2 * units :]))
        return a * h + (1.0 - a) * new

    return tf.scan(cell, z, start)


LAYERS = pytest.mark.parametrize(("layer", "gates"), [(lstm, 4), (gru, 3)], ids=["lstm", "gru"])


def recurrent(layer, x, w, u):
    z = tf.matmul(tf.transpose(x, [1, 0, 2]), w)
    return layer(z, u, tf.zeros_like(z[0, :, : u.shape[0]]))


def weights_of(columns, units, gates, dtype):
    sizes = ((columns, gates * units), (units, gates * units))
    return [(rng.normal(size=size) / np.sqrt(units)).astype(dtype) for size in sizes]


def gradients(layer, weights):
    def step(x):
        with tf.GradientTape() as tape:
            h = recurrent(layer, x, *weights)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(h, [0, 2]))
        total = tape.gradient(loss, weights)
        return [*tf.distribute.get_replica_context().all_reduce("sum", total), h[-1]]

    return step


# Shares that are subtrees of the tree over all examples.
SHARES = ([12], [6, 6], [3, 3, 6], [3, 3, 3, 3])


# Sums over rounds that stay in a cache beside the loop, and larger ones.
@pytest.mark.parametrize("units", [8, 96])
@LAYERS
@both_ways
def test_replicas_have_the_bits_of_one_device(layer, gates, units, traced):
    x = rng.normal(size=(12, 5, 3)).astype("float32")
    weights = [tf.Variable(w) for w in weights_of(3, units, gates, "float32")]
    found = []
    for counts in SHARES:
        parts = shares(*cut(x, counts)) if len(counts) > 1 else examples(x)
        *sums, h = on(strategy(len(counts)), gradients(layer, weights), traced)(parts)
        found.append([local(g)[0].tobytes() for g in sums])
        found[-1].append(np.concatenate(local(h)).tobytes())
    assert all(one == found[0] for one in found)


# Weights inside of loops over examples, and weights that leave them because they fill a cache.
@pytest.mark.parametrize("units", [7, 64, 600])
@pytest.mark.parametrize("counts", [[3], [40], [3, 6], [0, 3]], ids=str)
def test_eager_and_traced_loops_have_equal_bits(units, counts):
    x = rng.normal(size=(sum(counts), 4, 3)).astype("float32")
    weights = [tf.Variable(w) for w in weights_of(3, units, 4, "float32")]
    parts = shares(*cut(x, counts)) if len(counts) > 1 else examples(x)
    found = [
        on(strategy(len(counts)), gradients(lstm, weights), traced)(parts)
        for traced in (False, True)
    ]
    if len(counts) == 1:  # each operation by itself
        with tf.GradientTape() as tape:
            h = recurrent(lstm, parts, *weights)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(h, [0, 2]))
        found.append([*tape.gradient(loss, weights), h[-1]])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert [p.tobytes() for p in local(a)] == [p.tobytes() for p in local(b)]


# Rounds of more rows than are packed at a time, of one example, and of none on some replicas.
@pytest.mark.parametrize("counts", [[1], [1000], [7, 0, 4], [300, 300], [0, 600]], ids=str)
def test_sums_over_rounds_are_those_of_eager_rounds_for_any_shares(counts):
    x = rng.normal(size=(sum(counts), 5, 3)).astype("float32")
    weights = [tf.Variable(w) for w in weights_of(3, 96, 4, "float32")]
    parts = shares(*cut(x, counts)) if len(counts) > 1 else examples(x)

    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(recurrent(lstm, x, *weights))
        return tape.gradient(y, weights)  # each replica's own

    for function in (step, gradients(lstm, weights)):
        eager, traced = (on(strategy(len(counts)), function, way)(parts) for way in (False, True))
        for a, b in zip(eager, traced, strict=True):
            assert [p.tobytes() for p in local(a)] == [p.tobytes() for p in local(b)]


@pytest.mark.parametrize(("units", "loops"), [(8, 2), (96, 3)])
def test_large_gradients_of_rounds_are_summed_after_the_loop(units, loops):
    x = rng.normal(size=(4, 5, 3)).astype("float32")
    weights = [tf.Variable(w) for w in weights_of(3, units, 4, "float32")]
    plan = str(strategy(2).explain(gradients(lstm, weights), (shares(x[:2], x[2:]),)))
    assert plan.count(" replay ") == loops


@pytest.mark.parametrize("units", [5, 600])
def test_plain_arrays_have_the_bits_of_operations_one_at_a_time(units):
    x = tf.constant(rng.normal(size=(40, 3, 2)).astype("float32"))
    weights = [tf.Variable(w) for w in weights_of(2, units, 4, "float32")]

    def program(x):
        with tf.GradientTape() as tape:
            h = recurrent(lstm, x, *weights)
            y = tf.reduce_sum(h * h)
        return [h, *tape.gradient(y, weights)]

    for a, b in zip(program(x), tf.function(program)(x), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


@LAYERS
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_derivatives_agree_with_differences_to_second_order(layer, gates, traced):
    x, (w, u) = rng.normal(size=(2, 3, 2)), weights_of(2, 2, gates, "float64")
    check_derivatives(lambda x, w, u: recurrent(layer, x, w, u), x, w, u, traced=traced)


def test_each_run_multiplies_with_the_weights_that_it_is_given():
    x = rng.normal(size=(4, 6, 3))
    (w, u), (v, t) = weights_of(3, 4, 4, "float64"), weights_of(3, 4, 4, "float64")
    run = tf.function(lambda x, w, u: recurrent(lstm, x, w, u))
    first = run(examples(x), tf.constant(w), tf.constant(u)).numpy()
    other = run(examples(x), tf.constant(v), tf.constant(t)).numpy()
    assert run(examples(x), tf.constant(w), tf.constant(u)).numpy().tobytes() == first.tobytes()
    np.testing.assert_array_equal(other, recurrent(lstm, examples(x), v, t).numpy())
    assert not np.array_equal(first, other)


def test_weights_that_a_round_changes_are_those_of_that_round():
    h, w = rng.normal(size=(6, 3)), rng.normal(size=(3, 3)) / 2

    @tf.function
    def program(h, w):
        return tf.while_loop(
            lambda i, h, w: i < 4, lambda i, h, w: (i + 1, tf.tanh(h @ w), w * 0.5), (0, h, w)
        )[1]

    found = program(examples(h), tf.constant(w)).numpy()
    for _ in range(4):
        h, w = np.tanh(h @ w), w * 0.5
    np.testing.assert_allclose(found, h, rtol=1e-12)


def test_replicas_that_make_other_numbers_of_rounds():
    parts, w = [rng.normal(size=(n, 3)) for n in (2, 5, 3)], rng.normal(size=(3, 3)) / 2

    def step(x):
        rounds = tf.shape(x)[0]
        return tf.while_loop(lambda i, h: i < rounds, lambda i, h: (i + 1, tf.tanh(h @ w)), (0, x))[
            1
        ]

    found = on(strategy(3), step, True)(shares(*parts))
    for got, h in zip(local(found), parts, strict=True):
        for _ in range(len(h)):
            h = np.tanh(h @ w)
        np.testing.assert_allclose(got, h, rtol=1e-12)


def test_a_number_of_rounds_that_the_data_decide():
    x, w = (
        rng.normal(size=(7, 96)).astype("float32"),
        tf.Variable(weights_of(1, 96, 1, "float32")[1]),
    )

    def program(x, limit):
        with tf.GradientTape() as tape:
            h = tf.while_loop(
                lambda i, h: tf.logical_and(i < 50, tf.reduce_max(h) > limit),
                lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))),
                (tf.constant(0), x),
            )[1]
            y = tf.reduce_sum(h)
        return h, tape.gradient(y, w, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    run = tf.function(program)
    for limit in (100.0, 0.9, 0.2, 0.01):  # none, one, more rounds
        limit = tf.constant(np.float32(limit))
        for a, b in zip(program(examples(x), limit), run(examples(x), limit), strict=True):
            # After no round the gradient is zero, of any sign.
            assert (a.numpy() + 0.0).tobytes() == (b.numpy() + 0.0).tobytes()


def test_sequences_that_end_early_keep_their_last_state():
    x, lengths = rng.normal(size=(9, 6, 3)).astype("float32"), rng.integers(0, 7, size=9)
    w, u = (tf.Variable(v) for v in weights_of(3, 96, 1, "float32"))

    def program(x, lengths):
        def cell(h, step):
            z, place = step
            new = tf.tanh(z + tf.matmul(h, u))
            return tf.where(tf.expand_dims(place < lengths, 1), new, h)

        with tf.GradientTape() as tape:
            z = tf.matmul(tf.transpose(x, [1, 0, 2]), w)
            h = tf.foldl(lambda h, s: cell(h, s), (z, tf.range(6)), tf.zeros_like(z[0]))
            y = tf.reduce_sum(h)
        return [h, *tape.gradient(y, [w, u])]

    given = examples(x), examples(lengths.astype("int32"))
    for a, b in zip(program(*given), tf.function(program)(*given), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
    assert not program(*given)[0].numpy()[lengths == 0].any()


def test_second_derivatives_of_wide_weights_are_those_of_rounds_written_out():
    x = rng.normal(size=(4, 3, 2))
    weights = [tf.Variable(w) for w in weights_of(2, 96, 4, "float64")]

    def program(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(recurrent(lstm, x, *weights) ** 2)
            gradients = tape.gradient(y, weights)
            total = y + sum(tf.reduce_sum(tf.sin(g)) for g in gradients)
        return outer.gradient(total, weights)

    for a, b in zip(program(examples(x)), tf.function(program)(examples(x)), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9)


def test_nan_of_one_round_reaches_the_gradient():
    x = rng.normal(size=(5, 4, 3))
    x[2, 1, 0] = np.nan
    weights = [tf.Variable(w) for w in weights_of(3, 96, 4, "float64")]
    u = tf.function(gradients(lstm, weights))
    assert np.isnan(strategy(1).run(u, (examples(x),))[1].numpy()).any()
