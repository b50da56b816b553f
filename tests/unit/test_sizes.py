"""Sizes that follow from the examples keep a traced function right for any number of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf

X = np.arange(48, dtype=np.float32).reshape(8, 2, 3)


def on_batches(fn, *sizes: int) -> tuple[int, list[np.ndarray]]:
    """How often fn is traced for batches of these sizes, and its results."""
    traces = 0

    @tf.function
    def traced(x):
        nonlocal traces
        traces += 1
        return fn(x)

    results = []
    for size in sizes:
        (batch,) = tf.data.Dataset.from_tensor_slices(X[:size]).batch(size)
        results.append(traced(batch).numpy())
    return traces, results


FORMS = {
    "x.shape[0]": lambda x: x.shape[0],
    "tf.shape(x)[0]": lambda x: tf.shape(x)[0],
    "tf.shape(x, int64)[0]": lambda x: tf.shape(x, "int64")[0],
}


@pytest.mark.parametrize("rows", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x, n: tf.reshape(x, (n, -1)), lambda x: x.reshape(len(x), -1)),
        (lambda x, n: tf.reshape(x, [n, 3, 2]), lambda x: x.reshape(len(x), 3, 2)),
        (lambda x, n: tf.reshape(x, (n, -1, 1, 3)), lambda x: x.reshape(len(x), -1, 1, 3)),
        (lambda x, n: tf.reshape(x, (n * 2, 3)), lambda x: x.reshape(-1, 3)),
        (lambda x, n: tf.reshape(x, (2 * n, -1)), lambda x: x.reshape(-1, 3)),
        (
            lambda x, n: tf.reshape(tf.reshape(x, (n * 2, 3)), (n * 2 // 2, 2, 3)),
            lambda x: x,
        ),
        (lambda x, n: tf.zeros((n, 4)), lambda x: np.zeros((len(x), 4), np.float32)),
        (lambda x, n: tf.ones([4, n]), lambda x: np.ones((4, len(x)), np.float32)),
        (lambda x, n: tf.fill((n,), 7), lambda x: np.full(len(x), 7, np.int32)),
        (
            lambda x, n: tf.broadcast_to([[1.0, 2.0]], (n, 2)),
            lambda x: np.tile(np.float32([[1, 2]]), (len(x), 1)),
        ),
        (
            lambda x, n: tf.tile([[1.0, 2.0]], (n, 2)),
            lambda x: np.tile(np.float32([[1, 2]]), (len(x), 2)),
        ),
    ],
)
def test_a_shape_with_the_number_of_examples_is_traced_once(rows, make, expected) -> None:
    traces, results = on_batches(lambda x: make(x, rows(x)), 8, 5, 1)
    assert traces == 1
    for size, result in zip((8, 5, 1), results, strict=True):
        np.testing.assert_array_equal(result, expected(X[:size]))


def test_a_shape_put_together_from_parts_of_another_is_traced_once() -> None:
    def flat(x):
        return tf.reshape(x, tf.concat([tf.shape(x)[:1], [6]], axis=0))

    traces, results = on_batches(flat, 8, 3)
    assert traces == 1
    np.testing.assert_array_equal(results[1], X[:3].reshape(3, 6))


def test_sizes_of_other_axes_are_numbers_while_tracing() -> None:
    traces, results = on_batches(lambda x: x * float(int(tf.shape(x)[2])), 8, 3)
    assert traces == 1
    np.testing.assert_array_equal(results[0], X * 3)


def test_a_number_that_python_needs_binds_the_trace_to_it() -> None:
    traces, results = on_batches(lambda x: x * float(x.shape[0] + 1), 8, 3, 8)
    assert traces == 2
    np.testing.assert_array_equal(results[1], X[:3] * 4)


@pytest.mark.parametrize("replicas", [2, 3])
def test_random_rows_of_replicas_are_those_of_one_device(replicas: int) -> None:
    def draws(count: int) -> np.ndarray:
        tf.random.set_seed(3)
        strategy = tf.distribute.MirroredStrategy(replicas=count)
        dataset = tf.data.Dataset.from_tensor_slices(X).batch(8)
        (batch,) = strategy.experimental_distribute_dataset(dataset)

        def draw(x):
            return tf.random.normal((tf.shape(x)[0], 5)), tf.random.uniform([x.shape[0], 1, 2])

        parts = [strategy.experimental_local_results(v) for v in strategy.run(draw, args=(batch,))]
        return [np.concatenate([p.numpy() for p in part]) for part in parts]

    for one, other in zip(draws(1), draws(replicas), strict=True):
        np.testing.assert_array_equal(one, other)


def test_shape_computed_from_values_is_refused_on_several_replicas() -> None:
    def zeros(x: Any) -> Any:
        return tf.zeros((tf.cast(tf.reduce_sum(tf.abs(x)), "int32"), 2))

    _, (found,) = on_batches(zeros, 8)
    assert found.shape == zeros(X[:8]).shape
    with pytest.raises(TypeError, match="traced"):
        tf.distribute.MirroredStrategy(replicas=2).run(zeros, args=(tf.constant(X[:8]),))


def test_sizes_that_do_not_fit_an_example_are_named() -> None:
    with pytest.raises(ValueError, match="6 elements"):
        on_batches(lambda x: tf.reshape(x, (x.shape[0], -1, 4)), 8)
