"""How generators of random numbers, devices, clocks and checks answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from manner_programs import manner, refused
from manners_of_strategies import mirrored


@manner
def numbers_of_a_generator_are_those_of_its_state(tf: Any) -> Any:
    g = tf.random.Generator.from_seed(1)
    return [
        g.state,
        g.uniform([5]),
        g.uniform([3], 0, 10, tf.int32),
        g.uniform([3], -5, 10**12, tf.int64),
        g.uniform([2], 1.0, 3.0, tf.float64),
        g.uniform_full_int([3], tf.uint32),
        g.state,
    ]


@manner
def normal_numbers_of_a_generator(tf: Any) -> Any:
    g = tf.random.Generator.from_seed([3, 5])

    def near(x: Any) -> Any:
        return np.round(np.asarray(x, np.float64), 4).tolist()

    return [
        near(g.normal([2, 3])),
        near(g.normal([3], 1.0, 2.0, tf.float64)),
        near(g.truncated_normal([9])),
        near(g.truncated_normal([3], dtype=tf.float64)),
        near(g.normal([0])),
        near(g.normal([])),
        g.state,
    ]


@manner
def generators_split_and_make_seeds(tf: Any) -> Any:
    g = tf.random.Generator.from_seed(2**40 + 7)
    a, b = g.split(2)
    seeds = g.make_seeds(3)
    return [
        bool(tf.reduce_all(a.state == b.state)),
        a.uniform([2]),
        b.uniform([2]),
        seeds.shape.as_list(),
        np.asarray(seeds)[1].tolist(),
        g.state,
    ]


@manner
def states_of_generators(tf: Any) -> Any:
    g = tf.random.Generator.from_state([1, 2, 3], alg="philox")
    h = tf.random.Generator.from_key_counter(key=3, counter=[1, 2], alg="philox")
    same = bool(tf.reduce_all(g.uniform([4]) == h.uniform([4])))
    g.reset_from_seed(9)
    first = g.state.numpy().tolist()
    g.skip(4)
    return [same, first, g.state, g.key, g.algorithm, tf.random.create_rng_state(1, "philox")]


@manner
def seeds_that_are_none(tf: Any) -> Any:
    make = tf.random.Generator.from_seed
    return [
        refused(lambda: make([1.0, [2]]), TypeError, ValueError),
        make([[1, 2], [3, 4]]).state,
    ]


@manner
def a_counter_that_overflows(tf: Any) -> Any:
    g = tf.random.Generator.from_state([-3, 4, 5], alg="philox")
    return [g.uniform([20]), g.state]


@manner
def a_generator_in_a_function_goes_on(tf: Any) -> Any:
    g = tf.random.Generator.from_seed(1)
    f = tf.function(lambda: g.uniform([3], 0, 100, tf.int32))
    return [f(), f(), g.uniform([3], 0, 100, tf.int32), g.state]


@manner
def a_generator_in_a_checkpoint(tf: Any) -> Any:
    import tempfile

    g = tf.random.Generator.from_seed(1)
    g.uniform([5])
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(g=g).write(f"{folder}/a")
        first = g.uniform([5])
        h = tf.random.Generator.from_seed(99)
        tf.train.Checkpoint(g=h).read(path)
    return bool(tf.reduce_all(h.uniform([5]) == first))


@manner
def devices_that_are_not_there_are_cpus(tf: Any) -> Any:
    found = []
    for name in ("/CPU:0", "/GPU:0", "GPU:1", "/device:TPU:0", None, "gpu"):
        with tf.device(name):
            found.append(tf.constant(1.0) + 1.0)
    return [*found, refused(lambda: tf.device("nonsense").__enter__(), ValueError)]


@manner
def settings_of_devices(tf: Any) -> Any:
    experimental = tf.config.experimental
    return [
        experimental.list_physical_devices("TPU"),
        len(experimental.list_physical_devices("CPU")),
        refused(
            lambda: experimental.set_memory_growth(tf.config.list_physical_devices("CPU")[0], True),
            ValueError,
        ),
        tf.debugging.set_log_device_placement(False),
    ]


@manner
def the_time_of_day(tf: Any) -> Any:
    import time

    f = tf.function(tf.timestamp)
    a, eager = float(f()), float(tf.timestamp())
    time.sleep(0.05)
    b = float(f())
    return [0.04 < b - a < 5.0, abs(eager - time.time()) < 5.0, tf.timestamp().dtype.name]


@manner
def modules_of_keras_at_the_top(tf: Any) -> Any:
    return [
        tf.optimizers.Adam is tf.keras.optimizers.Adam,
        tf.losses.MeanSquaredError is tf.keras.losses.MeanSquaredError,
        tf.metrics.Mean is tf.keras.metrics.Mean,
        tf.initializers.Zeros is tf.keras.initializers.Zeros,
        tf.zeros_initializer()([2]),
        tf.ones_initializer()([2], tf.int32),
        tf.constant_initializer(3.0)([2]),
        tf.random_normal_initializer(seed=1)([2, 3]).shape.as_list(),
    ]


@manner
def dtypes_have_a_module(tf: Any) -> Any:
    return [
        tf.dtypes.float32 == tf.float32,
        tf.dtypes.cast(1, tf.dtypes.float64),
        tf.double == tf.float64,
        tf.dtypes.as_dtype("int32") == tf.int32,
        tf.saturate_cast([-5.0, 1e20, 3.7], tf.int32),
        tf.saturate_cast([-5, 300], tf.uint8),
        tf.saturate_cast([3e9], tf.int64),
    ]


@manner
def python_among_operations(tf: Any) -> Any:
    ds = tf.data.Dataset.from_tensor_slices([1.0, 2.0])
    doubled = ds.map(lambda x: tf.py_function(lambda v: v * 2.0, [x], tf.float32))
    summed = ds.map(lambda x: tf.numpy_function(lambda v: v + np.float32(1), [x], tf.float32))
    pairs = tf.py_function(lambda a, b: (a + b, a * b), [2.0, 3.0], [tf.float32, tf.float32])
    return [list(doubled), list(summed), list(pairs)]


@manner
def arrays_by_other_names(tf: Any) -> Any:
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return [
        tf.ensure_shape(x, [None, 3]),
        tf.identity_n([x, x])[1],
        tf.shape_n([x])[0],
        tf.scalar_mul(2, x),
        tf.strided_slice(x, [0, 0], [2, 3], [1, 2]),
        tf.strided_slice(x, [1, 0], [2, 1], begin_mask=0, end_mask=2, shrink_axis_mask=1),
        tf.dynamic_partition(x, [1, 0], 2),
        tf.dynamic_stitch([[1], [0, 2]], [[7], [8, 9]]),
        tf.unravel_index([3, 5], [2, 3]),
        tf.get_static_value(x),
        tf.realdiv(1.0, 2.0),
        refused(lambda: tf.ensure_shape(x, [1, 3]), ValueError, tf.errors.InvalidArgumentError),
    ]


@manner
def mirrored_padding(tf: Any) -> Any:
    x = tf.constant([[1, 2, 3], [4, 5, 6]])
    return [
        tf.pad(x, [[1, 1], [2, 1]], "REFLECT"),
        tf.pad(x, [[2, 0], [1, 3]], "SYMMETRIC"),
        tf.pad(x, [[0, 0], [1, 1]], "CONSTANT", constant_values=9),
        tf.pad(x, tf.constant([[0, 0], [1, 0]]), mode="reflect"),
        refused(lambda: tf.pad(x, [[2, 0], [0, 0]], "REFLECT"), tf.errors.InvalidArgumentError),
    ]


@manner
def gradients_of_mirrored_padding(tf: Any) -> Any:
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.pad(x, [[2, 1]], "REFLECT") * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    return tape.gradient(y, x)


@manner
def ranks_and_shapes_are_asserted(tf: Any) -> Any:
    d, x = tf.debugging, tf.constant([[1.0, 2.0]])
    return [
        refused(lambda: d.assert_rank(x, 2), Exception),
        refused(lambda: d.assert_rank(x, 1), ValueError),
        refused(lambda: d.assert_rank_at_least(x, 3), ValueError),
        refused(lambda: d.assert_rank_in(x, [0, 1]), ValueError),
        refused(lambda: d.assert_scalar(x), ValueError),
        refused(lambda: d.assert_type(x, tf.int32), TypeError),
        refused(lambda: d.assert_integer(x), TypeError),
        refused(lambda: d.assert_shapes([(x, ("n", 2)), (x, (1, "m"))]), Exception),
        refused(lambda: d.assert_shapes([(x, ("n", "n"))]), ValueError),
        refused(lambda: d.assert_shapes({"a": 1}), Exception),
        refused(lambda: d.assert_shapes([(x, ("...", 2)), (x, (1, "*"))]), Exception),
        refused(lambda: d.assert_shapes([(x, (None, 3))]), ValueError),
        refused(lambda: d.assert_proper_iterable(x), TypeError),
        d.is_numeric_tensor(x),
        d.is_numeric_tensor(1.0),
        d.assert_same_float_dtype([x, x]).name,
        refused(lambda: tf.assert_rank(x, 1), ValueError),
    ]


@manner
def signs_are_asserted(tf: Any) -> Any:
    d, wrong = tf.debugging, tf.errors.InvalidArgumentError
    return [
        refused(lambda: d.assert_positive([1.0, 0.0]), wrong),
        refused(lambda: d.assert_positive([1, 2]), wrong),
        refused(lambda: d.assert_non_negative([0.0, -1.0]), wrong),
        refused(lambda: d.assert_negative([-1.0]), wrong),
        refused(lambda: d.assert_non_positive([0, 1]), wrong),
        refused(lambda: d.assert_near([1.0], [1.0 + 1e-7]), wrong),
        refused(lambda: d.assert_near([1.0], [1.1]), wrong),
        refused(lambda: d.assert_near([1.0], [1.1], atol=0.2), wrong),
        refused(lambda: d.assert_all_finite([float("nan")], "x"), wrong),
        refused(lambda: tf.assert_equal([1], [2]), wrong),
        refused(lambda: tf.Assert(False, [1]), wrong),
    ]


@manner
def rows_of_variables_are_multiplied(tf: Any) -> Any:
    def rows(values: Any, indices: Any) -> Any:
        return tf.IndexedSlices(tf.constant(values), tf.constant(indices))

    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    v.scatter_mul(rows([[2.0, 3.0], [10.0, 10.0]], [2, 0]))
    v.scatter_div(rows([[4.0, 4.0]], [1]))
    w = tf.Variable([5, 7])
    w.scatter_max(rows([6, 1], [0, 1]))
    w.scatter_min(rows([100, 3], [0, 1]))
    return [v, w, v.sparse_read([2, 0]), v.gather_nd([[0, 1]])]


@manner
def modules_have_scopes_of_their_names(tf: Any) -> Any:
    class Scale(tf.Module):
        @tf.Module.with_name_scope
        def __call__(self, x: Any) -> Any:
            if not hasattr(self, "w"):
                self.w = tf.Variable(2.0, name="w")
            return self.w * x

    class Other(tf.Module):
        def __init__(self) -> None:
            super().__init__(name="mine")
            with self.name_scope:
                self.v = tf.Variable(1.0, name="v")

    scale = Scale()
    return [scale(3.0), scale.w.name, Other().v.name]


@manner
def graphics_processors_are_asked_for(tf: Any) -> Any:
    return [bool(tf.test.is_gpu_available()), tf.test.gpu_device_name()]


def of_replicas(tf: Any, values: Any) -> Any:
    """The rounded local values."""
    strategy = mirrored(tf)
    return [
        np.round(np.asarray(part, np.float64), 4)
        for part in strategy.experimental_local_results(values)
    ]


@manner
def a_generator_of_a_strategy_differs_by_replica(tf: Any) -> Any:
    strategy = mirrored(tf)
    with strategy.scope():
        g = tf.random.Generator.from_seed(1)
    found = [of_replicas(tf, strategy.run(lambda: g.normal([3]))) for _ in range(2)]
    whole = strategy.run(lambda: g.uniform([2], 0, 100, tf.int32))
    wide = strategy.run(lambda: g.truncated_normal([2], dtype=tf.float64))
    return [*found, of_replicas(tf, whole), of_replicas(tf, wide), g.state.numpy(), g.uniform([2])]


@manner
def a_generator_of_a_strategy_in_a_function(tf: Any) -> Any:
    strategy = mirrored(tf)
    with strategy.scope():
        g = tf.random.Generator.from_state([3, 0, 11], "philox")

    @tf.function
    def step() -> Any:
        return strategy.run(lambda: g.uniform([2]) + g.uniform([2], 5.0, 6.0))

    return [of_replicas(tf, step()), of_replicas(tf, step()), g.state.numpy()]


@manner
def a_generator_made_in_run_differs_by_replica(tf: Any) -> Any:
    def step() -> Any:
        return tf.random.Generator.from_seed(5).uniform([3])

    return of_replicas(tf, mirrored(tf).run(step))
