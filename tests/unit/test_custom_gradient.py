"""Gradients that the program gives itself, and values computed again instead of kept."""

from __future__ import annotations

import re

import numpy as np
import pytest
from derivatives import check_derivatives
from replica_values import both_ways, local, split, strategy

import samegrad as tf
from samegrad import _core

both = pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])


def wrapped(function, traced):
    return tf.function(function) if traced else function


@tf.custom_gradient
def tripled(x):
    """The square, with three times its gradient."""

    def gradient(upstream):
        return upstream * 6.0 * x

    return x * x, gradient


def gradient_of(function, x, order=1):
    """The derivative of some order of the sum of a function's results."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x) if order == 1 else gradient_of(function, x, order - 1)
    return tape.gradient(y, x)


@both
def test_the_gradient_is_that_of_the_gradient_function(traced):
    x = tf.constant([1.0, 2.0, 5.0])
    found = wrapped(lambda x: (tripled(x), gradient_of(tripled, x)), traced)(x)
    np.testing.assert_array_equal(found[0].numpy(), [1.0, 4.0, 25.0])
    np.testing.assert_array_equal(found[1].numpy(), [6.0, 12.0, 30.0])


@both
def test_the_second_derivative_is_that_of_what_the_gradient_function_computes(traced):
    x = tf.constant([1.0, 2.0])
    found = wrapped(lambda x: gradient_of(tripled, x, 2), traced)(x)
    np.testing.assert_array_equal(found.numpy(), [6.0, 6.0])


@both
def test_derivatives_of_functions_whose_gradients_call_each_other(traced):
    @tf.custom_gradient
    def sine(x):
        return tf.sin(x), lambda upstream: upstream * cosine(x)

    @tf.custom_gradient
    def cosine(x):
        return tf.cos(x), lambda upstream: -upstream * sine(x)

    x = tf.constant(0.3, "float64")
    expected = (np.cos(0.3), -np.sin(0.3), -np.cos(0.3), np.sin(0.3))
    for order, value in enumerate(expected, 1):
        found = wrapped(lambda x, order=order: gradient_of(sine, x, order), traced)(x)
        assert abs(float(found) - value) < 1e-15


def test_functions_whose_gradients_call_each_other_are_traced_so_deep_and_no_deeper():
    @tf.custom_gradient
    def exponential(x):
        return tf.exp(x), lambda upstream: upstream * exponential(x)

    x = tf.constant(0.0)
    six = tf.function(lambda x: gradient_of(exponential, x, 6))
    assert float(six(x)) == 1.0
    with pytest.raises(NotImplementedError, match="6 deep"):
        tf.function(lambda x: gradient_of(exponential, x, 7))(x)
    assert float(gradient_of(exponential, x, 7)) == 1.0


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_right_gradients_agree_with_differences_to_second_order(traced):
    @tf.custom_gradient
    def joined(x, y):
        e = tf.exp(x)

        def gradient(by_sum, by_product):
            return by_sum + by_product * y * e, by_sum + by_product * e

        return (x + y, e * y), gradient

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    check_derivatives(lambda x, y: tf.tanh(joined(x, y)[0] * joined(x, y)[1]), x, y, traced=traced)


@both
def test_results_that_nobody_uses_have_zeros_as_their_gradients(traced):
    @tf.custom_gradient
    def two(x):
        def gradient(first, second):
            return first + 10.0 * (second + 1.0)

        return {"a": x + 1.0, "b": [x + 2.0]}, gradient

    found = wrapped(lambda x: gradient_of(lambda x: two(x)["a"], x), traced)(tf.constant(1.0))
    assert float(found) == 11.0


@both
def test_structures_none_and_integers_among_arguments(traced):
    @tf.custom_gradient
    def picked(pair, index, scale, *, name=None):
        def gradient(upstream):
            assert name == "it"
            return [upstream * scale, None], None, None

        return pair[0] * scale + tf.cast(index, "float32"), gradient

    def program(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = picked([x, y], tf.constant(2), 3.0, name="it")
        return tape.gradient(z, [x, y], unconnected_gradients="zero")

    found = wrapped(program, traced)(tf.constant([1.0, 2.0]), tf.constant(4.0))
    np.testing.assert_array_equal(found[0].numpy(), [3.0, 3.0])
    assert float(found[1]) == 0.0


@both
def test_variables_inside_get_gradients_by_name(traced):
    v, w = tf.Variable(2.0), tf.Variable([1.0, 3.0])
    frozen = tf.Variable(7.0, trainable=False)
    seen = []

    @tf.custom_gradient
    def scaled(x):
        def gradient(upstream, variables=None):
            seen.append(variables)
            by_v, by_w = tf.reduce_sum(upstream * x * w), upstream * x * v
            of = {id(v): by_v * 10.0, id(w): by_w * 100.0}
            return upstream * v * w, [of[id(one)] for one in variables]

        return x * v * w * (frozen / 7.0), gradient

    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        return tape.gradient(y, [x, v, w])

    by_x, by_v, by_w = wrapped(program, traced)(tf.constant([1.0, 2.0]))
    np.testing.assert_array_equal(by_x.numpy(), [2.0, 6.0])
    assert float(by_v) == 70.0
    np.testing.assert_array_equal(by_w.numpy(), [200.0, 400.0])
    assert all(one is v or one is w for one in seen[-1]) and len(seen[-1]) == 2


def test_a_variable_as_an_argument_is_an_argument():
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tripled(v)
    assert float(tape.gradient(y, v)) == 12.0


def test_a_persistent_tape_and_several_tapes_call_it_each_time():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as outer, tf.GradientTape() as inner:
        outer.watch(x)
        inner.watch(x)
        y = tripled(x)
        z = y * 2.0
    assert float(inner.gradient(y, x)) == 12.0
    assert float(outer.gradient(z, x)) == 24.0
    assert float(outer.gradient(y, x)) == 12.0


def test_a_compiled_function_under_an_eager_tape():
    f = tf.function(lambda x: tripled(x) * 2.0)
    x = tf.constant([1.0, 3.0])
    np.testing.assert_array_equal(gradient_of(f, x).numpy(), [12.0, 36.0])
    np.testing.assert_array_equal(gradient_of(f, x, 2).numpy(), [12.0, 12.0])


@both
def test_inside_branches_and_loops(traced):
    def program(x):
        def rounds(x):
            step = lambda i, y: (i + 1, tripled(y))  # noqa: E731
            y = tf.while_loop(lambda i, y: i < 2, step, (tf.constant(0), x))[1]
            return tf.cond(y > 0.0, lambda: tripled(y), lambda: y)

        return gradient_of(rounds, x), gradient_of(rounds, x, 2)

    first, second = wrapped(program, traced)(tf.constant(1.5, "float64"))
    # y -> y ** 2 three times, each derivative three times as large: 27 * 8 * x ** 7.
    np.testing.assert_allclose(float(first), 216 * 1.5**7, rtol=1e-14)
    # Of 6 * x * 6 * x² * 6 * x⁴ the factors x² and x⁴ are results with rules of their own.
    x = 1.5
    a, b, c = 6 * x, 6 * x**2, 6 * x**4
    expected = 6 * b * c + a * 6 * (6 * x) * c + a * b * 6 * (6 * x**2) * (6 * x)
    np.testing.assert_allclose(float(second), expected, rtol=1e-14)


@both_ways
@pytest.mark.parametrize("replicas", [2, 3])
def test_replicas_have_the_bits_of_one_device(replicas, traced):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(16 * replicas, 5)).astype("float32")
    v = tf.Variable(rng.normal(size=(5, 3)).astype("float32"))

    @tf.custom_gradient
    def layer(x):
        y = tf.tanh(x @ v)

        def gradient(upstream, variables=None):
            inner = upstream * (1.0 - y * y)
            return tf.matmul(inner, v, transpose_b=True), [
                tf.clip_by_value(tf.matmul(x, inner, transpose_a=True), -1e3, 1e3)
            ]

        return y, gradient

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(tripled(layer(x)), 1))
        context = tf.distribute.get_replica_context()
        return context.all_reduce("sum", tape.gradient(loss, v))

    found = {}
    for count in (1, replicas):
        s = strategy(count)
        run = lambda x, s=s: s.run(step, args=(x,))  # noqa: E731
        found[count] = local(wrapped(run, traced)(split(x, count)))[0]
    # The gradient function makes no linear function of sums: only its own sums are whole.
    np.testing.assert_allclose(found[1], found[replicas], rtol=1e-5, atol=1e-6)
    assert np.abs(found[1]).max() > 0


def test_a_rule_that_is_linear_has_equal_bits_on_replicas():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(37, 5)).astype("float32")
    v = tf.Variable(rng.normal(size=(5, 3)).astype("float32"))

    def step(x):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tripled(tf.tanh(x @ v)), 1)
            loss = tf.nn.compute_average_loss(y)
        return tf.distribute.get_replica_context().all_reduce("sum", tape.gradient(loss, v))

    found = []
    for count in (1, 2, 3):
        s = tf.distribute.MirroredStrategy(replicas=count)
        padded = x[:32]
        found.append(local(s.run(step, args=(split(padded, count),)))[0].tobytes())
    assert found[0] == found[1] == found[2]


def test_methods():
    class Model:
        factor = 2.0

        @tf.custom_gradient
        def call(self, x):
            return x * self.factor, lambda upstream: upstream * 5.0

    x = tf.constant(1.0)
    assert float(gradient_of(Model().call, x)) == 5.0


def test_without_a_tape_only_the_function_runs():
    @tf.custom_gradient
    def f(x):
        def gradient(upstream):
            raise AssertionError

        return x * 2.0, gradient

    assert float(f(tf.constant(2.0))) == 4.0
    assert f.__name__ == "f"


WRONG = {
    "many": (lambda x: (x, lambda u: (u, u)), ValueError, "one gradient for each argument, 1"),
    "none": (lambda x: (x, lambda u: []), ValueError, "got 0"),
    "shape": (lambda x: (x, lambda u: tf.reduce_sum(u)), ValueError, r"shape \(2,\): got \(\)"),
    "dtype": (lambda x: (x, lambda u: tf.cast(u, "float64")), TypeError, "float64"),
    "own": (lambda x: (x, lambda u: {}["no"]), (KeyError, RuntimeError), "no"),
}


@both
@pytest.mark.parametrize("wrong", list(WRONG))
def test_wrong_gradients_are_told_when_they_are_wanted(wrong, traced):
    function, kind, text = WRONG[wrong]
    f = tf.custom_gradient(function)
    x = tf.constant([1.0, 2.0])
    assert wrapped(lambda x: f(x), traced)(x).shape == (2,)
    with pytest.raises(kind, match=text):
        wrapped(lambda x: gradient_of(f, x), traced)(x)


def test_wrong_functions_are_told_at_once():
    x, v = tf.constant(1.0), tf.Variable(1.0)
    with pytest.raises(TypeError, match="f must be a function: got 3"):
        tf.custom_gradient(3)
    with pytest.raises(TypeError, match="must return its result and a gradient function"):
        tf.custom_gradient(lambda x: x)(x)
    reads = tf.custom_gradient(lambda x: (x * v, lambda u: u))
    with tf.GradientTape(), pytest.raises(TypeError, match="must take variables=None"):
        reads(x)
    pair = tf.custom_gradient(lambda x: (x * v, lambda u, variables=None: (u, [])))
    with tf.GradientTape() as tape:
        y = pair(x)
    with pytest.raises(ValueError, match="for each variable, 1: got 0"):
        tape.gradient(y, v)


def test_a_gradient_function_must_not_assign_in_a_function():
    v = tf.Variable(1.0, trainable=False)

    @tf.custom_gradient
    def f(x):
        def gradient(upstream):
            v.assign(2.0)
            return upstream

        return x * 1.0, gradient

    with pytest.raises(RuntimeError, match="must not assign variables"):
        tf.function(lambda x: gradient_of(f, x))(tf.constant(1.0))


def test_programs_are_shared_and_explained():
    f = tf.function(lambda x: gradient_of(tripled, x))
    f(tf.constant([1.0, 2.0]))
    assert "gradient_by" not in str(f.explain(tf.constant([1.0, 2.0])))


# ---- recompute_grad ----


@both
def test_recomputed_gradients_have_the_bits_of_kept_ones(traced):
    rng = np.random.default_rng(3)
    v = tf.Variable(rng.normal(size=(7, 7)).astype("float32"))
    x = tf.constant(rng.normal(size=(9, 7)).astype("float32"))

    def block(x):
        return tf.tanh(tf.exp(tf.tanh(x @ v)) @ v)

    def program(f):
        def run(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(f(f(x)))
            return [y, *tape.gradient(y, [x, v])]

        return [part.numpy().tobytes() for part in wrapped(run, traced)(x)]

    # Both are one node to the tape: what flows into v is summed inside each call first.
    assert program(tf.function(block)) == program(tf.recompute_grad(block))


@pytest.mark.parametrize("traced", [False, True], ids=["eager", "function"])
def test_recomputed_derivatives_agree_with_differences_to_second_order(traced):
    x = np.random.default_rng(4).normal(size=(3, 2))
    f = tf.recompute_grad(lambda x, y: tf.sin(x * y) * tf.exp(y))
    check_derivatives(f, x, x[::-1].copy(), traced=traced)


@both
def test_draws_are_the_same_in_both_runs(traced):
    @tf.recompute_grad
    def noisy(x):
        return x * tf.random.normal((1000,))

    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            tf.random.normal((3,))
            y = noisy(x)
            z = y + 0.0 * tf.random.normal((1000,))
        return y, tape.gradient(z, x)

    x = tf.ones((1000,))
    y, gradient = wrapped(program, traced)(x)
    np.testing.assert_array_equal(y.numpy(), gradient.numpy())


def test_blocks_in_blocks_and_in_loops():
    inner = tf.recompute_grad(lambda x: tf.sin(x) * x)
    outer = tf.recompute_grad(lambda x: inner(inner(x)))

    def plain(x):
        y = tf.sin(x) * x
        return tf.sin(y) * y

    def looped(f):
        def run(x):
            return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, f(y)), (0, x))[1]

        return tf.function(lambda x: gradient_of(run, x))

    x = tf.constant([0.5, 0.9], "float64")
    np.testing.assert_allclose(looped(outer)(x).numpy(), looped(plain)(x).numpy(), rtol=1e-13)
    with pytest.raises(TypeError, match="f must be a function"):
        tf.recompute_grad(None)


def test_only_arguments_and_results_are_kept_for_the_gradient():
    x = tf.constant(np.ones(1 << 18, np.float32))

    def block(x):
        for _ in range(6):
            x = tf.tanh(tf.cumsum(x) * 1e-3)
        return x

    def arrays_kept(f):
        with tf.GradientTape() as tape:
            tape.watch(x)
            before = _core.live_bytes() - _core.idle_bytes()
            y = f(f(f(x)))
            kept = _core.live_bytes() - _core.idle_bytes() - before
        return kept / 4 / (1 << 18), tape.gradient(y, x).numpy()

    kept, gradient = arrays_kept(block)
    recomputed, same = arrays_kept(tf.recompute_grad(block))
    assert kept > 50 and recomputed < 3.5
    np.testing.assert_array_equal(gradient, same)


def test_a_second_run_is_not_merged_with_the_first_one():
    def scans(f):
        @tf.function
        def program(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(f(x))
            return y, tape.gradient(y, x)

        plan = str(program.explain(tf.constant(np.ones(100))))
        return plan.count(" cumsum ")

    # The inner sum is what the derivative of the sine needs.
    block = lambda x: tf.cumsum(tf.sin(tf.cumsum(x)))  # noqa: E731
    assert scans(block) == 3
    assert scans(tf.recompute_grad(block)) == 4


def test_a_compiled_step_that_computes_again_needs_less_memory() -> None:
    weights = [tf.Variable(np.eye(64, dtype=np.float32) / 2) for _ in range(16)]

    def block(some):
        def run(x):
            for w in some:
                x = tf.tanh(tf.matmul(x, w))
                x = x - tf.reduce_mean(x, 0)  # of all rows: nothing goes tile by tile
            return x

        return run

    def gradients(x, wrap):
        with tf.GradientTape() as tape:
            y = x
            for k in range(0, 16, 4):
                y = wrap(block(weights[k : k + 4]))(y)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, weights)

    def bytes_between_steps(step, x):
        text = str(step.explain(x))
        amount, unit = re.search(r"memory between steps: ([0-9.]+) (\w+)", text).groups()
        return float(amount) * {"B": 1, "KiB": 2**10, "MiB": 2**20}[unit]

    x = tf.constant(np.random.default_rng(0).normal(size=(512, 64)).astype(np.float32))
    kept = tf.function(lambda x: gradients(x, lambda f: f))
    again = tf.function(lambda x: gradients(x, tf.recompute_grad))
    for a, b in zip(kept(x), again(x), strict=True):
        np.testing.assert_array_equal(a, b)
    assert bytes_between_steps(again, x) < 0.6 * bytes_between_steps(kept, x)
