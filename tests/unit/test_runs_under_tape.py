"""What surrounds a function under a tape: variables that change, draws, effects, replicas."""

import numpy as np
import pytest

import samegrad as tf

rng = np.random.default_rng(6)


def same_bits(a, b):
    """Whether two results have equal bits."""
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_what_a_call_read_is_kept_though_the_variable_changes():
    v = tf.Variable([3.0, 5.0])
    f = tf.function(lambda: tf.reduce_sum(v * v))
    with tf.GradientTape() as t:
        loss = f()
        v.assign([100.0, 100.0])
    assert t.gradient(loss, v).numpy().tolist() == [6.0, 10.0]


def test_a_function_that_assigns_does_so_once_and_later_reads_count():
    v, count = tf.Variable(3.0), tf.Variable(0)

    @tf.function
    def f(x):
        count.assign_add(1)
        y = x * v
        v.assign_add(1.0)
        return y + v * v

    with tf.GradientTape() as t:
        loss = f(tf.constant(2.0)) + v
    assert (float(loss), int(count), float(v)) == (26.0, 1, 4.0)
    # x, then 2v of the value read after the assignment, then the read outside.
    assert float(t.gradient(loss, v)) == 2.0 + 8.0 + 1.0
    assert (int(count), float(v)) == (1, 4.0)


def test_the_backward_draws_what_the_forward_drew():
    x = tf.Variable(np.ones((101, 11), np.float32))
    f = tf.function(lambda: tf.nn.dropout(x * 1.0, 0.5) * tf.random.normal([101, 11]))
    for _ in range(3):
        with tf.GradientTape() as t:
            y = f()
            loss = tf.reduce_sum(y)
        # x is ones: its factors are the result
        assert np.array_equal(t.gradient(loss, x).numpy(), y.numpy())


def test_draws_go_on_as_without_a_tape():
    f = tf.function(lambda: tf.random.normal([3]))
    tf.random.set_seed(1)
    plain = [f().numpy() for _ in range(3)]
    tf.random.set_seed(1)
    under = []
    for _ in range(3):
        with tf.GradientTape():
            under.append(f().numpy())
    assert same_bits(plain, under)


def test_what_a_function_prints_is_printed_once(capsys):
    x = tf.Variable(2.0)

    @tf.function
    def f():
        tf.print("seen", x)
        if x > 1.0:
            tf.print("large", x)
            return x * x
        return x

    with tf.GradientTape() as t:
        y = f()
    t.gradient(y, x)
    assert capsys.readouterr().err.count("large") == 1


def test_only_what_is_inside_the_tape_is_recorded():
    v = tf.Variable(3.0)
    f = tf.function(lambda x: x * v)
    before = f(tf.constant(2.0))
    with tf.GradientTape(persistent=True) as t:
        with t.stop_recording():
            hidden = f(tf.constant(2.0))
        y = f(tf.constant(5.0)) + before + hidden
    assert float(t.gradient(y, v)) == 5.0
    assert t.gradient(hidden, v) is None


def test_strategy_run_under_an_eager_tape_of_one_replica_is_seen():
    v = tf.Variable(3.0)
    strategy = tf.distribute.MirroredStrategy(replicas=1)
    with tf.GradientTape() as t:
        y = strategy.run(lambda: v * v)
    assert float(t.gradient(y, v)) == 6.0


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_strategy_run_on_several_replicas_under_an_eager_tape_is_an_error(wrap):
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        v = tf.Variable(3.0)

    def step():
        return strategy.reduce("sum", strategy.run(lambda: v * v), axis=None)

    with tf.GradientTape() as t:
        y = wrap(step)() + 0.0
    assert float(y) == 18.0
    with pytest.raises(NotImplementedError, match="strategy.run"):
        t.gradient(y, v)


def test_a_variable_that_is_made_in_the_first_call():
    made = []

    @tf.function
    def f(x):
        if not made:
            made.append(tf.Variable(4.0))
        return made[0] * x

    for _ in range(2):
        with tf.GradientTape() as t:
            y = f(tf.constant(3.0))
        assert float(t.gradient(y, made[0])) == 3.0


def test_second_derivatives_through_loops_and_branches_in_a_function():
    w = tf.Variable(rng.normal(size=(5, 5)) * 0.3)
    x = tf.constant(rng.normal(size=(11, 5)))

    @tf.function
    def cell(h):
        if tf.reduce_sum(h) > 0.0:
            return tf.tanh(h @ w)
        return tf.sin(h @ w) * w[0, 0]

    @tf.function
    def net(h, written_out):
        if written_out:
            for _ in range(3):
                h = cell(h) + h @ w
        else:
            i = tf.constant(0)
            while i < 3:
                h = cell(h) + h @ w
                i += 1
        return tf.reduce_sum(h * h)

    def program(written_out=False):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as t:
                loss = net(x, written_out) + tf.reduce_sum(w * w)
            g = t.gradient(loss, w)
            penalty = tf.reduce_sum(g * g)
        return outer.gradient(penalty, w)

    found = program()
    assert same_bits(found, tf.function(program)())
    assert np.allclose(found.numpy(), program(True).numpy(), rtol=1e-9)


