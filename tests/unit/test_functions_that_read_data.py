"""A function may read data: its loop is Python's, and its steps are compiled once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samegrad as tf


def setting(replicas: int = 2) -> tuple[Any, Any, Any]:
    """A strategy, a dataset of two batches under it, and a variable."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        v = tf.Variable(1.0, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    dataset = tf.data.Dataset.from_tensor_slices([5.0, 6.0, 7.0, 8.0]).batch(2)
    return strategy, strategy.experimental_distribute_dataset(dataset), v


def test_a_loop_over_a_dataset_sees_every_batch_in_every_call() -> None:
    strategy, dataset, v = setting()

    @tf.function
    def epoch(data):
        count, product = tf.constant(0.0), tf.constant(2.0)
        for x in data:
            count += 1.0
            product *= strategy.reduce("MEAN", x, axis=0)
        for x in data:
            strategy.run(lambda _: v.assign_add(1.0), args=(x,))
        return count, product

    for call in (1, 2):
        count, product = epoch(dataset)
        assert (float(count), float(product)) == (2.0, 2.0 * 5.5 * 7.5)
        assert float(v) == 1.0 + 2 * call


def test_an_iterator_goes_on_from_call_to_call() -> None:
    strategy, dataset, _ = setting()

    @tf.function
    def step(iterator):
        return strategy.run(lambda x: x * x, args=(next(iterator),))

    iterator = iter(dataset)
    found = [
        [part.numpy().tolist() for part in strategy.experimental_local_results(step(iterator))]
        for _ in range(2)
    ]
    assert found == [[[25.0], [36.0]], [[49.0], [64.0]]]
    with pytest.raises(tf.errors.OutOfRangeError, match="no more elements"):
        step(iterator)


def test_steps_are_counted_and_the_end_is_asked_for() -> None:
    strategy, dataset, v = setting()

    @tf.function
    def some_steps(iterator):
        done = 0
        for _ in tf.range(6):
            batch = iterator.get_next_as_optional()
            if not batch.has_value():
                break
            strategy.run(
                lambda x: v.assign_add(tf.reduce_sum(x) * 0.0 + 1.0), args=(batch.get_value(),)
            )
            done += 1
        return done

    assert int(some_steps(iter(dataset))) == 2
    assert float(v) == 3.0


def test_what_runs_on_replicas_is_traced_once() -> None:
    strategy, dataset, _ = setting()
    traces = []

    def step(x):
        traces.append(x)
        return x + 1.0

    @tf.function
    def epoch():
        def inner(x):  # made anew in each call
            return step(x)

        return [strategy.run(inner, args=(x,)) for x in dataset]

    for _ in range(3):
        assert len(epoch()) == 2
    assert len(traces) == 1


def test_what_is_used_decides_whether_it_is_traced_again() -> None:
    strategy, dataset, _ = setting(1)

    @tf.function
    def scaled(factor):
        found = []
        for x in dataset:
            found.append(strategy.run(lambda y: y * factor, args=(x,)))
        return [float(tf.reduce_sum(x)) for x in found]

    assert scaled(2.0) == [22.0, 30.0]
    assert scaled(3.0) == [33.0, 45.0]
    assert scaled(2.0) == [22.0, 30.0]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_an_epoch_in_a_function_has_the_bits_of_the_loop_outside(replicas: int) -> None:
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)

    def train(inside: bool) -> np.ndarray:
        tf.random.set_seed(1)
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            layer, optimizer = tf.keras.layers.Dense(2), tf.keras.optimizers.Adam()
            layer.build((None, 3))
        data = tf.data.Dataset.from_tensor_slices(x).shuffle(50, seed=1).batch(16)
        data = strategy.experimental_distribute_dataset(data)

        def step(rows):
            with tf.GradientTape() as tape:
                losses = tf.reduce_sum(tf.square(layer(rows)), axis=1)
                loss = tf.nn.compute_average_loss(losses)
            weights = layer.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))

        @tf.function
        def epoch():
            for batch in data:
                strategy.run(step, args=(batch,))

        one = tf.function(lambda batch: strategy.run(step, args=(batch,)))
        for _ in range(2):
            if inside:
                epoch()
            else:
                for batch in data:
                    one(batch)
        return layer.kernel.numpy()

    np.testing.assert_array_equal(train(True), train(False))


def test_data_is_not_read_on_a_replica() -> None:
    strategy, dataset, _ = setting()
    iterator = iter(dataset)
    with pytest.raises(RuntimeError, match="outside strategy.run"):
        strategy.run(lambda: next(iterator))
    with pytest.raises(RuntimeError, match="outside strategy.run"):
        tf.function(lambda: strategy.run(lambda: next(iterator)))()
