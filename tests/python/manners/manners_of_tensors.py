"""How tensors, shapes and variables answer."""

from __future__ import annotations

import collections
import copy
import pickle
from typing import Any

import numpy as np
from manner_programs import manner, refused


@manner
def a_scalar_in_a_formatted_string_is_its_number(tf: Any) -> Any:
    t = tf.constant(0.5)
    return [f"Loss: {t}", f"{t}", "{:.3f}".format(t.numpy()), f"{t:.2f}", str(tf.constant(3)).removeprefix("samegrad").removeprefix("tf")]


@manner
def a_vector_in_a_formatted_string_is_its_numbers(tf: Any) -> Any:
    v, m = tf.constant([1.0, 2.0]), tf.constant([[1, 2], [3, 4]])
    return [f"{v}", "{}".format(v), f"{m}", f"{tf.constant([True, False])}", f"{tf.zeros([0, 2])}"]


@manner
def numbers_of_all_kinds_in_formatted_strings(tf: Any) -> Any:
    values = [0.1, 1e-8, 1e20, float("nan"), 1 / 3]
    kinds = [tf.float32, tf.float64, tf.float16]
    return [f"{tf.constant(x, k)}" for x in values for k in kinds if not (x > 1e9 and k == tf.float16)]


@manner
def a_shape_equals_lists_and_tuples(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [s == [3, 2], s == (3, 2), s != [3, 2], s == [3], [3, 2] == s, (3, 2) == s, s == tf.TensorShape([3, 2])]


@manner
def a_shape_equals_a_number_of_one_axis(tf: Any) -> Any:
    return tf.zeros([3]).shape == 3


@manner
def shapes_have_dims(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [s.rank, s.ndims, [int(n) for n in s.dims], s.as_list(), s.num_elements(), len(s), s[0], s[-1]]


@manner
def shapes_are_compatible(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [
        s.is_compatible_with([3, 2]), s.is_compatible_with([None, 2]), s.is_compatible_with([4, 2]),
        s.is_compatible_with([3]), s.is_fully_defined(), s.is_compatible_with(tf.TensorShape(None)),
    ]  # fmt: skip


@manner
def shapes_assert_and_merge(tf: Any) -> Any:
    s = tf.TensorShape([None, 2])
    merged = s.merge_with([3, None])
    return [
        merged.as_list(), s.assert_is_compatible_with([5, 2]), s.is_fully_defined(),
        refused(lambda: s.assert_is_compatible_with([5, 3]), ValueError),
        refused(lambda: s.merge_with([5, 3]), ValueError), s.assert_has_rank(2),
        s.concatenate([4]).as_list(), s.with_rank_at_least(1).as_list(),
    ]  # fmt: skip


@manner
def shapes_with_unknown_sizes(tf: Any) -> Any:
    s = tf.TensorShape([None, 2])
    return [str(s), repr(s), s.as_list(), s.num_elements(), str(tf.TensorShape([3])), s[1:].as_list()]


@manner
def a_shape_that_is_not_known_at_all(tf: Any) -> Any:
    s = tf.TensorShape(None)
    return [s.rank, str(s), s.is_fully_defined(), s.is_compatible_with([1, 2]), refused(s.as_list, ValueError)]


@manner
def shapes_add_up(tf: Any) -> Any:
    s = tf.zeros([3, 2]).shape
    return [(s + [4]).as_list(), ([4] + s).as_list(), s[:1].as_list(), (s[:1] + s[1:]).as_list()]


@manner
def constants_of_nothing(tf: Any) -> Any:
    return [tf.constant([], dtype=tf.int32), tf.constant([]), tf.constant([[], []]), tf.constant([], tf.bool)]


@manner
def a_shape_may_be_one_number(tf: Any) -> Any:
    return [tf.constant(4.0, shape=3), tf.zeros(3), tf.ones(2), tf.fill([2], 1.0), tf.zeros([])]


@manner
def a_constant_fills_its_shape(tf: Any) -> Any:
    return [tf.constant(0, shape=[2, 2]), tf.constant([1, 2, 3, 4], shape=[2, 2]), tf.constant(1.0, shape=())]


@manner
def an_input_of_one_number(tf: Any) -> Any:
    return str(tuple(tf.keras.Input(shape=(4)).shape))


@manner
def everything_takes_a_name(tf: Any) -> Any:
    return [
        tf.constant(1.0, name="x"), tf.convert_to_tensor(1.0, name="x"), tf.zeros([1], name="z"),
        tf.add(1.0, 2.0, name="a"), tf.reduce_sum([1.0], name="s"), tf.cast(1, tf.float32, name="c"),
        tf.matmul([[1.0]], [[2.0]], name="m"), tf.nn.relu(-1.0, name="r"), tf.concat([[1], [2]], 0, name="k"),
        tf.range(2, name="n"), tf.one_hot([0], 2, name="o"), tf.where(True, 1, 2, name="w"),
        tf.random.uniform([0], name="u"), tf.split([1, 2], 2, name="q")[0], tf.stack([1], name="t"),
    ]  # fmt: skip


@manner
def no_tensor_is_none(tf: Any) -> Any:
    t = tf.constant(1.0)
    return [t == None, t != None, t is None]  # noqa: E711


@manner
def gradients_are_clipped_together(tf: Any) -> Any:
    clipped, norm = tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0)
    return [clipped[0], clipped[1], clipped[2], norm, tf.linalg.global_norm([tf.constant([3.0, 4.0])])]


@manner
def new_axes(tf: Any) -> Any:
    x = tf.constant([1, 2])
    return [x[:, tf.newaxis], x[tf.newaxis], x[..., tf.newaxis], tf.newaxis is None]


@manner
def rows_by_a_mask(tf: Any) -> Any:
    x, m = tf.constant([[1, 2], [3, 4], [5, 6]]), tf.constant([True, False, True])
    return [tf.boolean_mask(x, m), tf.boolean_mask(x, [[True, False]] * 3), tf.boolean_mask(x, [False, True], axis=1)]


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
def a_tape_knows_what_it_watches(tf: Any) -> Any:
    v, w = tf.Variable(1.0, name="v"), tf.Variable(2.0, name="w")
    with tf.GradientTape() as tape:
        _ = w * v * v
    return sorted(x.name for x in tape.watched_variables())


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
        len(net.variables), len(net.trainable_variables), [m.name for m in net.submodules], net.name,
        [v.name for v in Dense().variables],
    ]  # fmt: skip


@manner
def arrays_of_tensors(tf: Any) -> Any:
    a = tf.TensorArray(tf.float32, size=2, dynamic_size=True)
    for i in range(3):
        a = a.write(i, float(i))
    return [a.stack(), a.size(), a.read(1)]


@manner
def generators_of_random_numbers(tf: Any) -> Any:
    g = tf.random.Generator.from_seed(1)
    h = tf.random.Generator.from_seed(1)
    a, b = g.normal([3]), g.normal([3])
    same = bool(tf.reduce_all(a == h.normal([3])))
    state = tf.random.Generator.from_seed(2)
    state.reset_from_seed(1)
    parts = tf.random.Generator.from_seed(1).split(2)
    return [
        same, bool(tf.reduce_any(a != b)), bool(tf.reduce_all(state.normal([3]) == a)), len(parts),
        g.uniform([2], 0, 10, tf.int32).shape.as_list(), g.uniform([], 5, 6, tf.int32),
        g.truncated_normal([2]).shape.as_list(), g.state.dtype.name,
        tf.random.get_global_generator().normal([1]).shape.as_list(),
    ]  # fmt: skip


@manner
def functions_over_rows(tf: Any) -> Any:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [tf.map_fn(lambda r: r * 2, x), tf.foldl(lambda a, r: a + r, x), tf.foldr(lambda a, r: a - r, x)]


@manner
def embeddings_are_looked_up(tf: Any) -> Any:
    return tf.nn.embedding_lookup(tf.constant([[1.0], [2.0]]), [1, 0, 1])


@manner
def diagonals(tf: Any) -> Any:
    return [tf.linalg.diag([1.0, 2.0]), tf.linalg.diag_part([[1.0, 2.0], [3.0, 4.0]])]


@manner
def assertions_hold(tf: Any) -> Any:
    tf.debugging.Assert(tf.constant(True), [1])
    tf.debugging.assert_equal(tf.constant([1]), tf.constant([1]))
    tf.debugging.assert_less(1.0, 2.0)
    tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("n", 3))])
    return [
        refused(lambda: tf.debugging.assert_equal(1, 2), tf.errors.InvalidArgumentError),
        refused(lambda: tf.debugging.Assert(False, ["no"]), tf.errors.InvalidArgumentError),
        refused(lambda: tf.debugging.check_numerics(float("nan"), "x"), tf.errors.InvalidArgumentError),
        tf.debugging.check_numerics(1.0, "x"),
    ]  # fmt: skip


