"""Loops over the rows of tensors: map_fn, scan, foldl, foldr."""

from __future__ import annotations

import collections
import time

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import both_ways, examples, local, shares, split, strategy

import samegrad as tf

rng = np.random.default_rng(14)
both = pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])


def wrapped(function, traced):
    return tf.function(function) if traced else function


@both
def test_each_row_has_its_result(traced):
    x = rng.normal(size=(5, 3))
    y = wrapped(lambda x: tf.map_fn(lambda row: row * tf.reduce_sum(row), x), traced)(
        tf.constant(x)
    )
    np.testing.assert_allclose(y.numpy(), x * x.sum(1, keepdims=True), rtol=1e-14)


@both
def test_structures_and_dtypes(traced):
    Pair = collections.namedtuple("Pair", "a b")
    x, n = tf.constant([1.5, 2.5]), tf.constant([[1, 2], [3, 4]])

    def fn(elem):
        assert isinstance(elem, Pair)
        return {"sum": elem.a + tf.cast(elem.b[0], "float32"), "n": [elem.b, elem.a > 2.0]}

    done = wrapped(lambda x, n: tf.map_fn(fn, Pair(x, n)), traced)(x, n)
    np.testing.assert_array_equal(done["sum"].numpy(), [2.5, 5.5])
    np.testing.assert_array_equal(done["n"][0].numpy(), n.numpy())
    np.testing.assert_array_equal(done["n"][1].numpy(), [False, True])
    assert done["n"][0].dtype == tf.int32


@both
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_accumulators(traced, reverse, given):
    x = rng.normal(size=(6, 2))
    start = np.array([0.5, -1.0])
    lines = x[::-1] if reverse else x
    state, expected = (start, []) if given else (lines[0], [lines[0]])
    for row in lines[0 if given else 1 :]:
        state = np.tanh(state) * 2 + row
        expected.append(state)
    run = wrapped(
        lambda x: tf.scan(
            lambda a, x: tf.tanh(a) * 2.0 + x, x, tf.constant(start) if given else None,
            reverse=reverse,
        ),
        traced,
    )  # fmt: skip
    np.testing.assert_allclose(run(tf.constant(x)).numpy(),
                               expected[::-1] if reverse else expected, rtol=1e-13)  # fmt: skip
    fold = tf.foldr if reverse else tf.foldl
    last = wrapped(
        lambda x: fold(lambda a, x: tf.tanh(a) * 2.0 + x, x, tf.constant(start) if given else None),
        traced,
    )(tf.constant(x))
    np.testing.assert_allclose(last.numpy(), state, rtol=1e-13)


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_derivatives_agree_with_differences_to_second_order(traced):
    x, w, s = rng.normal(size=(4, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2,))

    def cell(w):
        return lambda h, x: tf.tanh(tf.linalg.matmul([x], w)[0] + tf.sin(h) * x)

    check_derivatives(lambda x, w, s: tf.scan(cell(w), x, s), x, w, s, traced=traced)
    check_derivatives(lambda x, w, s: tf.foldr(cell(w), x, s), x, w, s, traced=traced)
    check_derivatives(
        lambda x, w: tf.map_fn(lambda r: tf.sin(r) * tf.reduce_sum(w) + r * r, x), x, w,
        traced=traced,
    )  # fmt: skip
    check_derivatives(lambda x: tf.scan(lambda a, x: a * x, x, reverse=True), x, traced=traced)


def test_traced_and_eager_loops_have_equal_bits():
    x = tf.constant(rng.normal(size=(7, 5)).astype("float32"))
    v = tf.Variable(rng.normal(size=(5, 5)).astype("float32"))

    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.scan(lambda h, r: tf.tanh(tf.matmul(h, v) + r), x, tf.ones((1, 5)))
            z = tf.map_fn(lambda r: tf.exp(r) * v[0, 0], y)
        return [y, z, *tape.gradient(z, [x, v])]

    for eager, traced in zip(program(x), tf.function(program)(x), strict=True):
        assert eager.numpy().tobytes() == traced.numpy().tobytes()


def test_a_compiled_loop_under_an_eager_tape_and_in_loops_and_branches():
    x = tf.constant(rng.normal(size=(4, 3)))
    inner = lambda x: tf.scan(lambda a, r: a * tf.sin(r), x)  # noqa: E731

    def gradient(f):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            g = tape.gradient(y, x)
        return g, outer.gradient(g, x)

    twice = tf.function(
        lambda x: tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, inner(y)), (0, x))[1]
    )
    nested = tf.function(lambda x: tf.map_fn(lambda r: tf.scan(lambda a, q: a * q, r), x))
    rows = tf.function(lambda x: tf.cond(x[0, 0] > 9.0, lambda: x, lambda: nested(inner(x))))
    for compiled, plain in [
        (tf.function(inner), inner),
        (twice, lambda x: inner(inner(x))),
        (rows, lambda x: tf.math.cumprod(inner(x), 1)),
    ]:
        for a, b in zip(gradient(compiled), gradient(plain), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)


def test_variables_that_the_rounds_write():
    v = tf.Variable(1.0, trainable=False)

    @tf.function
    def program(x):
        def fn(row):
            v.assign(v * 2.0 + row)
            return v.read_value()

        return tf.map_fn(fn, x)

    np.testing.assert_array_equal(program(tf.constant([1.0, 0.0, 3.0])).numpy(), [3.0, 6.0, 15.0])
    assert float(v) == 15.0


