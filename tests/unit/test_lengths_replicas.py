"""Lengths of batches that several replicas share: one trace, bitwise identical to one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from length_values import same_bits
from replica_values import cut, examples, shares, strategy

import samegrad as tf

RNG = np.random.default_rng(5)
WORDS = tf.TensorSpec([None, None], tf.float32)
WEIGHTS = RNG.normal(size=(16, 6)).astype(np.float32)
LENGTHS = (5, 3, 9, 1, 4)


def batch(length: int, rows: int) -> np.ndarray:
    return RNG.normal(size=(rows, length)).astype(np.float32)


class Trained:
    """Weights that are trained by sentences of any length, on so many replicas.

    Args:
        replicas: How many.
        apart: Whether each length has a trace of its own.
    """

    def __init__(self, replicas: int, apart: bool = False) -> None:
        self.strategy, self.runs = strategy(replicas), 0
        with self.strategy.scope():
            self.weights = tf.Variable(WEIGHTS, name="weights")

        def step(x: Any) -> Any:
            self.runs += 1
            shares = self.strategy.run(self._step, args=(x,))
            return self.strategy.reduce("SUM", shares, axis=None)

        self.step = tf.function(step, input_signature=None if apart else [WORDS])

    def _step(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            rows = x[..., None] * self.weights[: tf.shape(x)[1]]
            flat = tf.reshape(rows, [-1, 6])
            scores = tf.reshape(tf.nn.softmax(flat @ tf.transpose(WEIGHTS[:6])), tf.shape(rows))
            loss = tf.nn.compute_average_loss(tf.reduce_mean(scores * rows, axis=[1, 2]))
        gradient = tape.gradient(loss, self.weights)
        gradient = tf.distribute.get_replica_context().all_reduce("sum", gradient)
        self.weights.assign_sub(gradient)
        return loss


@pytest.mark.parametrize("counts", [(8,), (4, 4), (2, 2, 2, 2), (5, 3), (6, 0), (3, 4, 1)], ids=str)
def test_shares_of_any_length_have_the_bits_of_a_trace_of_their_own(counts: Any) -> None:
    given = [batch(n, sum(counts)) for n in (*LENGTHS, 5)]
    results = []
    for apart in (False, True):
        trained = Trained(len(counts), apart)
        losses = []
        for array in given:
            parts = cut(array, counts)
            losses.append(trained.step(shares(*parts) if len(parts) > 1 else examples(parts[0])))
        results.append([*losses, tf.convert_to_tensor(trained.weights)])
        assert trained.runs == (len(LENGTHS) if apart else 1)
    assert same_bits(*results)


def test_replicas_give_the_bits_of_one_device() -> None:
    given = [batch(n, 16) for n in LENGTHS]
    results = []
    for replicas in (1, 2, 3):
        trained = Trained(replicas)
        for array in given:
            parts = np.array_split(array, replicas)
            trained.step(shares(*parts) if replicas > 1 else examples(array))
        results.append(tf.convert_to_tensor(trained.weights))
    assert same_bits(results[0], results[1])
    assert same_bits(results[0], results[2])


def test_shares_of_other_sizes_run_the_same_trace() -> None:
    trained = Trained(2)
    for counts in ((4, 4), (3, 1), (1, 0), (5, 2)):
        for n in (4, 7):
            trained.step(shares(*cut(batch(n, sum(counts)), counts)))
    assert trained.runs == 1


def test_a_batched_dataset_gives_its_own_signature() -> None:
    replicas = strategy(2)
    data = tf.data.Dataset.from_generator(
        lambda: iter([np.arange(n, dtype=np.float32) for n in (3, 2, 5, 4, 1, 9)]),
        output_signature=tf.TensorSpec([None], tf.float32),
    ).padded_batch(2)
    distributed = replicas.experimental_distribute_dataset(data)
    runs = []

    @tf.function(input_signature=[distributed.element_spec])
    def step(x: Any) -> Any:
        runs.append(1)
        shares = replicas.run(lambda v: tf.reduce_sum(v), args=(x,))
        return replicas.reduce("SUM", shares, axis=None)

    assert [float(step(x)) for x in distributed] == [4.0, 16.0, 36.0]
    assert len(runs) == 1


def test_parts_of_two_lengths_are_refused() -> None:
    trained = Trained(2)
    with pytest.raises(ValueError, match="may differ in the number of examples"):
        trained.step(shares(batch(3, 2), batch(4, 2)))


def test_counts_and_lengths_that_python_asks_for() -> None:
    """Replicas whose counts decide otherwise have traces of their own, for every length."""
    runs = []
    replicas = strategy(2)

    def of_replica(x: Any) -> Any:
        runs.append(1)
        if x.shape[0] > 2:
            return tf.reduce_sum(x)
        return tf.reduce_max(x) * tf.cast(tf.shape(x)[1], tf.float32)

    @tf.function(input_signature=[WORDS])
    def step(x: Any) -> Any:
        return replicas.run(of_replica, args=(x,))

    for n in (4, 7, 4):
        parts = [batch(n, 3), batch(n, 2)]
        found = step(shares(*parts)).values
        np.testing.assert_allclose(float(found[0]), parts[0].sum(), rtol=1e-5)
        np.testing.assert_allclose(float(found[1]), parts[1].max() * n, rtol=1e-6)
    assert len(runs) == 2
    parts = [batch(5, 4), batch(5, 2)]
    np.testing.assert_allclose(float(step(shares(*parts)).values[0]), parts[0].sum(), rtol=1e-5)
    assert len(runs) == 4


def test_a_draw_of_the_length_is_the_same_for_all_traces() -> None:
    results = []
    for signature in ([WORDS], None):
        replicas = strategy(2)

        def of_replica(x: Any) -> Any:
            noise = tf.random.normal([tf.shape(x)[1]]) + tf.random.uniform(tf.shape(x))
            return tf.reduce_sum(tf.nn.dropout(x + noise, 0.4))

        step = tf.function(
            lambda x, r=replicas: r.run(of_replica, args=(x,)), input_signature=signature
        )
        tf.random.set_seed(9)
        rows = np.ones((6, 5), np.float32)
        results.append([step(shares(*cut(rows[:, :n], (3, 3)))) for n in (4, 2, 5)])
    assert same_bits(*results)
