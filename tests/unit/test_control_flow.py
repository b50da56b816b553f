"""`cond`, `while_loop`, `case` and `switch_case`: eagerly, inside a function, and their errors."""

import collections

import numpy as np
import pytest

import samegrad as tf

Pair = collections.namedtuple("Pair", "a b")


def run(function, mode, *args):
    """Calls it at once or as a function."""
    args = [tf.constant(arg) for arg in args]
    return function(*args) if mode == "eager" else tf.function(function)(*args)


both = pytest.mark.parametrize("mode", ["eager", "function"])


@both
@pytest.mark.parametrize(("x", "expected"), [(3.0, 6.0), (-3.0, 3.0), (0.0, 0.0)])
def test_cond_returns_what_the_chosen_function_returns(mode, x, expected):
    result = run(lambda x: tf.cond(x > 0.0, lambda: x * 2.0, lambda: -x), mode, x)
    assert float(result) == expected


@both
@pytest.mark.parametrize(("p", "expected"), [(2, 1.0), (0, 0.0), (-1, 1.0)])
def test_a_number_as_a_predicate_is_compared_with_zero(mode, p, expected):
    assert float(run(lambda p: tf.cond(p, lambda: 1.0, lambda: 0.0), mode, p)) == expected


def test_cond_with_a_bool_calls_one_function_even_while_tracing():
    calls = []
    function = tf.function(lambda x: tf.cond(True, lambda: x, lambda: calls.append("false_fn")))
    assert float(function(tf.constant(1.0))) == 1
    assert calls == []


@pytest.mark.parametrize("p", [True, False])
def test_cond_keeps_structures_and_values_that_are_equal(p):
    @tf.function
    def function(p, x):
        return tf.cond(
            p,
            lambda: {"b": [x, 1.0], "a": Pair(None, "text"), "c": 5},
            lambda: {"b": [2, x], "a": Pair(None, "text"), "c": 5},
        )

    result = function(tf.constant(p), tf.constant(7.0))
    assert list(result) == ["b", "a", "c"]
    assert [float(v) for v in result["b"]] == ([7, 1] if p else [2, 7])
    assert result["a"] == Pair(None, "text")
    assert result["c"] == 5


@pytest.mark.parametrize(
    ("yes", "no", "dtype"),
    [(1, 2, "int32"), (1, 2.5, "float32"), (1.5, 2, "float32"), (1.5, np.float64(2), "float64"),
     (1, np.ones(()), "float64"), (np.float64(2), 1.5, "float64"), (True, False, "bool")],
)  # fmt: skip
def test_a_number_takes_the_dtype_of_the_other_branch(yes, no, dtype):
    function = tf.function(lambda p: tf.cond(p, lambda: yes, lambda: no))
    assert function(tf.constant(True)).dtype == dtype
    assert float(function(tf.constant(True))) == float(yes)
    assert float(function(tf.constant(False))) == float(no)


@pytest.mark.parametrize(
    ("yes", "no", "match"),
    [
        ([1.0], (1.0,), "the result must have the same structure.*list.*tuple"),
        ([1.0], [1.0, 2.0], "the same structure"),
        ({"a": 1.0}, {"b": 1.0}, "the same structure.*'a'.*'b'"),
        (np.ones(3, "float32"), np.ones(4, "float32"), r"dtype and shape.*\(3,\).*\(4,\)"),
        (np.ones(3, "float32"), np.ones(3), "dtype and shape.*float32.*float64"),
        (np.int32(1), 1.5, "dtype"),
        (None, 1.0, "value|kind"),
        (1.0, None, "kind.*1.0.*None"),
        ("a", "b", "same value.*'a' and 'b'"),
    ],
)
def test_cond_says_how_the_branches_differ(yes, no, match):
    function = tf.function(lambda p: tf.cond(p, lambda: yes, lambda: no))
    with pytest.raises(ValueError, match=rf"(?s)\[cond\].*({match})"):
        function(tf.constant(True))


