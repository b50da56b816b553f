"""The doctor on samegrad's own losses, optimizers and loops: nothing is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from public_classes import public_classes

import samegrad as tf
from samegrad.testing import Outcome, assert_replica_equivalent, diagnose
from samegrad.testing.adapters import samegrad_step

RNG = np.random.default_rng(4)
X = RNG.normal(size=(12, 9))
START = RNG.normal(size=(9, 3)) / 3
LABELS = RNG.integers(0, 3, 12)
losses = tf.keras.losses
NAMES = public_classes(losses, losses.Loss)


def model_with(loss_of: Any, optimizer: Any = None) -> Any:
    """A build function for the doctor: a softmax layer and a loss of (labels, probabilities)."""

    def build() -> Any:
        w = tf.Variable(START)
        own = optimizer() if optimizer else tf.keras.optimizers.SGD(np.float64(0.1))

        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_of(y, tf.nn.softmax(tf.matmul(x, w)))
            own.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        return step, [w]

    return build


def truth(name: str) -> np.ndarray:
    return LABELS if "Sparse" in name else np.eye(3)[LABELS]


@pytest.mark.parametrize("name", NAMES)
def test_the_global_mean_of_every_loss_is_right(name: str) -> None:
    loss = getattr(losses, name)(reduction=losses.Reduction.GLOBAL_MEAN)
    step = samegrad_step(model_with(loss))
    assert_replica_equivalent(step, (X, truth(name)), replicas=(2, 3, 4))


@pytest.mark.parametrize("name", NAMES)
def test_the_sum_of_every_loss_divided_by_a_fixed_batch_is_a_convention(name: str) -> None:
    loss = getattr(losses, name)(reduction="sum")
    step = samegrad_step(model_with(lambda y, p: loss(y, p) / 64.0))
    found = diagnose(step, (X, truth(name)))
    assert found.correct and "convention" in found.notes[0], str(found)


SGD = tf.keras.optimizers.SGD


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: SGD(np.float64(0.1), momentum=0.9, nesterov=True),
        lambda: SGD(np.float64(0.1), clipnorm=0.01),
        lambda: SGD(np.float64(0.1), clipvalue=0.01),
        lambda: SGD(np.float64(0.1), global_clipnorm=0.01),
        lambda: tf.keras.mixed_precision.LossScaleOptimizer(SGD(np.float64(0.1)), dynamic=False,
                                                            initial_scale=8.0),
    ],
    ids=["momentum", "clipnorm", "clipvalue", "global_clipnorm", "loss scale"],
)  # fmt: skip
def test_optimizers_make_the_update_of_one_device(optimizer: Any) -> None:
    loss = losses.CategoricalCrossentropy(reduction=losses.Reduction.GLOBAL_MEAN)
    step = samegrad_step(model_with(loss, optimizer))
    found = diagnose(step, (X, np.eye(3)[LABELS]), replicas=(2, 3))
    assert found.correct and not found.reported, str(found)


def test_weights_of_examples_are_divided_by_those_of_all_replicas() -> None:
    weights = RNG.uniform(0.5, 2.0, 12)
    each = losses.MeanSquaredError(reduction="none")

    def build() -> Any:
        w = tf.Variable(START)
        optimizer = tf.keras.optimizers.SGD(np.float64(0.1))

        def step(x: Any, y: Any, own: Any) -> Any:
            with tf.GradientTape() as tape:
                values = each(y, tf.matmul(x, w))
                loss = tf.nn.compute_weighted_mean_loss(values, own)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        return step, [w]

    batch = (X, np.eye(3)[LABELS], weights)
    assert_replica_equivalent(samegrad_step(build), batch, weights=weights)


def test_accumulated_gradients_have_one_denominator() -> None:
    def step(shares: list[Any]) -> Outcome:
        windows = [s if isinstance(s, list) else [s] for s in shares]
        strategy = tf.distribute.MirroredStrategy(replicas=len(windows))
        with strategy.scope():
            w = tf.Variable(START)
            sgd = tf.keras.optimizers.SGD(np.float64(0.1))
            accumulator = tf.keras.optimizers.GradientAccumulator(sgd, steps=len(windows[0]))

        def micro_step(x: Any, y: Any) -> None:
            with tf.GradientTape() as tape:
                total = tf.reduce_sum(tf.square(tf.matmul(x, w) - y))
            accumulator.apply_gradients([(tape.gradient(total, w), w)], count=tf.shape(x)[0])

        for k in range(len(windows[0])):
            parts = [[window[k][i] for window in windows] for i in range(2)]
            run(strategy, micro_step, parts)
        return Outcome([w.numpy() - START])

    batch = (X, np.eye(3)[LABELS])
    assert_replica_equivalent(step, batch, replicas=(1, 2, 3), micro_batches=(1, 2))


def run(strategy: Any, fn: Any, columns: list[list[np.ndarray]]) -> None:
    """fn on the replicas, with one array per replica in each column."""
    arguments = tuple(
        strategy.experimental_distribute_values_from_function(
            lambda context, column=column: column[context.replica_id_in_sync_group]
        )
        for column in columns
    )
    strategy.run(fn, args=arguments)
