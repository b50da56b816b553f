"""Branches and loops inside a compiled step: values, derivatives, variables, replicas."""

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

less = _core.ops.less


def cond(predicate, true_fn, false_fn):
    return _core.traced_cond(predicate, true_fn, false_fn)


def loop(condition, body, variables, maximum=-1):
    return _core.traced_while(condition, body, variables, maximum)


@pytest.mark.parametrize(("taken", "expected"), [(True, [2, 4]), (False, [2, 3])])
def test_a_branch_is_chosen_in_each_step(taken, expected):
    @tf.function
    def step(x, p):
        return cond(p, lambda: [x * 2], lambda: [x + 1])[0]

    assert step(np.float32([1, 2]), np.array(taken)).numpy().tolist() == expected


def test_a_branch_that_is_not_taken_is_not_computed():
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cond(tf.reduce_sum(x) > 0, lambda: [_core.ops.log(x)], lambda: [x])[0]
        return y, tape.gradient(y, x)

    y, gradient = step(np.float64([-1, 0]))
    assert y.numpy().tolist() == [-1, 0]
    assert gradient.numpy().tolist() == [1, 1]


def test_branches_have_derivatives_of_second_order():
    @tf.function
    def step(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = cond(tf.reduce_sum(x) > 0, lambda: [x**3], lambda: [x * 5.0])[0]
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    first, second = step(np.float64([1, 2]))
    np.testing.assert_allclose(first, [3, 12])
    np.testing.assert_allclose(second, [6, 12])
    first, second = step(np.float64([-1, -2]))
    np.testing.assert_allclose(first, [5, 5])
    np.testing.assert_allclose(second, [0, 0])


def test_a_loop_runs_as_often_as_its_condition_says_and_has_a_derivative():
    @tf.function
    def power(x, w, n):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            _, y = loop(lambda i, y: less(i, n), lambda i, y: [i + 1, y * w], [tf.constant(0), x])
        return y, tape.gradient(y, [x, w])

    for n in (0, 1, 5):
        x, w = np.float64([1, 2]), np.float64([3, 0.5])
        y, (dx, dw) = power(x, w, np.int32(n))
        np.testing.assert_allclose(y, x * w**n)
        np.testing.assert_allclose(dx, w**n)
        np.testing.assert_allclose(dw, n * x * w ** (n - 1))


def test_loops_nest_with_derivatives():
    @tf.function
    def step(x):
        def outer_round(i, y):
            _, z = loop(lambda j, z: less(j, i), lambda j, z: [j + 1, z * x], [tf.constant(0), y])
            return [i + 1, z]

        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = loop(lambda i, y: less(i, tf.constant(4)), outer_round,
                        [tf.constant(0), tf.ones_like(x)])  # fmt: skip
        return y, tape.gradient(y, x)

    y, dx = step(np.float64([2.0]))  # x^(0+1+2+3)
    np.testing.assert_allclose(y, [64])
    np.testing.assert_allclose(dx, [6 * 32])


def test_a_maximum_ends_a_loop():
    @tf.function
    def step():
        return loop(lambda i: less(i, tf.constant(100)), lambda i: [i + 1], [tf.constant(0)], 7)[0]

    assert int(step()) == 7


def test_variables_written_in_branches_and_loops_change():
    variable = tf.Variable(1.0)

    def body(i):
        variable.assign_add(2.0)
        return [i + 1]

    @tf.function
    def step(n, p):
        loop(lambda i: less(i, n), body, [tf.constant(0)])
        cond(p, lambda: [variable.assign(variable * 10.0).value()], lambda: [variable.value()])
        return variable.value()

    assert float(step(np.int32(4), np.array(False))) == 9
    assert float(step(np.int32(1), np.array(True))) == 110
    assert float(variable.numpy()) == 110


def test_gradients_of_variables_read_in_a_loop():
    variable = tf.Variable(3.0)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = loop(lambda i, y: less(i, tf.constant(2)), lambda i, y: [i + 1, y * variable],
                     [tf.constant(0), x])[1]  # fmt: skip
        return tape.gradient(y, variable)

    assert float(step(np.float32(5))) == 2 * 3 * 5


def test_training_inside_a_loop_equals_training_outside():
    def make():
        variable = tf.Variable(np.float64([1, 2]))

        def train(i):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((variable - 3.0) ** 2)
            variable.assign_sub(0.1 * tape.gradient(loss, variable))
            return [i + 1]

        return variable, train

    inside, train_inside = make()
    tf.function(lambda: loop(lambda i: less(i, tf.constant(5)), train_inside, [tf.constant(0)]))()
    outside, train_outside = make()
    step = tf.function(lambda: train_outside(tf.constant(0)))
    for _ in range(5):
        step()
    assert inside.numpy().tolist() == outside.numpy().tolist()


def test_replicas_take_their_own_branch_and_number_of_rounds():
    strategy = tf.distribute.MirroredStrategy(replicas=3)

    def replica_fn():
        context = tf.distribute.get_replica_context()
        me = context.replica_id_in_sync_group
        rounds, total = loop(lambda i, a: less(i, me), lambda i, a: [i + 1, a + 10.0],
                             [tf.constant(0), tf.constant(1.0)])  # fmt: skip
        branch = cond(me > 0, lambda: [total], lambda: [-total])[0]
        return total, rounds, branch, context.all_reduce("SUM", branch)

    values = strategy.run(replica_fn)
    total, rounds, branch, summed = (
        [float(v) for v in strategy.experimental_local_results(value)] for value in values
    )
    assert total == [1, 11, 21]
    assert rounds == [0, 1, 2]
    assert branch == [-1, 11, 21]
    assert summed == [31] * 3


def test_derivatives_where_replicas_do_different_numbers_of_rounds():
    strategy = tf.distribute.MirroredStrategy(replicas=3)

    def replica_fn():
        me = tf.distribute.get_replica_context().replica_id_in_sync_group
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loop(lambda i, y: less(i, me), lambda i, y: [i + 1, y * x], [tf.constant(0), x])[1]
        return tape.gradient(y, x)

    gradients = strategy.experimental_local_results(strategy.run(replica_fn))
    assert [float(g) for g in gradients] == [1, 4, 12]


def test_a_collective_behind_a_condition_that_differs_is_refused():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def replica_fn():
        context = tf.distribute.get_replica_context()
        me = context.replica_id_in_sync_group
        x = tf.cast(me, "float32")
        return cond(me > 0, lambda: [context.all_reduce("SUM", x)], lambda: [x])[0]

    with pytest.raises(ValueError, match="may differ between replicas.*all_reduce"):
        strategy.run(replica_fn)


def test_a_collective_behind_a_condition_that_is_equal_runs():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def replica_fn(p):
        context = tf.distribute.get_replica_context()
        x = tf.cast(context.replica_id_in_sync_group, "float32") + 1.0
        return cond(p, lambda: [context.all_reduce("SUM", x)], lambda: [tf.constant(0.0)])[0]

    step = tf.function(lambda p: strategy.run(replica_fn, args=(p,)))
    for taken, expected in ((True, 3.0), (False, 0.0)):
        values = strategy.experimental_local_results(step(np.array(taken)))
        assert [float(v) for v in values] == [expected] * 2


def test_examples_pass_through_branches_and_loops_for_any_number():
    @tf.function
    def step(x):
        y = loop(lambda i, y: less(i, tf.constant(2)), lambda i, y: [i + 1, y + x],
                 [tf.constant(0), x])[1]  # fmt: skip
        return tf.reduce_sum(cond(tf.reduce_sum(y) > 0, lambda: [y], lambda: [x])[0])

    for n in (4, 3, 7):
        batch = tf.Tensor(np.ones((n, 2), "float32"), example_axis=0)
        assert float(step(batch)) == 6 * n


def test_random_draws_differ_between_rounds_and_repeat_in_the_derivative():
    @tf.function
    def step(w):
        def body(i, total):
            return [i + 1, total + w * tf.random.normal([1000])]

        with tf.GradientTape() as tape:
            tape.watch(w)
            _, total = loop(lambda i, t: less(i, tf.constant(3)), body,
                            [tf.constant(0), tf.zeros([1000])])  # fmt: skip
            square = tf.reduce_sum(total**2)
        return total, tape.gradient(square, w)

    total, gradient = step(np.float32(1))
    # Three independent draws: variance 3; d/dw Σ (w·z)² = 2 Σ z² at w = 1.
    assert 2.5 < float(np.var(total.numpy())) < 3.5
    np.testing.assert_allclose(gradient, 2 * np.sum(total.numpy() ** 2), rtol=1e-5)


def test_a_loop_variable_must_keep_its_type():
    @tf.function
    def step():
        return loop(lambda i: less(i, tf.constant(3)), lambda i: [tf.cast(i, "float32")],
                    [tf.constant(0)])  # fmt: skip

    with pytest.raises(ValueError, match="loop variable 0 must keep.*int32.*float32"):
        step()


def test_a_models_answer_to_one_row_may_decide():
    """The model takes its rows for examples, of which there may be any number elsewhere."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.build((None, 2))

    @tf.function
    def decide(x):
        answer = model(x)
        return tf.cond(answer > 0, lambda: answer + 10.0, lambda: answer - 10.0)

    @tf.function
    def count_up(x):
        def goes_on(rounds, y):
            return model(y) < 5.0

        return tf.while_loop(goes_on, lambda rounds, y: (rounds + 1, y + 1.0), (0, x))[0]

    for sign in (1.0, -1.0):
        row = sign * np.ones((1, 2), np.float32)
        assert float(decide(row)[0, 0]) == sign * 12.0
        assert int(count_up(row)) == (2 if sign > 0 else 4)
    rows = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match=r"\[cond\] the condition must be one element"):
        decide(rows)


@pytest.mark.parametrize("size", [2, 4])
def test_an_example_of_each_replica_does_not_decide_for_it(size):
    """Also where each has one: another batch may have more."""
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    def step(x):
        return tf.cond(x > 0, lambda: 1.0, lambda: 2.0)

    data = tf.data.Dataset.from_tensor_slices(np.ones((size, 1), np.float32)).batch(size)
    (batch,) = strategy.experimental_distribute_dataset(data)
    with pytest.raises(ValueError, match=r"the condition must be one element: got bool \(\?, 1\)"):
        tf.function(lambda b: strategy.run(step, args=(b,)))(batch)