@both_ways
def test_time_steps_of_examples_have_the_bits_of_one_device(traced):
    x = rng.normal(size=(16, 6, 3)).astype("float32")
    v = tf.Variable(rng.normal(size=(3, 4)).astype("float32"))
    u = tf.Variable(rng.normal(size=(4, 4)).astype("float32"))

    def step(x):
        with tf.GradientTape() as tape:
            by_time = tf.transpose(x, [1, 0, 2])
            start = tf.matmul(tf.reduce_sum(x, 1), v)
            h = tf.scan(lambda h, x: tf.tanh(tf.matmul(x, v) + tf.matmul(h, u)), by_time, start)
            loss = tf.nn.compute_average_loss(tf.reduce_sum(h, [0, 2]))
        total = tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, [u, v]))
        return [*total, tf.transpose(h, [1, 0, 2])]

    found = []
    for count in (1, 2, 3):
        s = strategy(count)
        run = wrapped(lambda x, s=s: s.run(step, args=(x,)), traced)
        by_u, by_v, h = run(split(x, count))
        found.append([local(by_u)[0].tobytes(), local(by_v)[0].tobytes(),
                      np.concatenate(local(h)).tobytes()])  # fmt: skip
    assert found[0] == found[1] == found[2]


def test_rows_that_are_examples_stay_examples():
    x = rng.normal(size=(7, 3))
    expected = np.exp(x) * x.sum(1, keepdims=True)
    fn = lambda r: tf.exp(r) * tf.reduce_sum(r)  # noqa: E731
    y = tf.function(lambda x: tf.map_fn(fn, x))(examples(x))
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)
    for counts in ([4, 3], [1, 2, 4], [0, 7]):
        parts = np.split(x, np.cumsum(counts)[:-1])
        s = strategy(len(counts))

        def step(x):
            y = tf.map_fn(fn, x)
            return y, tf.nn.compute_average_loss(tf.reduce_sum(y, 1))

        y, loss = s.run(step, args=(shares(*parts),))
        for got, part in zip(local(y), parts, strict=True):
            np.testing.assert_allclose(got, np.exp(part) * part.sum(1, keepdims=True), rtol=1e-14)
        total = s.reduce("sum", loss, axis=None)
        np.testing.assert_allclose(float(total), expected.sum() / 7, rtol=1e-12)


def test_gradients_over_rows_that_are_examples():
    x, w = rng.normal(size=(6, 3)), tf.Variable(rng.normal(size=3))

    def step(x):
        with tf.GradientTape() as tape:
            losses = tf.map_fn(lambda r: tf.reduce_sum(tf.sin(r * w)), x)
            loss = tf.nn.compute_average_loss(losses)
        return tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, w))

    expected = (np.cos(x * w.numpy()) * x).mean(0)
    for counts in ([6], [3, 3], [4, 2], [5, 1, 0]):
        parts = np.split(x, np.cumsum(counts)[:-1])
        share = shares(*parts) if len(counts) > 1 else examples(x)
        found = local(strategy(len(counts)).run(step, args=(share,)))[0]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@both
def test_no_rows(traced):
    x = tf.zeros((0, 3))
    y = wrapped(lambda x: tf.map_fn(lambda r: tf.concat([r, r], 0), x), traced)(x)
    assert y.shape == (0, 6)
    last = wrapped(lambda x: tf.foldl(lambda a, r: a + r, x, tf.ones((3,))), traced)(x)
    np.testing.assert_array_equal(last.numpy(), np.ones(3))
    with pytest.raises(ValueError, match="pass initializer"):
        wrapped(lambda x: tf.scan(lambda a, r: a + r, x), traced)(x)


def test_time_grows_with_the_number_of_rounds_and_no_faster():
    @tf.function
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.scan(lambda a, r: tf.tanh(a + r), x)
        return tape.gradient(y, x)

    def seconds(n):
        x = tf.constant(rng.normal(size=(n, 50)).astype("float32"))
        program(x)
        times = []
        for _ in range(3):
            start = time.process_time()
            program(x)
            times.append(time.process_time() - start)
        return min(times)

    # Thirty-two times as many rounds; were each to copy what all of them make, a thousand times.
    assert seconds(16_000) < 200 * seconds(500)


def test_draws_differ_from_row_to_row():
    y = tf.function(lambda x: tf.map_fn(lambda r: r + tf.random.normal((2,)), x))(tf.zeros((50, 2)))
    assert len(np.unique(y.numpy())) == 100


def test_back_prop_and_vectorized_map():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.vectorized_map(lambda r: r * r, x)
        z = tf.map_fn(lambda r: r * r, x, back_prop=False)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [2.0, 4.0])
    assert tape.gradient(z, x) is None


@both
def test_wrong_calls(traced):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    run = lambda f: wrapped(f, traced)(x)  # noqa: E731
    with pytest.raises(TypeError, match=r"\[map_fn\] fn must be a function: got 3"):
        run(lambda x: tf.map_fn(3, x))
    with pytest.raises(ValueError, match="tensors with rows"):
        run(lambda x: tf.map_fn(tf.sin, x[0, 0]))
    with pytest.raises(ValueError, match="as many rows"):
        run(lambda x: tf.map_fn(lambda p: p[0], (x, x[:1])))
    with pytest.raises(TypeError, match=r"dtypes \['int32'\] asked for"):
        run(lambda x: tf.map_fn(lambda r: r, x, fn_output_signature=tf.int32))
    with pytest.raises(ValueError, match="keep its dtype and shape"):
        run(lambda x: tf.scan(lambda a, r: tf.reduce_sum(a), x))
    with pytest.raises(ValueError, match="in its structure"):
        run(lambda x: tf.foldl(lambda a, r: (a, a), x))
    y = run(lambda x: tf.map_fn(lambda r: r, x, dtype=tf.float32))
    np.testing.assert_array_equal(y.numpy(), x.numpy())
