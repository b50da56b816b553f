"""Arrays of tensors, in eager code, in traced functions and in loops of a step."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensor_array_programs import COUNTS, PROGRAMS, N, X, with_derivatives
from windows import check_derivatives, numbers

import samegrad as tf

RECORDED = Path(__file__).with_name("tensorflow_tensor_array.json")


def arrays(values: Any) -> list[np.ndarray]:
    return [value.numpy() for value in values]


def assert_same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_tensorflow_gives_the_same_to_second_order_eagerly_and_traced(name, n):
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[f"{name} {n}"]

    def run(x: Any, n: Any) -> list[Any]:
        return with_derivatives(tf, PROGRAMS[name], x, n)

    eager = arrays(run(tf.constant(X), tf.constant(n)))
    traced = arrays(tf.function(run)(tf.constant(X), tf.constant(n)))
    for found in (eager, traced):
        for value, expected in zip(found, recorded, strict=True):
            np.testing.assert_allclose(value.ravel(), expected, rtol=2e-4, atol=2e-4)
    np.testing.assert_array_equal(eager[0], traced[0])


@pytest.mark.parametrize("name", ["loop_of_the_step", "read_and_written", "written_again"])
def test_derivatives_are_right_to_second_order(name):
    def program(x: tf.Tensor) -> tf.Tensor:
        return tf.cast(PROGRAMS[name](Double(), x, tf.constant(4)), "float64")

    check_derivatives(program, [X.astype("float64")], traced=True)


class Double:
    """`tf`, with arrays of float64."""

    def __getattr__(self, name: str) -> Any:
        return tf.float64 if name == "float32" else getattr(tf, name)

    def zeros(self, shape: Any) -> tf.Tensor:
        return tf.zeros(shape, "float64")


def step(x: Any) -> list[Any]:
    """Of [examples, N, 3]: a recurrent loop over N, whose states are stacked."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        given = tf.TensorArray(tf.float32, size=N).unstack(tf.transpose(x, [1, 0, 2]))
        array = tf.TensorArray(tf.float32, size=N)

        def body(i: Any, h: Any, array: Any) -> Any:
            h = tf.tanh(0.5 * h + given.read(i))
            return i + 1, h, array.write(i, h * x[:, 0])

        count = tf.cast(tf.reduce_max(tf.ones([2])) * N, tf.int32)
        start = (tf.constant(0), tf.zeros_like(x[:, 0]), array)
        array = tf.while_loop(lambda i, h, array: i < count, body, start)[2]
        y = tf.transpose(array.stack(), [1, 0, 2])
        loss = tf.nn.compute_average_loss(tf.reduce_sum(y * y, axis=[1, 2]))
    return [y, tape.gradient(loss, x)]


@pytest.mark.parametrize("n", [0, 1, 13, 1000])
def test_any_number_of_examples_in_a_loop_of_the_step(n):
    x = numbers(n, N, 3, dtype="float32")
    eager = arrays(step(tf.constant(x)))
    traced = arrays(tf.function(step)(tf.constant(x)._as_examples(0, 1)))
    assert eager[0].shape == (n, N, 3)
    np.testing.assert_array_equal(traced[0], eager[0])
    np.testing.assert_allclose(traced[1], eager[1], rtol=1e-5, atol=1e-6)


def test_replicas_have_the_bits_of_one_device():
    data = numbers(13, N, 3, dtype="float32")

    def trained(replicas: int) -> np.ndarray:
        where = tf.distribute.MirroredStrategy(replicas=replicas)
        with where.scope():
            w = tf.Variable(numbers(3, dtype="float32"))

        def train(x: Any) -> None:
            with tf.GradientTape() as tape:
                y = step(x * w)[0]
                loss = tf.nn.compute_average_loss(tf.reduce_sum(y * y, axis=[1, 2]))
            g = tape.gradient(loss, w)
            w.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("SUM", g))

        dataset = tf.data.Dataset.from_tensor_slices(data).batch(13)
        (batch,) = where.experimental_distribute_dataset(dataset)
        for _ in range(3):
            where.run(train, (batch,))
        return w.numpy()

    one = trained(1)
    assert np.isfinite(one).all()
    for replicas in (2, 3, 4):
        np.testing.assert_array_equal(one, trained(replicas))