@manner
def elements_by_their_places(tf: Any) -> Any:
    x = tf.constant([[1, 2], [3, 4]])
    return [tf.gather_nd(x, [[0, 1], [1, 0]]), tf.searchsorted([1, 3, 5], [2, 3]), tf.sequence_mask([1, 2], 3)]


@manner
def sums_of_segments(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0, 3.0])
    return [
        tf.math.segment_sum(x, [0, 0, 1]), tf.math.segment_mean(x, [0, 0, 1]),
        tf.math.unsorted_segment_sum(x, [1, 0, 1], 3), tf.math.unsorted_segment_max(x, [1, 0, 1], 2),
    ]  # fmt: skip


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
    return [table[v.ref()], table[w.ref()], v.ref().deref() is v, refused(lambda: {v: 1}, TypeError)]


@manner
def rows_of_variables_are_changed(tf: Any) -> Any:
    def after(change: Any) -> Any:
        v = tf.Variable([1.0, 2.0, 3.0])
        change(v)
        return v

    def s(values: Any, indices: Any) -> Any:
        return tf.IndexedSlices(tf.constant(values), tf.constant(indices))

    return [
        after(lambda v: v.scatter_add(s([10.0], [1]))), after(lambda v: v.scatter_sub(s([1.0], [0]))),
        after(lambda v: v.scatter_update(s([7.0], [2]))), after(lambda v: v.scatter_nd_add([[0]], [5.0])),
        after(lambda v: v.scatter_nd_update([[0], [2]], [5.0, 6.0])), after(lambda v: v.scatter_mul(s([3.0], [1]))),
        after(lambda v: v.scatter_max(s([9.0], [1]))), after(lambda v: v.scatter_nd_sub([[1]], [5.0])),
    ]  # fmt: skip


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
def axes_may_be_arrays(tf: Any) -> Any:
    x = tf.reshape(tf.range(24.0), [2, 3, 4])
    return [
        tf.reduce_sum(x, axis=np.array([0, 1])), tf.reduce_sum(x, axis=tf.constant([0, 1])),
        tf.reduce_max(x, axis=tf.constant(2)), tf.reduce_mean(x, axis=np.int64(1)), tf.argmax(x, axis=tf.constant(1)),
    ]  # fmt: skip


