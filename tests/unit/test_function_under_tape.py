"""Gradients through functions: a call is one node to every tape, eager or traced."""

import numpy as np
import pytest

import samegrad as tf

rng = np.random.default_rng(5)


def same_bits(a, b):
    """Whether two nested results have equal bits."""
    if isinstance(a, dict):
        return all(same_bits(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    if a is None or b is None:
        return a is b
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def four_ways(program, *, replicas=1):
    """The results of a program that has tf.functions in it: under eager tapes, with functions run
    as plain Python, inside one function, inside strategy.run."""
    results = [program()]
    tf.config.run_functions_eagerly(True)
    try:
        results.append(program())
    finally:
        tf.config.run_functions_eagerly(False)
    results.append(tf.function(program)())
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    results.append(strategy.run(program))
    results.append(tf.function(lambda: strategy.run(program))())
    for other in results[1:]:
        assert same_bits(results[0], other), (results[0], other)
    return results[0]


def weights(*shape):
    return tf.Variable(rng.normal(size=shape).astype(np.float32))


def test_a_sum_of_a_function_and_something_else_is_differentiated_as_a_whole():
    v = tf.Variable(3.0)
    f = tf.function(lambda: v * v)
    with tf.GradientTape() as t:
        loss = 2.0 * v + f()
    assert float(t.gradient(loss, v)) == 8.0
    with tf.GradientTape() as t:
        loss = f()
    assert float(t.gradient(loss, v)) == 6.0


def test_every_way_to_call_a_function_gives_the_same_bits():
    w, b = weights(17, 17), weights(17)
    x = tf.constant(rng.normal(size=(301, 17)).astype(np.float32))

    @tf.function
    def layer(h):
        return tf.tanh(tf.matmul(h, w) + b) * tf.reduce_mean(w)

    def program():
        with tf.GradientTape() as t:
            h = layer(x)
            loss = tf.reduce_mean(layer(tf.tanh(h @ w)) ** 2) + tf.reduce_sum(w * w) * 0.1
        return t.gradient(loss, [w, b])

    gradients = four_ways(program)
    assert all(np.abs(g.numpy()).max() > 0 for g in gradients)


def test_the_gradient_of_a_call_is_summed_inside_before_it_is_added_to_other_uses():
    # In float32 (1e8 - 1e8) + 1 is 1, but (1e8 + 1) - 1e8 is 0.
    x = tf.Variable(1.0)

    @tf.function
    def inner():
        return 1e8 * x + x * -1e8

    def program():
        with tf.GradientTape() as t:
            loss = inner() + x
        return t.gradient(loss, x)

    assert float(four_ways(program)) == 1.0


def test_second_derivatives_have_the_same_bits_and_are_right():
    w = tf.Variable(rng.normal(size=(7, 5)))
    x = tf.constant(rng.normal(size=(13, 7)))

    @tf.function
    def f(x):
        return tf.reduce_sum(tf.tanh(tf.matmul(x, w)) ** 3)

    def first():
        with tf.GradientTape() as t:
            y = f(x) + tf.reduce_sum(w * w * w)
        return t.gradient(y, w)

    def program():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as t:
                y = f(x) + tf.reduce_sum(w * w * w)
            g = t.gradient(y, w)
            loss = tf.reduce_sum(g * g)
        return outer.gradient(loss, w)

    second = four_ways(program).numpy()
    start, step = w.numpy(), 1e-6
    for place in [(0, 0), (3, 2), (6, 4)]:
        found = []
        for sign in (1, -1):
            moved = start.copy()
            moved[place] += sign * step
            w.assign(moved)
            found.append(float((first().numpy() ** 2).sum()))
        w.assign(start)
        assert np.isclose(second[place], (found[0] - found[1]) / (2 * step), rtol=1e-5)


def test_a_third_derivative():
    f = tf.function(lambda x: x**4)
    x = tf.Variable(2.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        with tf.GradientTape() as c:
            y = f(x)
        first = c.gradient(y, x)
        second = b.gradient(first, x)
    assert float(a.gradient(second, x)) == 48.0


def test_a_method_of_a_model_in_an_eager_loop_learns_as_inside_one_function():
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.hidden = tf.keras.layers.Dense(9, activation="relu")
            self.out = tf.keras.layers.Dense(1)

        @tf.function
        def call(self, x):
            return self.out(self.hidden(x))

    x = rng.normal(size=(37, 5)).astype(np.float32)
    y = rng.normal(size=(37, 1)).astype(np.float32)

    def train(wrap):
        tf.random.set_seed(3)
        model, optimizer = Model(), tf.keras.optimizers.SGD(0.1)

        def step(x, y):
            with tf.GradientTape() as t:
                loss = tf.reduce_mean((model(x) - y) ** 2)
            gradients = t.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        run = wrap(step)
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(37).repeat(7)
        losses = [float(run(*batch)) for batch in batches]
        assert losses[-1] < losses[0]
        return [v.numpy() for v in model.trainable_variables]

    assert same_bits(train(lambda step: step), train(tf.function))


@pytest.mark.parametrize("make", [lambda x: tf.constant(x), lambda x: tf.Variable(x)])
def test_arguments_and_tensors_found_outside_are_sources(make):
    x, z = make([1.0, 2.0]), make([5.0, 7.0])
    f = tf.function(lambda a: tf.reduce_sum(a * a * z))
    for _ in range(2):
        with tf.GradientTape() as t:
            t.watch([x, z])
            y = f(x) + tf.reduce_sum(z)
        dx, dz = t.gradient(y, [x, z])
        assert dx.numpy().tolist() == [10.0, 28.0] and dz.numpy().tolist() == [2.0, 5.0]


def test_equal_functions_find_their_own_tensors():
    x, z = tf.constant([3.0]), tf.constant([3.0])
    fs = [tf.function(lambda c=c: tf.reduce_sum(c * c)) for c in (x, z)]
    for i, c in enumerate((x, z)):
        with tf.GradientTape() as t:
            t.watch(c)
            y = fs[i]()
        assert t.gradient(y, c).numpy().tolist() == [6.0]


def test_one_value_given_twice():
    def program():
        x = tf.constant(rng_values)
        f = tf.function(lambda a, b: tf.reduce_sum(a * tf.sin(b) + b * b))
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(x, x) + tf.reduce_sum(tf.exp(x))
        return t.gradient(y, x)

    rng_values = rng.normal(size=93).astype(np.float32)
    four_ways(program)


def test_results_of_any_structure():
    x = tf.Variable(3.0)

    @tf.function
    def f(y):
        return {"a": x * y, "n": None, "k": 7, "same": y, "pair": (x, [y * y])}

    y = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as t:
        t.watch(y)
        r = f(y)
    assert r["n"] is None and r["k"] == 7
    assert float(t.gradient(r["a"], x)) == 2.0
    assert float(t.gradient(r["same"], y)) == 1.0
    assert float(t.gradient(r["pair"][0], x)) == 1.0
    assert float(t.gradient(r["pair"][1][0], y)) == 4.0
    assert t.gradient(r["pair"][1][0], x) is None


def test_control_flow_functions_in_functions_and_tapes_inside():
    w = tf.Variable(rng.normal(size=(5, 5)).astype(np.float32) * 0.3)
    x = tf.constant(rng.normal(size=(23, 5)).astype(np.float32))

    @tf.function
    def cell(h):
        if tf.reduce_sum(h) > 0.0:
            return tf.tanh(h @ w)
        return tf.sin(h @ w) * w[0, 0]

    @tf.function
    def net(h):
        i = 0
        while i < 4:
            h = cell(h) + h @ w
            i += 1
        with tf.GradientTape() as inside:
            inside.watch(h)
            energy = tf.reduce_sum(cell(h) ** 2)
        return h + inside.gradient(energy, h)

    def program():
        with tf.GradientTape() as t:
            loss = tf.reduce_sum(net(x) ** 2) + tf.reduce_sum(cell(x))
        return t.gradient(loss, w)

    start = w.numpy()
    gradient = tf.function(program)().numpy()
    assert same_bits(gradient, program())
    values = []
    for sign in (1, -1):
        moved = start.copy()
        moved[1, 2] += sign * 1e-3
        w.assign(moved)
        values.append(float(tf.reduce_sum(net(x) ** 2) + tf.reduce_sum(cell(x))))
    assert np.isclose(gradient[1, 2], (values[0] - values[1]) / 2e-3, rtol=2e-2)


def test_jacobians_go_through_functions():
    w = tf.Variable(rng.normal(size=(3, 4)))
    x = tf.constant(rng.normal(size=(6, 3)))
    f = tf.function(lambda x: tf.sin(x @ w))

    def program():
        with tf.GradientTape(persistent=True) as t:
            t.watch(x)
            y = f(x)
        return t.jacobian(y, w), t.batch_jacobian(y, x)

    whole, rows = program()
    again = tf.function(program)()
    assert same_bits([whole, rows], list(again))
    expected = np.cos(x.numpy() @ w.numpy())[:, :, None] * w.numpy().T[None]
    assert np.allclose(rows.numpy(), expected)


def test_examples_that_are_sliced_and_joined_in_a_function():
    w = tf.Variable(rng.normal(size=(4,)).astype(np.float32))
    data = tf.data.Dataset.from_tensor_slices(rng.normal(size=(31, 4)).astype(np.float32))

    @tf.function
    def pairs(x):
        return tf.concat([x[1:], x[:-1], x], axis=0) * w

    for x in data.batch(11):

        def program(x):
            with tf.GradientTape() as t:
                loss = tf.reduce_sum(tf.sin(pairs(x)))
            return t.gradient(loss, w)

        assert same_bits(program(x), tf.function(program)(x))


def test_fixed_sizes_and_batches_of_other_sizes():
    w = tf.Variable(rng.normal(size=(3,)).astype(np.float32))

    @tf.function
    def f(x):
        return tf.reduce_sum(x * w) / float(x.shape[0])

    for n in (5, 1, 8):
        x = tf.constant(np.ones((n, 3), np.float32))
        with tf.GradientTape() as t:
            y = f(x)
        assert np.allclose(t.gradient(y, w).numpy(), 1.0)


def test_recursion():
    @tf.function
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    x = tf.Variable(2.0)
    with tf.GradientTape() as t:
        y = power(x, 5)
    assert float(t.gradient(y, x)) == 80.0


def test_tensors_of_no_examples_and_large_ones():
    w = weights(6)
    f = tf.function(lambda x: tf.reduce_sum(tf.tanh(x * w), axis=[1, 2]))
    for n in (0, 1, 7):
        x = tf.constant(rng.normal(size=(n, 1201, 6)).astype(np.float32))

        def program(x):
            with tf.GradientTape() as t:
                y = tf.reduce_sum(f(x))
            return t.gradient(y, w)

        assert same_bits(program(x), tf.function(program)(x))