def test_a_predicate_has_one_element():
    with pytest.raises(ValueError, match=r"one element: got bool \(2,\).*reduce_all"):
        tf.function(lambda x: tf.cond(x > 0, lambda: x, lambda: -x))(tf.constant([1.0, 2.0]))


@pytest.mark.parametrize("arguments", [(lambda: 1, None), (None, lambda: 1), (lambda: 1, 3)])
def test_cond_needs_two_functions(arguments):
    with pytest.raises(TypeError, match="must be a function"):
        tf.cond(True, *arguments)


def test_a_variable_is_a_predicate():
    variable = tf.Variable(True)
    function = tf.function(lambda: tf.cond(variable, lambda: 1, lambda: 2))
    assert int(function()) == 1
    variable.assign(False)
    assert int(function()) == 2


@both
@pytest.mark.parametrize("n", [0, 1, 5])
def test_while_loop_repeats_while_the_condition_says_so(mode, n):
    def function(x, n):
        return tf.while_loop(lambda i, y: i < n, lambda i, y: [i + 1, y * x], [0, tf.ones_like(x)])

    i, y = run(function, mode, 3.0, n)
    assert int(i) == n
    assert float(y) == 3.0**n


@both
def test_while_loop_stops_after_the_maximum(mode):
    def function(n):
        return tf.while_loop(lambda i: i < n, lambda i: i + 1, [0], maximum_iterations=7)

    assert [int(i) for i in run(function, mode, 100)] == [7]
    assert [int(i) for i in run(function, mode, 3)] == [3]


@both
def test_loop_variables_may_be_nested(mode):
    def function(n):
        def body(i, state):
            return i + 1, {"sum": state["sum"] + i, "pair": Pair(state["pair"].b, i)}

        return tf.while_loop(
            lambda i, state: i < n, body, (0, {"sum": tf.constant(0), "pair": Pair(-1, -2)})
        )

    i, state = run(function, mode, 4)
    assert int(i) == 4
    assert int(state["sum"]) == 6
    assert (int(state["pair"].a), int(state["pair"].b)) == (2, 3)


@both
def test_one_loop_variable_needs_no_list(mode):
    result = run(lambda x: tf.while_loop(lambda y: y < 100.0, lambda y: y * 2.0, x), mode, 3.0)
    assert float(result) == 192
    result = run(lambda x: tf.while_loop(lambda y: y < 100.0, lambda y: y * 2.0, (x,)), mode, 3.0)
    assert isinstance(result, tuple)
    assert float(result[0]) == 192


@both
@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda i, x: i + 1, "structure"),
        (lambda i, x: (i + 1, [x]), "structure"),
        (lambda i, x: (i + 1, x, x), "structure"),
    ],
)
def test_a_body_returns_the_loop_variables(mode, body, match):
    with pytest.raises(ValueError, match=match):
        run(lambda n, x: tf.while_loop(lambda i, x: i < n, body, (0, x)), mode, 2, 1.0)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (lambda i, x: (i + 1, tf.concat([x, x], 0)), r"loop variable 1.*\(2,\).*\(4,\)"),
        (lambda i, x: (i + 1, tf.cast(x, "float64")), "loop variable 1.*float32.*float64"),
    ],
)
def test_a_loop_variable_keeps_its_type(body, match):
    function = tf.function(lambda n, x: tf.while_loop(lambda i, x: i < n, body, (0, x)))
    with pytest.raises(ValueError, match=match):
        function(tf.constant(3), tf.constant([1.0, 2.0]))


def test_while_loop_needs_variables_and_functions():
    with pytest.raises(ValueError, match="at least one loop variable"):
        tf.while_loop(lambda: True, lambda: (), [])
    with pytest.raises(TypeError, match="body must be a function"):
        tf.while_loop(lambda i: i < 3, None, [0])


@both
def test_without_back_prop_no_gradient_flows(mode):
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda y: y < 10.0, lambda y: y * x, [x], back_prop=False)[0] + x
        return tape.gradient(y, x)

    assert float(run(function, mode, 3.0)) == 1