@manner
def sums_of_tensors_of_any_sequence(tf: Any) -> Any:
    return [tf.add_n({"a": tf.constant(1.0), "b": tf.constant(2.0)}.values()), tf.add_n((tf.constant(1), tf.constant(2)))]


@manner
def sums_of_a_generator_of_tensors(tf: Any) -> Any:
    return tf.add_n(tf.constant(float(i)) for i in range(3))


@manner
def repeats_of_their_own(tf: Any) -> Any:
    x = tf.constant([1, 2])
    return [tf.repeat(x, [2]), tf.repeat(x, [2, 1]), tf.repeat([1, 2], [2, 1]), tf.repeat([[1, 2]], [3, 0], axis=1)]


@manner
def transposed_by_negative_axes(tf: Any) -> Any:
    return tf.transpose(tf.reshape(tf.range(6), [1, 2, 3]), perm=[-1, -3, -2])


@manner
def gathered_in_batches(tf: Any) -> Any:
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return [tf.gather(x, [[2, 0], [1, 1]], batch_dims=1), tf.gather(x, [2, 0], axis=1), tf.gather(x, tf.constant([1]))]


@manner
def specs_without_a_shape(tf: Any) -> Any:
    spec = tf.TensorSpec(None, tf.float32)
    return [spec.shape.rank, spec.is_compatible_with(tf.zeros([1, 2])), spec.is_compatible_with(tf.zeros([1], tf.int32))]


@manner
def empty_tensors_are_reshaped(tf: Any) -> Any:
    return tf.reshape(tf.zeros([0, 6]), [0, -1, 3])


@manner
def tensors_are_seen_as_memory(tf: Any) -> Any:
    return np.asarray(memoryview(tf.constant([1.0, 2.0])))


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
def empty_ranges_are_whole_numbers(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0])
    return [tf.range(0), tf.range(3, 3), tf.gather(x, tf.range(0)), tf.range(0.0)]


@manner
def ranges_have_the_dtype_of_their_limit(tf: Any) -> Any:
    return [tf.range(np.int64(3)), tf.range(3), tf.range(tf.constant(3, tf.int64)), tf.range(1, 2, 0.5)]


@manner
def ranges_of_counts_of_numpy(tf: Any) -> Any:
    return [tf.range(np.int32(2)), tf.range(np.float32(2)), tf.range(np.float64(2.0)), tf.range(2.0)]


@manner
def whole_numbers_are_not_divided_by_zero(tf: Any) -> Any:
    return tf.constant(1) // tf.constant(0)


