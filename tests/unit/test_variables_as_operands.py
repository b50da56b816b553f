"""Variables in expressions, comparisons, as targets of gradients and as keys."""

import numpy as np
import pytest

import samegrad as tf


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_a_variable_that_is_the_target_counts(wrap):
    x, other = tf.Variable(3.0), tf.Variable(2.0)

    def gradient(make, sources):
        def program():
            with tf.GradientTape() as t:
                target = make()
            return t.gradient(target, sources)

        return wrap(program)()

    assert float(gradient(lambda: [x, x * x], x)) == 7.0
    assert float(gradient(lambda: {"a": x, "b": x * x}, x)) == 7.0
    assert float(gradient(lambda: x, x)) == 1.0
    assert float(gradient(lambda: [x, x], x)) == 2.0
    assert gradient(lambda: x, other) is None


def test_pythons_max_of_variables():
    v, w = tf.Variable(1.0), tf.Variable(2.0)
    with tf.GradientTape() as t:
        largest = max([v, w])
    first, second = t.gradient(largest, [v, w])
    assert first is None and float(second) == 1.0


def test_a_target_that_was_never_read_or_changed_since():
    x = tf.Variable(3.0)
    with tf.GradientTape() as t:
        y = x * x
    x.assign(5.0)
    assert float(t.gradient([x, y], x)) == 7.0


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_numpy_on_the_left_keeps_the_gradient(wrap):
    k = tf.Variable([2.0, 3.0])
    array = np.array([5.0, 7.0], np.float32)

    def gradient(make):
        def program():
            with tf.GradientTape() as t:
                y = tf.reduce_sum(make())
            return t.gradient(y, k)

        return wrap(program)().numpy().tolist()

    assert gradient(lambda: array * k) == [5.0, 7.0]
    assert gradient(lambda: array - k) == [-1.0, -1.0]
    assert gradient(lambda: array + k) == [1.0, 1.0]
    assert gradient(lambda: array / k) == pytest.approx([-1.25, -7 / 9])
    assert gradient(lambda: np.float32(2) * k) == [2.0, 2.0]
    assert gradient(lambda: np.eye(2, dtype=np.float32) @ tf.reshape(k, [2, 1])) == [1.0, 1.0]
    assert gradient(lambda: (array**k)[0]) == pytest.approx([25 * np.log(5), 0.0])


def test_a_matrix_of_numpy_times_a_variable():
    k = tf.Variable(np.ones((2, 3), np.float32))
    with tf.GradientTape() as t:
        y = tf.reduce_sum(np.ones((4, 2), np.float32) @ k)
    assert t.gradient(y, k).numpy().tolist() == [[4.0] * 3] * 2


def test_comparisons_are_by_element():
    v = tf.Variable([0.0, 1.0])
    assert tf.where(v == 0.0, [9.0, 9.0], v).numpy().tolist() == [9.0, 1.0]
    assert (v != 1.0).numpy().tolist() == [True, False]
    assert (np.array([0.0, 0.0], np.float32) == v).numpy().tolist() == [True, False]
    assert (np.float32(1) > v).numpy().tolist() == [True, False]
    assert tf.function(lambda: v == v)().numpy().tolist() == [True, True]


def test_variables_are_no_keys_and_their_references_are():
    v, w, x = tf.Variable(1.0), tf.Variable(1.0), tf.constant(1.0)
    with pytest.raises(TypeError, match=r"variable\.ref\(\)"):
        hash(v)
    seen = {v.ref(): "v", w.ref(): "w", x.ref(): "x"}
    assert [seen[k.ref()] for k in (v, w, x)] == ["v", "w", "x"]
    assert v.ref().deref() is v and v.ref() != w.ref()


def test_functions_take_variables_as_arguments():
    v, w = tf.Variable(2.0), tf.Variable(2.0)
    f = tf.function(lambda a: a * a)
    for variable in (v, w):
        with tf.GradientTape() as t:
            y = f(variable)
        assert float(t.gradient(y, variable)) == 4.0


def test_jacobians_at_the_edges():
    x, other = tf.Variable([1.0, 2.0]), tf.Variable([5.0])
    with tf.GradientTape(persistent=True) as t:
        y, empty = x * x, x[:0] * 2.0
    none = t.jacobian(y, [x, other])[1]
    zero = t.jacobian(y, [x, other], unconnected_gradients="zero")[1]
    assert none is None and zero.numpy().tolist() == [[0.0], [0.0]]
    assert t.jacobian(empty, x).shape.as_list() == [0, 2]
    assert t.jacobian(empty, other) is None
    assert t.jacobian(x, x).numpy().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_batch_jacobians_at_the_edges():
    x, z = tf.constant(np.ones((3, 2), np.float32)), tf.constant(np.ones((3, 4), np.float32))
    flat = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as t:
        t.watch([x, z, flat])
        y, empty, squares = x * x, x[:, :0], flat * flat
    with pytest.raises(ValueError, match="more axes"):
        t.batch_jacobian(squares, flat)
    unconnected = t.batch_jacobian(y, z)
    assert unconnected.shape.as_list() == [3, 2, 4] and not unconnected.numpy().any()
    assert t.batch_jacobian(empty, x).shape.as_list() == [3, 0, 2]