def test_a_hessian_of_a_function_with_a_loop():
    f = tf.function(
        lambda x: tf.reduce_prod(
            tf.while_loop(
                lambda i, h: i < 3, lambda i, h: (i + 1, h * x + tf.sin(h)), [tf.constant(0), x]
            )[1]
        )
    )

    def program(x):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as t:
                t.watch(x)
                y = f(x)
            g = t.gradient(y, x)
        return outer.jacobian(g, x)

    x = tf.constant(rng.normal(size=4))
    hessian = program(x).numpy()
    assert np.allclose(hessian, hessian.T, rtol=1e-9) and np.abs(hessian).max() > 0
    assert same_bits(program(x), tf.function(program)(x))
    step = np.zeros(4)
    step[2] = 1e-6

    def gradient(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = f(x)
        return t.gradient(y, x).numpy()

    difference = (gradient(tf.constant(x + step)) - gradient(tf.constant(x - step))) / 2e-6
    assert np.allclose(hessian[2], difference, rtol=1e-5, atol=1e-8)


def test_a_program_that_raises_leaves_the_tape_usable():
    v = tf.Variable(2.0)
    f = tf.function(lambda: v * v)

    @tf.function
    def fails():
        raise ValueError("in the function")

    with tf.GradientTape(persistent=True) as t:
        y = f()
        with pytest.raises(ValueError, match="in the function"):
            fails()
        z = y * v
    for _ in range(2):
        assert float(t.gradient(z, v)) == 12.0


def test_parts_of_batches_of_other_sizes():
    w = tf.Variable(rng.normal(size=4).astype(np.float32))
    f = tf.function(lambda x: tf.tanh(x * w))
    data = tf.data.Dataset.from_tensor_slices(rng.normal(size=(39, 4)).astype(np.float32))

    def program(x):
        with tf.GradientTape() as t:
            y = tf.reduce_sum(f(x[1:]) ** 2) + tf.reduce_sum(f(tf.concat([x, x[2:]], 0)))
        return t.gradient(y, w)

    whole = tf.function(program)
    for size in (11, 5, 3):  # the last ones are of 6, 4 and 3
        for x in data.batch(size):
            assert same_bits(program(x), whole(x))


def test_functions_that_read_data_under_a_tape():
    v = tf.Variable(2.0)
    data = tf.data.Dataset.from_tensor_slices(np.arange(5, dtype=np.float32)).batch(2)

    @tf.function
    def total(data):
        result = 0.0
        for x in data:
            result = result + tf.reduce_sum(x * v)
        return result

    with tf.GradientTape() as t:
        y = total(data)
    assert float(t.gradient(y, v)) == 10.0


def test_a_tape_goes_on_after_variables_were_assigned_outside():
    v = tf.Variable(2.0)
    f = tf.function(lambda: v * v)
    t = tf.GradientTape(persistent=True)
    with t:
        y = f()
    v.assign(5.0)
    with t:
        z = y + f()
    assert float(z) == 29.0
    assert float(t.gradient(z, v)) == 4.0 + 10.0


def test_numbers_that_are_not_finite_are_named_in_gradients():
    tf.debugging.enable_check_numerics()
    try:
        x = tf.Variable(0.0)
        f = tf.function(lambda: tf.sqrt(x) + 1.0)
        with tf.GradientTape() as t:
            y = f()
        with pytest.raises(tf.errors.NonFiniteError, match=r"\[xdivy\] made an infinity"):
            t.gradient(y, x)
    finally:
        tf.debugging.disable_check_numerics()


@pytest.mark.parametrize("rows", [1, 3])
def test_a_run_takes_a_size_that_counts_examples_as_a_number(rows: int) -> None:
    x = tf.constant(np.arange(1.0, rows + 1.0)[:, None])._as_examples(0, 1)
    w = tf.Variable(np.ones(1))
    inner = tf.function(lambda a: tf.atan(a) * w)
    with tf.GradientTape() as tape:
        tape.watch(x)
        pairs = tf.reduce_mean(tf.tanh(x[:, None] * x[None, :]), axis=0)
        total = tf.reduce_sum(inner(pairs))
    gradients = tape.gradient(total, [w, x])
    v = x.numpy()[:, 0]
    mean = np.tanh(np.outer(v, v)).mean(0)
    np.testing.assert_allclose(gradients[0].numpy(), [np.arctan(mean).sum()], rtol=1e-12)
    slopes = (1 - np.tanh(np.outer(v, v)) ** 2) / rows / (1 + mean[None] ** 2)
    expected = (slopes * v[None]).sum(1) + (slopes * v[:, None]).sum(0)
    np.testing.assert_allclose(gradients[1].numpy()[:, 0], expected, rtol=1e-12)
