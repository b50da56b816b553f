"""explain() says whether replicas give the bits of one device, and what departs from it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import samegrad as tf

ROWS = np.arange(24, dtype=np.float32).reshape(12, 2)


def explained(fn, replicas: int = 4, strategy: tf.distribute.Strategy | None = None) -> list[str]:
    """The lines of explain() for fn(rows): the second one and the reasons under it."""
    strategy = strategy or tf.distribute.MirroredStrategy(replicas=replicas)
    dataset = tf.data.Dataset.from_tensor_slices(ROWS).batch(12)
    rows = next(iter(strategy.experimental_distribute_dataset(dataset)))
    lines = strategy.explain(fn, args=(rows,)).splitlines()
    return [line for line in lines if line.startswith(("bits:", "  - "))]


def all_reduced(value):
    return tf.distribute.get_replica_context().all_reduce("sum", value)


def test_a_sum_that_goes_straight_to_its_all_reduce_keeps_the_bits() -> None:
    (line,) = explained(lambda rows: all_reduced(tf.reduce_sum(rows * 0.5, axis=0)))
    assert line.startswith("bits: those of one replica")


def test_the_loss_divided_by_the_global_batch_and_its_gradients_keep_the_bits() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    with strategy.scope():
        w = tf.Variable(np.ones((2, 1), np.float32))
        optimizer = tf.keras.optimizers.Adam()

    def step(rows):
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum((rows @ w) ** 2, axis=1))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return all_reduced(loss)

    (line,) = explained(step, strategy=strategy)
    assert line.startswith("bits: those of one replica")


@pytest.mark.parametrize(
    ("fn", "reason"),
    [
        (
            lambda rows: all_reduced(tf.reduce_sum(rows) * tf.reduce_sum(rows)),
            "mul .* changes a replica's sum",
        ),
        (
            lambda rows: all_reduced(tf.reduce_max(rows, axis=0) * 0.3),
            "reduce_max .* needs all examples of a replica",
        ),
        (
            lambda rows: all_reduced(
                tf.while_loop(
                    lambda i, total: i < 3,
                    lambda i, total: (i + 1, total + tf.exp(tf.reduce_sum(rows))),
                    (tf.constant(0), tf.constant(0.0)),
                )[1]
            ),
            "exp .* changes a replica's sum",
        ),
        (
            lambda rows: all_reduced(
                tf.cond(tf.reduce_sum(rows) > 0.0, lambda: 1.0, lambda: 2.0) * 2.0
            ),
            "greater .* changes a replica's sum",
        ),
        (lambda rows: all_reduced(tf.exp(tf.reduce_sum(rows))), "exp .* changes a replica's sum"),
        (
            lambda rows: all_reduced(tf.cast(tf.shape(rows)[0], "float32")),
            "reads the replica's number of examples",
        ),
        (
            lambda rows: all_reduced(
                tf.distribute.get_replica_context().replica_id_in_sync_group * 2
            ),
            "replica_id .* differs by replica",
        ),
        (
            lambda rows: tf.distribute.get_replica_context().all_reduce(
                "mean", tf.reduce_sum(rows)
            ),
            "mean of the replicas' sums",
        ),
    ],
)
def test_what_departs_is_named_with_its_line(fn, reason: str) -> None:

    lines = explained(fn)
    assert lines[0].startswith("bits: may differ")
    assert any(re.search(reason, line) for line in lines[1:]), lines
    assert any("test_explain.py:" in line for line in lines[1:]), lines


def linear_functions_of_sums(rows, replicas: int = 4):
    """Of a sum over the examples and each replica's share of a constant."""
    total = tf.reduce_sum(rows, axis=0)
    share = tf.constant([1.3, 2.7]) / replicas
    both = tf.concat([total * 0.3, share], axis=0) - tf.repeat(total, 2)
    looped = tf.while_loop(
        lambda i, kept: i < 3,
        lambda i, kept: (i + 1, kept + both * 0.7),
        (tf.constant(0), tf.zeros(4)),
    )[1]
    return tf.cond(tf.constant(True), lambda: looped / 3.0, lambda: tf.abs(tf.ones(4)))


def test_an_all_reduce_of_linear_functions_is_one_of_the_sums_and_keeps_the_bits() -> None:
    (line,) = explained(lambda rows: all_reduced(linear_functions_of_sums(rows)))
    assert line.startswith("bits: those of one replica")


def test_the_plan_shows_the_all_reduce_before_the_function() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=4)
    dataset = tf.data.Dataset.from_tensor_slices(ROWS).batch(12)
    rows = next(iter(strategy.experimental_distribute_dataset(dataset)))
    plan = strategy.explain(lambda r: all_reduced(tf.reduce_sum(r, axis=0) * 0.3), args=(rows,))
    tree, reduced, scaled = (plan.index(word) for word in ("reduce_sum", "all_reduce", " mul "))
    assert tree < reduced < scaled
    assert "float32 (2,), partial" in plan


def test_linear_functions_of_sums_have_the_value_of_one_device() -> None:
    rng = np.random.default_rng(4)
    table = (rng.normal(size=(96, 2)) * np.exp(rng.normal(size=(96, 1)) * 3)).astype(np.float32)

    def value(replicas: int) -> np.ndarray:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        dataset = tf.data.Dataset.from_tensor_slices(table).batch(96)
        rows = next(iter(strategy.experimental_distribute_dataset(dataset)))

        def step(share):
            return all_reduced(linear_functions_of_sums(share, replicas))

        (first, *_) = strategy.experimental_local_results(strategy.run(step, args=(rows,)))
        return first.numpy()

    one = value(1)
    for replicas in (2, 4, 8):
        np.testing.assert_array_equal(value(replicas), one)


def test_a_number_of_replicas_that_is_no_power_of_two_is_named() -> None:
    lines = explained(lambda rows: all_reduced(tf.reduce_sum(rows)), replicas=3)
    assert lines[1] == "  - 3 replicas are no power of two"


def test_nothing_is_run() -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=2)
    with strategy.scope():
        v = tf.Variable(1.0)
    strategy.explain(lambda: v.assign_add(1.0))
    assert float(v) == 1.0
