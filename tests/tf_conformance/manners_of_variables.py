"""How variables, copies, tapes and scopes answer."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
from manner_programs import manner, refused


@manner
def a_function_with_its_own_gradient(tf: Any) -> Any:
    @tf.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    x = tf.Variable(100.0 / 50)
    with tf.GradientTape() as tape:
        y = log1pexp(x)
    return [y, tape.gradient(y, x)]


@manner
def a_function_with_its_own_gradient_uses_variables(tf: Any) -> Any:
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x: Any) -> Any:
        y = v * x

        def grad(upstream: Any, variables: Any = None) -> Any:
            return upstream * 10.0, [upstream * 100.0 for _ in variables]

        return y, grad

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return [y, *tape.gradient(y, [x, v])]


@manner
def a_function_that_is_computed_again(tf: Any) -> Any:
    f = tf.recompute_grad(lambda x: tf.exp(x) * x)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return [y, tape.gradient(y, x)]


@manner
def devices_name_a_place(tf: Any) -> Any:
    with tf.device("/CPU:0"):
        a = tf.constant(1.0) + 1.0
    with tf.device("cpu"), tf.device(None):
        b = tf.constant(2.0)
    return [a, b]


@manner
def names_have_scopes(tf: Any) -> Any:
    with tf.name_scope("block") as scope:
        a = tf.constant(1.0)
    with tf.name_scope("a"), tf.name_scope("b") as inner:
        pass
    return [a, str(scope), str(inner)]


@manner
def dependencies_of_control(tf: Any) -> Any:
    v = tf.Variable(1.0)

    @tf.function
    def f() -> Any:
        with tf.control_dependencies([v.assign_add(1.0)]):
            return tf.identity(v)

    with tf.control_dependencies(None):
        pass
    return [f(), f()]


@manner
def modules_find_their_variables(tf: Any) -> Any:
    class Dense(tf.Module):
        def __init__(self, name: Any = None) -> None:
            super().__init__(name=name)
            self.w = tf.Variable([1.0], name="w")
            self.b = tf.Variable([0.0], name="b", trainable=False)

    class Net(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [Dense("first"), Dense()]
            self.table = {"x": Dense("last")}

    net = Net()
    return [
        len(net.variables),
        len(net.trainable_variables),
        [m.name for m in net.submodules],
        net.name,
        [v.name for v in Dense().variables],
    ]


@manner
def assertions_hold(tf: Any) -> Any:
    tf.debugging.Assert(tf.constant(True), [1])
    tf.debugging.assert_equal(tf.constant([1]), tf.constant([1]))
    tf.debugging.assert_less(1.0, 2.0)
    return [
        refused(lambda: tf.debugging.assert_equal(1, 2), tf.errors.InvalidArgumentError),
        refused(lambda: tf.debugging.Assert(False, ["no"]), tf.errors.InvalidArgumentError),
        refused(
            lambda: tf.debugging.check_numerics(float("nan"), "x"), tf.errors.InvalidArgumentError
        ),
        tf.debugging.check_numerics(1.0, "x"),
    ]


@manner
def variables_are_copied(tf: Any) -> Any:
    v = tf.Variable([1.0, 2.0], name="v")
    w = copy.deepcopy(v)
    w.assign([5.0, 6.0])
    pair = [v, v]
    twins = copy.deepcopy(pair)
    return [v, w, twins[0] is twins[1], w.trainable, w.name == v.name]


@manner
def tensors_are_copied(tf: Any) -> Any:
    t = tf.constant([1.0, 2.0])
    return [copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))]


@manner
def variables_are_pickled(tf: Any) -> Any:
    v = tf.Variable([1.0, 2.0], name="v", trainable=False)
    w = pickle.loads(pickle.dumps(v))
    w.assign([3.0, 4.0])
    return [v, w, w.trainable, w.name]


@manner
def a_variable_can_be_copied_shallowly(tf: Any) -> Any:
    v = tf.Variable([1.0])
    w = copy.copy(v)
    v.assign([2.0])
    return [w]


@manner
def models_are_copied(tf: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    other = copy.deepcopy(model)
    x = np.ones((1, 2), "float32")
    same = bool(np.array_equal(model(x), other(x)))
    other.layers[0].kernel.assign(np.zeros((2, 1)))
    return [same, bool(np.any(model(x) != 0)), other(x)]


@manner
def models_are_pickled(tf: Any) -> Any:
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    other = pickle.loads(pickle.dumps(model))
    x = np.ones((1, 2), "float32")
    return bool(np.array_equal(model(x), other(x)))


@manner
def modules_are_copied(tf: Any) -> Any:
    class Net(tf.Module):
        def __init__(self) -> None:
            super().__init__(name="net")
            self.w = tf.Variable([1.0])

    net = Net()
    other = copy.deepcopy(net)
    other.w.assign([2.0])
    return [net.w, other.w, other.name, len(other.trainable_variables)]


@manner
def variables_are_keys_by_reference(tf: Any) -> Any:
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    table = {v.ref(): "v", w.ref(): "w"}
    return [
        table[v.ref()],
        table[w.ref()],
        v.ref().deref() is v,
        refused(lambda: {v: 1}, TypeError),
    ]


@manner
def rows_of_variables_are_changed(tf: Any) -> Any:
    def after(change: Any) -> Any:
        v = tf.Variable([1.0, 2.0, 3.0])
        change(v)
        return v

    def s(values: Any, indices: Any) -> Any:
        return tf.IndexedSlices(tf.constant(values), tf.constant(indices))

    return [
        after(lambda v: v.scatter_add(s([10.0], [1]))),
        after(lambda v: v.scatter_sub(s([1.0], [0]))),
        after(lambda v: v.scatter_update(s([7.0], [2]))),
        after(lambda v: v.scatter_nd_add([[0]], [5.0])),
        after(lambda v: v.scatter_nd_update([[0], [2]], [5.0, 6.0])),
        after(lambda v: v.scatter_max(s([9.0], [1]))),
        after(lambda v: v.scatter_nd_sub([[1]], [5.0])),
    ]


@manner
def parts_of_variables_are_assigned(tf: Any) -> Any:
    v, m = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(tf.zeros([2, 2]))
    v[0].assign(9.0)
    v[1:].assign([4.0, 5.0])
    m[:, 1].assign([1.0, 2.0])
    return [v, m]


@manner
def variables_have_a_shape_and_a_constraint(tf: Any) -> Any:
    v = tf.Variable([1.0, -2.0], constraint=lambda x: tf.maximum(x, 0.0))
    return [v.get_shape().as_list(), v.constraint(v), tf.Variable(1.0).constraint]


@manner
def empty_targets_have_jacobians(tf: Any) -> Any:
    x = tf.Variable(tf.ones([2]))
    with tf.GradientTape() as tape:
        y = tf.zeros([0]) * tf.reduce_sum(x)
    return tape.jacobian(y, x)


@manner
def jacobians_of_an_empty_batch(tf: Any) -> Any:
    x = tf.ones([1, 0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
    return tape.batch_jacobian(y, x)


@manner
def jacobians_of_unconnected_batches(tf: Any) -> Any:
    x, z = tf.ones([2, 2]), tf.ones([2, 3])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        tape.watch(z)
        y = x * 2.0
    return tape.batch_jacobian(y, z)


@manner
def a_batch_jacobian_needs_two_axes(tf: Any) -> Any:
    x = tf.ones([2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 2.0
    return tape.batch_jacobian(y, x)


@manner
def an_addition_to_a_variable_has_its_shape(tf: Any) -> Any:
    return tf.Variable([1.0, 2.0]).assign_add(1.0)


@manner
def a_variable_has_the_shape_of_its_value(tf: Any) -> Any:
    return tf.Variable([3.0, 4.0], shape=[4])


@manner
def numpy_on_the_left_of_a_variable(tf: Any) -> Any:
    xs = np.array([1.0, 2.0], "float32")

    def gradient(f: Any) -> Any:
        k = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(k))
        return tape.gradient(y, k)

    return [
        gradient(lambda k: xs * k),
        gradient(lambda k: xs - k),
        gradient(lambda k: np.float32(2) * k),
        gradient(lambda k: xs / k),
        gradient(lambda k: xs[None] @ (k * np.ones((2, 1), "float32"))),
        xs > tf.Variable(1.5),
    ]


@manner
def numpy_on_the_left_in_a_function(tf: Any) -> Any:
    xs, k = np.array([1.0, 2.0], "float32"), tf.Variable(3.0)
    return tf.function(lambda: xs * k + np.float32(1) * k)()


@manner
def variables_are_compared_by_element(tf: Any) -> Any:
    v = tf.Variable([0.0, 1.0])
    return [tf.where(v == 0.0, [9.0, 9.0], v), v != 1.0, v == tf.Variable([0.0, 2.0])]


@manner
def variables_whose_sizes_are_open(tf: Any) -> Any:
    v = tf.Variable([1.0], shape=[None])
    begins = [v.shape.as_list(), tf.shape(v)]
    v.assign([1.0, 2.0])
    v.assign_add([1.0, 1.0])
    v.assign_sub([0.5, 0.25])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * v)
    return [
        *begins,
        v.shape.as_list(),
        v.read_value(),
        tape.gradient(loss, v),
        refused(lambda: v.assign([[1.0]]), ValueError),
        refused(lambda: tf.Variable([1.0], shape=[2, None]), ValueError),
    ]


@manner
def functions_of_variables_whose_sizes_change(tf: Any) -> Any:
    v = tf.Variable([[1.0]], shape=tf.TensorShape(None))
    double = tf.function(lambda: v * 2.0)
    store = tf.function(lambda x: v.assign(x))
    found = [double()]
    v.assign([1.0, 2.0])
    found.append(double())
    store(tf.constant([[3.0], [4.0]]))
    return [*found, double(), v.shape.rank, v.numpy()]


@manner
def averages_of_variables(tf: Any) -> Any:
    v, w, step = tf.Variable([1.0, -2.0], name="v"), tf.Variable(1.0, name="w"), tf.Variable(0)
    plain = tf.train.ExponentialMovingAverage(0.9)
    counted = tf.train.ExponentialMovingAverage(0.9, num_updates=step, name="slow")
    found = []
    for _ in range(3):
        plain.apply([v])
        counted.apply([v, w])
        v.assign(v * 2.0)
        w.assign_add(1.0)
        step.assign_add(1)
        found += [plain.average(v).numpy(), counted.average(v).numpy(), counted.average(w).numpy()]
    return [
        *found,
        plain.average(w),
        plain.name,
        [plain.average_name(v), counted.average_name(w), counted.average(w).name],
        sorted(counted.variables_to_restore([v, w])),
        plain.average(v).trainable,
        refused(lambda: plain.apply([step]), TypeError),
    ]


@manner
def averages_of_variables_in_a_function(tf: Any) -> Any:
    v, averages = tf.Variable([1.0, -2.0]), tf.train.ExponentialMovingAverage(0.5)

    @tf.function
    def step(x: Any) -> None:
        v.assign_add(x)
        averages.apply([v])

    for x in (1.0, 2.0, 4.0):
        step(tf.constant([x, 0.0]))
    return averages.average(v).numpy()
