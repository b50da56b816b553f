"""Functions that need a size from a value fall back to Python, with the results of eager code."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf

X = tf.constant([1.0, 2.0, 3.0, 4.0])
Decorator = Callable[[Any], Any]


def plain(function: Any) -> Any:
    return function


def draws_around_the_size(decorated: Decorator) -> Any:
    @decorated
    def step():
        x = tf.random.normal([4])
        kept = tf.boolean_mask(x, x > 0.0)
        return x, kept, tf.random.uniform([2]), tf.random.normal([2], seed=3)

    return step


def generator_before_the_size(decorated: Decorator) -> Any:
    generator = tf.random.Generator.from_seed(3)

    @decorated
    def step():
        x = generator.normal([4])
        return x, tf.boolean_mask(x, x > 0.0)

    return step


def variable_of_the_first_call(decorated: Decorator) -> Any:
    class Owner:
        v: Any = None

        @decorated
        def step(self, x):
            if self.v is None:
                self.v = tf.Variable(x * 2.0)
            self.v.assign_add(x)
            return tf.boolean_mask(self.v, self.v > 4.0), tf.identity(self.v)

    owner = Owner()
    return lambda: owner.step(X)


def assignments_around_the_size(decorated: Decorator) -> Any:
    v = tf.Variable(0.0)

    @decorated
    def step():
        v.assign_add(1.0)
        numbers = tf.range(tf.cast(v, tf.int32))
        v.assign_add(1.0)
        return numbers, tf.identity(v)

    return step


def iterator_of_a_dataset(decorated: Decorator) -> Any:
    iterator = iter(tf.data.Dataset.range(12).batch(3))

    @decorated
    def step():
        x = next(iterator)
        return x, tf.boolean_mask(x, x % 2 == 0)

    return step


def sizes_in_a_loop(decorated: Decorator) -> Any:
    @decorated
    def step(n):
        total = tf.constant(0.0)
        for i in tf.range(n):
            total += tf.reduce_sum(tf.boolean_mask(X, tf.cast(i, tf.float32) < X))
        return total

    return lambda: step(tf.constant(3, tf.int64))


def sizes_in_a_branch(decorated: Decorator) -> Any:
    @decorated
    def step(x):
        y = tf.unique(x).y if tf.reduce_sum(x) > 3.0 else x
        return tf.size(y)

    return lambda: step(X)


def map_fn_and_inner_function(decorated: Decorator) -> Any:
    @decorated
    def inner(row):
        return tf.reduce_sum(tf.boolean_mask(row, row > 2.0))

    @decorated
    def step(x):
        return tf.map_fn(inner, x) * 2.0

    return lambda: step(tf.stack([X, X + 1.0]))


def training_step(decorated: Decorator) -> Any:
    w = tf.Variable([1.0, 2.0, 3.0])
    optimizer = tf.keras.optimizers.Adam(0.1)

    @decorated
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.boolean_mask(w * w, w > 1.5))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return loss, tf.identity(w)

    return step


def tape_outside(decorated: Decorator) -> Any:
    w = tf.Variable([1.0, 2.0, 3.0])

    @decorated
    def loss():
        return tf.reduce_sum(tf.boolean_mask(w * w, w > 1.5))

    def step():
        with tf.GradientTape() as tape:
            value = loss()
        return tape.gradient(value, w)

    return step


def layers_and_a_metric(decorated: Decorator) -> Any:
    tf.keras.utils.set_random_seed(4)
    model = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dropout(0.5)])
    mean = tf.keras.metrics.Mean()

    @decorated
    def step():
        y = model(X[None], training=True)
        mean.update_state(tf.boolean_mask(y, y > 0.0))
        return y, mean.result()

    return step


def run_of_one_replica(decorated: Decorator) -> Any:
    strategy = tf.distribute.MirroredStrategy(replicas=1)
    with strategy.scope():
        v = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def replica_fn(x):
        kept = tf.boolean_mask(x, x > 2.0)
        v.assign_add(tf.reduce_sum(kept))
        return tf.distribute.get_replica_context().all_reduce("sum", kept), tf.identity(v)

    @decorated
    def step(x):
        return strategy.run(replica_fn, args=(x,))

    data = tf.data.Dataset.range(12, output_type="float32").batch(4)
    batches: Iterator[Any] = iter(strategy.experimental_distribute_dataset(data))
    return lambda: step(next(batches))


PROGRAMS = [
    draws_around_the_size, generator_before_the_size, variable_of_the_first_call,
    assignments_around_the_size, iterator_of_a_dataset, sizes_in_a_loop, sizes_in_a_branch,
    map_fn_and_inner_function, training_step, tape_outside, layers_and_a_metric,
    run_of_one_replica,
]  # fmt: skip


def results(program: Any, decorated: Decorator) -> Any:
    tf.random.set_seed(5)
    step = program(decorated)
    return [[np.asarray(x).tolist() for x in tf.nest.flatten(step())] for _ in range(3)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_function_that_needs_a_size_gives_the_results_of_eager_code(program: Any) -> None:
    assert results(program, tf.function) == results(program, plain)


def test_functions_without_sizes_from_values_stay_compiled() -> None:
    @tf.function
    def step(x, training):
        return tf.boolean_mask(x, x > 0.0) if training else x * 2.0

    for size in range(1, 6):
        step(tf.ones([size]), True)
        step(tf.ones([size]), False)
    (reason,) = step.explain(X, True).reasons
    assert str(reason).startswith("test_sizes_from_values.py:")
    assert "Python runs the function: [boolean_mask]" in reason.text
    assert step.explain(X, False).bitwise


def test_function_that_falls_back_for_many_shapes_is_traced_twice() -> None:
    bodies = []

    @tf.function
    def step(x):
        bodies.append(1)
        return tf.boolean_mask(x, x > 0.0)

    for size in range(1, 50):
        step(tf.ones([size]))
    assert len(bodies) == 49 + 2


def test_abandoned_trace_is_freed() -> None:
    class Seen:
        pass

    left = []

    @tf.function
    def step(x):
        seen = Seen()
        left.append(weakref.ref(seen))
        return tf.boolean_mask(x, x > 2.0)

    step(X)
    gc.collect()
    assert [reference() for reference in left] == [None, None]


def test_run_of_one_replica_begins_in_python_after_its_first_trace() -> None:
    bodies = []

    def replica_fn():
        bodies.append(1)
        return tf.boolean_mask(X, X > 2.0)

    strategy = tf.distribute.MirroredStrategy(replicas=1)
    for _ in range(3):
        assert strategy.run(replica_fn).numpy().tolist() == [3.0, 4.0]
    assert len(bodies) == 3 + 1
    (reason,) = strategy.explain(lambda: tf.boolean_mask(X, tf.reduce_sum(X) < X)).reasons
    assert "Python runs the function: [boolean_mask]" in reason.text


def test_user_code_that_asks_for_a_value_is_told_that_there_is_none() -> None:
    for ask in (lambda x: x.numpy(), lambda x: np.asarray(x), lambda x: 1 if x else 2):
        with pytest.raises(TypeError, match="no value yet"):
            tf.function(ask, autograph=False)(tf.constant(1.0))


def test_int_and_float_of_a_traced_tensor_are_casts() -> None:
    @tf.function
    def step(x):
        return int(x), float(int(x)), tf.zeros([int(x)])

    whole, real, zeros = step(tf.constant(2.7))
    assert (whole.dtype, int(whole)) == (tf.int32, 2)
    assert (real.dtype, float(real)) == (tf.float32, 2.0)
    assert zeros.shape == (2,)


V = tf.range(10.0)
IMAGE = tf.reshape(tf.range(2 * 8 * 8 * 3.0), [2, 8, 8, 3])
PLACES: dict[str, tuple[Any, Any]] = {
    "a sum": (lambda n: V[n : n + 5], 3),
    "a sum behind": (lambda n: V[n : 5 + n], 3),
    "a window of a batch": (lambda n: V[n * 4 : (n + 1) * 4], 1),
    "differences": (lambda n: V[5 - n : 9 - n], 3),
    "a negative": (lambda n: V[-n + 5 : 9 - n], 3),
    "steps": (lambda n: V[n : n + 6 : 2], 3),
    "nothing": (lambda n: V[n : n - 2], 3),
    "a minimum": (lambda n: (lambda m: V[m : m + 5])(tf.minimum(n, 5)), 3),
    "int64": (lambda n: V[n : n + 5], np.int64(3)),
    "two axes": (lambda n: IMAGE[:, n : n + 2, n - 1 : n + 2], 3),
    "ellipsis": (lambda n: IMAGE[None, ..., n - 2 : n], 3),
    "elements": (lambda b: IMAGE[:, b[0] : b[0] + 3, b[-1] : b[-1] + 2], [2, 3]),
    "a sum of vectors": (
        lambda b: (lambda e: IMAGE[0, b[0] : e[0], b[1] : e[1]])(b + np.array([3, 2])), [2, 3],
    ),
    "a multiple": (lambda b: (lambda e: IMAGE[0, e[0] - 2 : e[0]])(b * 2 - 1), [2, 3]),
    "slice": (lambda n: tf.slice(V, [n], [4]), 3),
    "slice of a vector": (lambda b: tf.slice(IMAGE[0], b, [2, 2, 1]), [2, 3, 1]),
    "strided_slice": (lambda n: tf.strided_slice(V, [n], [n + 3]), 3),
    "strided_slice of vectors": (
        lambda b: tf.strided_slice(IMAGE[0], b, b + np.array([1, 2, 1])), [2, 3, 1],
    ),
    "crop_to_bounding_box": (lambda n: tf.image.crop_to_bounding_box(IMAGE, n, n - 1, 2, 3), 3),
    "keras.ops.slice": (lambda n: tf.keras.ops.slice(V, [n], [4]), 3),
    "keras.ops.slice_update": (lambda n: tf.keras.ops.slice_update(V, [n], tf.zeros([4])), 3),
    "a loop": (
        lambda n: tf.map_fn(lambda i: V[i : i + 2], tf.range(3) + n, fn_output_signature="float32"),
        3,
    ),
    "extract_glimpse": (
        lambda o: tf.image.extract_glimpse(IMAGE, [3, 3], o, noise="zero"), [[0.1, 0.9], [-0.4, 0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_part_of_known_size_is_compiled_wherever_it_begins(name: str) -> None:
    call, place = PLACES[name]
    step, at = tf.function(call), tf.constant(place)
    np.testing.assert_array_equal(step(at), call(at))
    assert step.explain(at).bitwise


@pytest.mark.parametrize("place", [-3, -1, 7, 9, 20])
def test_part_that_leaves_its_axis_is_made_by_python(place: int) -> None:
    v = tf.Variable(0.0)

    @tf.function
    def step(n):
        v.assign_add(1.0)
        return V[n : n + 4]

    for n in (0, place, 2):
        assert step(tf.constant(n)).numpy().tolist() == V[n : n + 4].numpy().tolist()
    assert float(v) == 3.0 and step.explain(tf.constant(0)).bitwise
    two = tf.distribute.MirroredStrategy(replicas=2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="indices must lie in"):
        two.run(lambda n: V[n : n + 4], args=(tf.constant(place),))


def test_methods_of_other_objects_and_several_replicas_stay_compiled():
    class Step:
        def __init__(self, drops):
            self.drops, self.traced = drops, []

        def run(self, x):
            self.traced.append(tf.inside_function())
            return tf.reduce_sum(tf.boolean_mask(x, x > 0) if self.drops else x)

    def called(step, replicas):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        batch = next(iter(strategy.experimental_distribute_dataset(data)))
        return float(strategy.reduce("SUM", strategy.run(step.run, args=(batch,)), axis=None))

    data = tf.data.Dataset.from_tensor_slices([1.0, -2.0, 4.0]).batch(3)
    drops, keeps = Step(True), Step(False)
    assert [called(drops, 1) for _ in range(2)] == [5.0, 5.0]
    assert drops.traced[-1] is False
    assert called(keeps, 1) == 3.0 and keeps.traced == [True]
    with pytest.raises(TypeError, match="boolean_mask"):
        called(drops, 3)
