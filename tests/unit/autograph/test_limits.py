"""What cannot become part of a step says why, and what to write instead."""

import numpy as np
import pytest

import samegrad as tf


def no_source():
    scope = {}
    exec("def decide(x):\n  return x if x > 0 else -x", scope)
    return scope["decide"]


def in_a_comprehension(x):
    return [1 for _ in range(2) if x > 0]


def in_a_generator(x):
    def numbers():
        if x > 0:
            yield 1

    return list(numbers())


REMEDY = r"samegrad\.cond, samegrad\.while_loop, or samegrad\.where"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: tf.function(no_source())(tf.constant(1.0)), "source code is not available"),
        (lambda: tf.function(in_a_comprehension)(tf.constant(1.0)), "comprehension"),
        (lambda: tf.function(in_a_generator)(tf.constant(1.0)), "generator"),
        (
            lambda: tf.function(lambda x: 1 if x > 0 else 2, autograph=False)(tf.constant(1.0)),
            "autograph=False",
        ),
        (
            lambda: tf.distribute.MirroredStrategy(replicas=2).run(
                lambda: 1 if tf.constant(1.0) + 1.0 > 0 else 2
            ),
            "not in a bare strategy.run",
        ),
    ],
)
def test_a_condition_that_stays_pythons_says_why(call, reason):
    with pytest.raises(TypeError, match=f"(?s){reason}.*{REMEDY}"):
        call()


def test_do_not_convert_leaves_a_function_and_what_it_calls_to_python():
    def inner(x):
        return x if x > 0 else -x

    @tf.autograph.experimental.do_not_convert
    def outer(x):
        return inner(x)

    @tf.autograph.experimental.do_not_convert()
    def with_a_cond(x):
        return tf.cond(x > 0, lambda: x, lambda: -x)

    class Owner:
        @tf.autograph.experimental.do_not_convert
        def method(self, x):
            return x * 2

    with pytest.raises(TypeError, match="do_not_convert"):
        tf.function(lambda x: outer(x))(tf.constant(1.0))
    assert float(tf.function(lambda x: with_a_cond(x) + inner(x))(tf.constant(-2.0))) == 4
    assert float(tf.function(lambda x: Owner().method(x))(tf.constant(-2.0))) == -4
    assert outer.__name__ == "outer"


def test_a_function_inside_a_bare_run_decides_by_tensors():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    @tf.function
    def decide(x):
        return x if x > 1 else -x

    def replica_fn():
        return decide(
            tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, "float32") + 1.0
        )

    values = strategy.experimental_local_results(strategy.run(replica_fn))
    assert [float(v) for v in values] == [-1, 2]


def test_functions_that_run_eagerly_let_replicas_decide():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    @tf.function
    def step():
        def replica_fn():
            me = tf.distribute.get_replica_context().replica_id_in_sync_group
            return 10 if me > 0 else 20

        return strategy.run(replica_fn)

    tf.config.run_functions_eagerly(True)
    try:
        values = strategy.experimental_local_results(step())
    finally:
        tf.config.run_functions_eagerly(False)
    assert [int(v) for v in values] == [20, 10]


def one_branch_only(x):
    if x > 0:
        y = x
    return y


def other_structure(x):
    y = (x, x)
    if x > 0:
        y = [x]
    return y


def other_shape(x):
    y = x
    if x > 0:
        y = tf.stack([x, x])
    return y


def none_or_tensor(x):
    y = None
    if x > 0:
        y = x
    return y


def returns_in_one_branch(x):
    if x > 0:
        return x


def strings(x):
    mode = "a"
    if x > 0:
        mode = "b"
    return mode


def growing(x):
    rows = tf.stack([x])
    while tf.reduce_sum(rows) < 10.0:
        rows = tf.concat([rows, rows], 0)
    return rows


def none_before_a_loop(x):
    last = None
    for _ in tf.range(3):
        last = x
    return last


def a_condition_of_several_elements(x):
    if tf.stack([x, x]) > 0:
        return x
    return -x


def a_scalar_has_no_rows(x):
    for row in x:
        x += row
    return x


def a_comprehension_over_a_traced_range(x):
    return [i + 1 for i in range(tf.cast(x, "int32"))]