@manner
def whole_numbers_have_no_negative_powers(tf: Any) -> Any:
    return tf.pow(5, -2)


@manner
def a_remainder_by_zero(tf: Any) -> Any:
    return tf.constant(1) % tf.constant(0)


@manner
def an_addition_to_a_variable_has_its_shape(tf: Any) -> Any:
    return tf.Variable([1.0, 2.0]).assign_add(1.0)


@manner
def a_variable_has_the_shape_of_its_value(tf: Any) -> Any:
    return tf.Variable([3.0, 4.0], shape=[4])


@manner
def one_hot_values_have_one_dtype(tf: Any) -> Any:
    return tf.one_hot([0], 2, on_value=1.0, off_value=0)


@manner
def structures_keep_their_kinds(tf: Any) -> Any:
    class Own(dict):
        pass

    pair = collections.namedtuple("pair", "a b")
    ordered = tf.nest.map_structure(lambda x: x + 1, collections.OrderedDict([("b", 1), ("a", 2)]))
    own = tf.nest.map_structure(lambda x: x + 1, Own(a=1))
    named = tf.nest.map_structure(lambda x: x + 1, pair(1, 2))
    table = tf.nest.map_structure(lambda x: x + 1, collections.defaultdict(int, a=1))
    return [type(ordered).__name__, list(ordered), type(own).__name__, type(named).__name__, type(table).__name__]


@manner
def structures_of_other_kinds_differ(tf: Any) -> Any:
    return [
        refused(lambda: tf.nest.assert_same_structure((0, 1), [0, 1]), TypeError),
        refused(lambda: tf.nest.assert_same_structure([0, 1], [0]), ValueError),
        tf.nest.assert_same_structure((0, 1), [0, 1], check_types=False),
    ]  # fmt: skip


@manner
def numpy_on_the_left_of_a_variable(tf: Any) -> Any:
    xs = np.array([1.0, 2.0], "float32")

    def gradient(f: Any) -> Any:
        k = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(f(k))
        return tape.gradient(y, k)

    return [
        gradient(lambda k: xs * k), gradient(lambda k: xs - k), gradient(lambda k: np.float32(2) * k),
        gradient(lambda k: xs / k), gradient(lambda k: xs[None] @ (k * np.ones((2, 1), "float32"))),
        xs > tf.Variable(1.5),
    ]  # fmt: skip


@manner
def numpy_on_the_left_in_a_function(tf: Any) -> Any:
    xs, k = np.array([1.0, 2.0], "float32"), tf.Variable(3.0)
    return tf.function(lambda: xs * k + np.float32(1) * k)()


@manner
def variables_are_compared_by_element(tf: Any) -> Any:
    v = tf.Variable([0.0, 1.0])
    return [tf.where(v == 0.0, [9.0, 9.0], v), v != 1.0, v == tf.Variable([0.0, 2.0])]


@manner
def mismatches_are_invalid_arguments(tf: Any) -> Any:
    kind = tf.errors.InvalidArgumentError
    return [
        refused(lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), kind),
        refused(lambda: tf.reshape(tf.ones([3]), [2, 2]), kind),
        refused(lambda: tf.ones([2]) + tf.ones([3]), kind),
        refused(lambda: tf.concat([tf.ones([1, 2]), tf.ones([1, 3])], 0), kind),
        refused(lambda: tf.stack([tf.ones([2]), tf.ones([3])]), kind),
        refused(lambda: tf.gather(tf.ones([2]), [5]), kind),
    ]  # fmt: skip


@manner
def elements_by_a_mask_in_brackets(tf: Any) -> Any:
    x = tf.constant([1, 2, 3])
    return x[tf.constant([True, False, True])]


@manner
def elements_by_a_list_in_brackets(tf: Any) -> Any:
    return tf.constant([1, 2, 3])[[0, 1]]


@manner
def tensors_are_drawn(tf: Any) -> Any:
    t = tf.constant([1.0, 2.0])
    return [np.isscalar(t), len(list(t)), np.atleast_1d(t), np.stack([t, t]), [float(x) for x in t], np.array(t).ndim]


@manner
def names_of_dtypes(tf: Any) -> Any:
    t = tf.constant([1.0])
    return [str(t.dtype), repr(t.dtype), t.dtype.name, t.dtype == "float32", t.dtype == np.float32, t.dtype.is_floating]


@manner
def the_type_of_one_number(tf: Any) -> Any:
    return [type(tf.constant(1.0).numpy()).__name__, type(tf.constant(1).numpy()).__name__, float(tf.constant(0.5))]