def test_replicas_that_make_different_numbers_of_rounds_write_their_own():
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    limits = tf.data.Dataset.from_tensor_slices(np.array([2, 4], "int32")).batch(2)
    (limits,) = strategy.experimental_distribute_dataset(limits)

    def run(limit: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=N)
        limit = tf.reduce_max(limit)
        for i in tf.range(limit):
            array = array.write(i, tf.cast(i + 1, tf.float32))
        return array.stack()

    found = strategy.experimental_local_results(strategy.run(tf.function(run), (limits,)))
    assert_same(arrays(found), [np.array(v, "float32") for v in ([1, 2, 0, 0, 0], [1, 2, 3, 4, 0])])


def seconds(size: int, gradient: bool) -> float:
    @tf.function
    def run(x: Any, n: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            given = tf.TensorArray(tf.float32, size=size).unstack(x)
            array = tf.TensorArray(tf.float32, size=size)
            for i in tf.range(n):
                array = array.write(i, 2.0 * given.read(i))
            y = array.stack()
        return tape.gradient(y, x) if gradient else y

    x, n = tf.ones([size, 1000]), tf.constant(size)
    run(x, n)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        done = run(x, n)
        best = min(best, time.perf_counter() - start)
    np.testing.assert_array_equal(done.numpy(), np.full((size, 1000), 2.0))
    return float(best)


@pytest.mark.parametrize("gradient", [False, True])
def test_a_round_costs_what_it_writes(gradient):
    # Linear, some 50 and 200 ms; copies of the array in each round would be 64 GB.
    assert seconds(4000, gradient) < 2.5


def test_an_array_is_changed_by_a_write_as_in_eager_tensorflow():
    def run() -> Any:
        array = tf.TensorArray(tf.float32, size=2)
        array.write(0, 1.0)
        array.write(1, 2.0)
        return array.stack()

    for call in (run, tf.function(run)):
        np.testing.assert_array_equal(call().numpy(), [1, 2])


def test_an_array_that_a_branch_or_loop_wrote_is_refused_where_the_result_is_lost():
    @tf.function
    def run(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=2)
        tf.cond(x > 0.0, lambda: array.write(0, x), lambda: array.write(1, x))
        return array.stack()

    with pytest.raises(ValueError, match="use that, as in array = array.write"):
        run(tf.constant(1.0))


def test_loops_that_are_rewritten_take_arrays_and_ways_out():
    @tf.function
    def run(x: Any, n: Any) -> Any:
        array = tf.TensorArray(tf.float32, size=N)
        for i in tf.range(n):
            if x[i] < 0.0:
                continue
            array = array.write(i, x[i])
            if x[i] > 2.0:
                break
        return array.stack()

    x = np.array([1, -1, 2, 3, 4], "float32")
    np.testing.assert_array_equal(run(tf.constant(x), tf.constant(5)).numpy(), [1, 0, 2, 3, 0])


def test_halves_and_booleans_are_elements():
    @tf.function
    def run(x: Any, n: Any) -> Any:
        array = tf.TensorArray(x.dtype, size=3)
        for i in tf.range(n):
            array = array.write(i, x[i])
        return array.stack()

    for dtype in (tf.bfloat16, tf.bool, tf.float64, tf.int64):
        x = tf.cast(np.array([1, 0, 1]), dtype)
        assert run(x, tf.constant(3)).dtype == dtype
        np.testing.assert_array_equal(run(x, tf.constant(3)).numpy(), x.numpy())


def test_nan_and_nothing():
    array = tf.TensorArray(tf.float32, size=2).unstack([np.nan, 1.0])
    assert np.isnan(array.stack().numpy()[0])
    assert tf.TensorArray(tf.float32, size=0, element_shape=[2]).stack().shape == (0, 2)
    array.close()
    assert int(array.size()) == 0


def test_properties_and_repr():
    array = tf.TensorArray(tf.float32, 2, element_shape=[3])
    assert array.dtype == tf.float32 and not array.dynamic_size
    assert array.element_shape == (3,) and int(array.identity().size()) == 2
    assert repr(array) == "<samegrad.TensorArray: size=2, dtype=float32>"


def array(size: int = 3, **arguments: Any) -> Any:
    return tf.TensorArray(tf.float32, size, **arguments)


def twice(made: Any) -> Any:
    made.read(1)
    return made.read(1)


WRONG = {
    "no size": (lambda: tf.TensorArray(tf.float32), ValueError, "needs a size"),
    "negative size": (lambda: array(-1), ValueError, "must not be negative: got -1"),
    "dtype": (lambda: tf.TensorArray("text", 1), TypeError, "text"),
    "behind": (lambda: array().write(3, 1.0), tf.errors.OutOfRangeError, r"\[0, 3\): got 3"),
    "negative": (lambda: array().write(-1, 1.0), tf.errors.OutOfRangeError, "got -1"),
    "read behind": (lambda: array().read(7), tf.errors.OutOfRangeError, r"\[0, 3\): got 7"),
    "unwritten": (lambda: array().read(1), ValueError, "pass element_shape"),
    "nothing written": (lambda: array().stack(), ValueError, "pass element_shape"),
    "shapes": (lambda: array().write(0, [1.0, 2.0]).write(1, [1.0]), ValueError,
               r"got \(1,\) for \(2,\)"),
    "element shape": (lambda: array(element_shape=[2]).write(0, [1.0]), ValueError, "one shape"),
    "dtype of an element": (lambda: array().write(0, tf.constant(1)),
                            tf.errors.InvalidArgumentError, "elements are float32.*int32"),
    "twice": (lambda: twice(array().unstack([1.0, 2.0, 3.0])), tf.errors.InvalidArgumentError,
              "clear_after_read=False"),
    "scalars joined": (lambda: array(1).write(0, 1.0).concat(), tf.errors.InvalidArgumentError,
                       "use stack"),
    "too many rows": (lambda: array().unstack([1.0] * 4), ValueError, "cannot hold 4"),
    "too many parts": (lambda: array(2).split([1.0, 2.0, 3.0], [1, 1, 1]),
                       tf.errors.InvalidArgumentError, "cannot hold 3 parts"),
    "lengths": (lambda: array().split([1.0, 2.0], [1, 1, 3]), tf.errors.InvalidArgumentError,
                "must add up"),
    "indices": (lambda: array().scatter([0], [1.0, 2.0]), ValueError, "an index per row"),
    "index": (lambda: array().write(1.5, 2.0), TypeError, "integer"),
    "grad": (lambda: array().grad("x"), NotImplementedError, "GradientTape"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_calls_are_refused(name):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()
    with pytest.raises(error, match=message):
        tf.function(lambda: [call(), 1][1])()


def test_an_index_of_the_step_is_checked_when_it_runs():
    @tf.function
    def write(i: Any) -> Any:
        return array().write(i, 1.0).stack()

    @tf.function
    def write_in_a_loop(n: Any) -> Any:
        made = array()
        for i in tf.range(n):
            made = made.write(i, 1.0)
        return made.stack()

    @tf.function
    def read(i: Any) -> Any:
        return array().unstack([1.0, 2.0, 3.0]).read(i)

    for call, index in ((write, 3), (write, -1), (write_in_a_loop, 4), (read, 5)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"must lie in \[0, 3\)"):
            call(tf.constant(index))
    np.testing.assert_array_equal(write_in_a_loop(tf.constant(2)).numpy(), [1, 1, 0])


def test_an_array_in_a_loop_of_a_step_of_replicas_does_not_grow():
    def run(n: Any) -> Any:
        made = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(n):
            made = made.write(i, 1.0)
        return made.stack()

    step = tf.function(tf.distribute.MirroredStrategy(replicas=2).run)
    with pytest.raises(RuntimeError, match="does not grow by an index that a step of replicas"):
        step(run, (tf.constant(3),))