@pytest.mark.parametrize(
    ("program", "kind", "match"),
    [
        (one_branch_only, ValueError, "'y' has a value after one branch only.*in both branches"),
        (other_structure, ValueError, "'y' must have the same structure.*list.*tuple"),
        (other_shape, ValueError, r"'y' must have the same dtype and shape.*\(2,\).*\(\)"),
        (none_or_tensor, ValueError, "'y' must have the same kind.*None"),
        (returns_in_one_branch, ValueError, "the returned value must have the same kind.*None"),
        (strings, ValueError, "'mode' must have the same value.*'b' and 'a'"),
        (growing, ValueError, r"'rows' must keep.*\(1,\).*\(2,\)"),
        (none_before_a_loop, ValueError, "'last' must keep.*None.*float32"),
        (a_condition_of_several_elements, ValueError, "one element.*reduce_all"),
        (a_scalar_has_no_rows, TypeError, "no rows"),
        (a_comprehension_over_a_traced_range, TypeError, "while_loop"),
    ],
)
def test_the_variable_and_the_rule_are_named(program, kind, match):
    with pytest.raises(kind, match=match):
        tf.function(program)(tf.constant(1.0))


def test_an_assertion_about_a_tensor_fails_after_the_step():
    @tf.function
    def step(x, n):
        for i in tf.range(n):
            if i > 0:
                assert x > tf.cast(i, "float32"), "x is too small"
        return x

    assert float(step(tf.constant(3.0), tf.constant(2))) == 3
    message = r'x > tf.cast.*x is too small.*\n.*test_limits.py", line \d+, in step'
    with pytest.raises(AssertionError, match=message):
        step(tf.constant(3.0), tf.constant(6))
    assert float(step(tf.constant(0.5), tf.constant(1))) == 0.5


def test_a_failed_step_says_nothing_about_the_next_one():
    @tf.function
    def step(x):
        assert x > 0, "first"
        assert x > 1, "second"
        return x

    with pytest.raises(AssertionError, match="first"):
        step(tf.constant(-1))
    assert int(step(tf.constant(2))) == 2


def test_examples_pass_through_branches_and_loops():
    @tf.function
    def step(batch):
        y = batch
        for i in tf.range(3):
            if tf.reduce_sum(y) > 5:
                y = y * 0.5
            else:
                y = y + tf.cast(i, "float32")
        return tf.reduce_sum(y)

    def plain(values):
        for i in range(3):
            values = values * 0.5 if values.sum() > 5 else values + i
        return values.sum()

    for n in (1, 4, 7):
        batch = np.arange(n, dtype="float32")
        given = float(step(tf.Tensor(batch, example_axis=0)))
        np.testing.assert_allclose(given, plain(batch), rtol=1e-6)


def test_a_branch_or_loop_that_gives_no_batch_is_never_looked_at():
    @tf.function
    def step(batch, n):
        if n > 1:
            if tf.reduce_sum(batch) > 5:
                return batch
            batch = batch - 1
        for _ in tf.range(n):
            doubled = batch * 2
            if n == 3:
                return doubled
        return batch + 1

    def plain(values, n):
        if n > 1:
            if values.sum() > 5:
                return values
            values = values - 1
        return values * 2 if n == 3 else values + 1

    for size in (1, 3, 6):
        for n in (0, 1, 2, 3):
            batch = np.arange(size, dtype="float32")
            given = step(tf.Tensor(batch, example_axis=0), tf.constant(n))
            np.testing.assert_array_equal(given, plain(batch, n))


def test_functions_given_to_functions_decide_by_tensors():
    @tf.function
    def step(x, n):
        def size(v):
            return v if v > 0 else -v

        total = tf.cond(n > 0, lambda: x if x > 0 else -x, lambda: x * 100)
        _, total = tf.while_loop(
            lambda i, v: i < n and v < 50, lambda i, v: (i + 1, v * 2 if v < 10 else v + 1),
            (0, total),
        )  # fmt: skip
        return total, list(map(size, [x, -x]))

    total, sizes = step(tf.constant(-3.0), tf.constant(4))
    assert float(total) == 14
    assert [float(v) for v in sizes] == [3, 3]


def test_a_row_at_a_time_of_a_batch():
    @tf.function
    def step(batch):
        y = 0.0
        for row in batch:
            y = y * 2 + row
        return y

    for n in (1, 4, 7):
        batch = np.arange(n, dtype="float32")
        expected = 0.0
        for value in batch:
            expected = expected * 2 + value
        assert float(step(tf.Tensor(batch, example_axis=0))) == expected


def test_to_code_and_to_graph():
    def decide(x):
        if x > 0:
            return x
        return -x

    assert "ag__.if_stmt(x > 0" in tf.autograph.to_code(decide)
    assert tf.autograph.to_graph(decide)(-3) == 3
    with pytest.raises(ValueError, match="source code is not available"):
        tf.autograph.to_code(no_source())