@both
def test_gradients_flow_through_branches_in_loops(mode):
    def function(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)

            def body(i, y):
                return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * x, lambda: y + x)

            _, y = tf.while_loop(lambda i, y: i < n, body, (0, x))
        return y, tape.gradient(y, x)

    y, dx = run(function, mode, 3.0, 3)  # (x² + x) x
    assert float(y) == 36
    assert float(dx) == 3 * 9 + 2 * 3


@both
@pytest.mark.parametrize(("x", "expected"), [(1, 10), (3, 20), (9, 30)])
def test_case_takes_the_first_that_is_true(mode, x, expected):
    def function(x):
        return tf.case([(x < 2, lambda: 10), (x < 5, lambda: 20)], default=lambda: 30)

    assert int(run(function, mode, x)) == expected


@both
def test_case_without_default_needs_one_that_is_true(mode):
    def function(x):
        return tf.case([(x < 2, lambda: x), (x < 5, lambda: -x)])

    assert int(run(function, mode, 1)) == 1
    assert int(run(function, mode, 4)) == -4
    with pytest.raises(tf.errors.InvalidArgumentError, match="no predicate is true"):
        run(function, mode, 7)


@both
def test_exclusive_cases_exclude_each_other(mode):
    def function(x):
        pairs = [(x < 2, lambda: 10), (x < 5, lambda: 20)]
        return tf.case(pairs, default=lambda: 30, exclusive=True)

    assert int(run(function, mode, 3)) == 20
    with pytest.raises(tf.errors.InvalidArgumentError, match="several predicates"):
        run(function, mode, 1)


@both
@pytest.mark.parametrize("branches", [
    [lambda: 10, lambda: 11, lambda: 12],
    {2: lambda: 12, 0: lambda: 10, 1: lambda: 11},
    [(1, lambda: 11), (2, lambda: 12), (0, lambda: 10)],
])  # fmt: skip
def test_switch_case_takes_the_function_with_the_number(mode, branches):
    for index, expected in ((0, 10), (1, 11), (2, 12), (7, 12), (-1, 12)):
        assert int(run(lambda i: tf.switch_case(i, branches), mode, index)) == expected
    default = lambda i: tf.switch_case(i, branches, default=lambda: 99)  # noqa: E731
    assert [int(run(default, mode, i)) for i in (1, 3, -1)] == [11, 99, 99]


def test_switch_case_says_what_is_wrong():
    with pytest.raises(TypeError, match="branch_index must be an integer"):
        tf.switch_case(1.5, [lambda: 1])
    with pytest.raises(ValueError, match="each once"):
        tf.switch_case(0, [(0, lambda: 1), (0, lambda: 2)])
    with pytest.raises(TypeError, match="function"):
        tf.switch_case(0, [(0, 1)])


def test_a_requirement_names_line_and_replica_once():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    @tf.function
    def step(limit):
        def replica_fn(limit):
            me = tf.distribute.get_replica_context().replica_id_in_sync_group
            return tf.case([(me < limit, lambda: me)])

        return strategy.run(replica_fn, (limit,))

    step(tf.constant(2))
    message = r'on replica 1, .*\nin user code: .*test_control_flow.py", line \d+, in replica_fn\n'
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        step(tf.constant(1))
    step(tf.constant(2))


def test_a_decision_about_values_of_all_replicas_is_made_inside_run():
    strategy = tf.distribute.MirroredStrategy(replicas=2)

    @tf.function
    def step():
        values = strategy.run(lambda: tf.constant(1.0) + 1.0)
        return tf.cond(values, lambda: 1.0, lambda: 2.0)

    with pytest.raises(TypeError, match="a value per replica.*strategy.reduce"):
        step()


def test_a_branch_that_only_prints_is_run(capfd):
    @tf.function
    def shown(x):
        tf.cond(x > 0.0, lambda: tf.print("positive", x), lambda: None)
        return x * 2.0

    assert float(shown(tf.constant(3.0))) == 6.0
    assert float(shown(tf.constant(-3.0))) == -6.0
    out, err = capfd.readouterr()
    assert (out + err).split() == ["positive", "3"] or (out + err).split() == ["positive", "3.0"]
