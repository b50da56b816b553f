"""The doctor on samegrad's own losses, optimizers and loops: nothing is wrong with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loss_cases import COMPARES_ROWS, LOSS_ARGUMENTS, outputs_of, predicted, truth
from public_classes import public_classes

import samegrad as tf
from samegrad.testing import Outcome, assert_replica_equivalent, diagnose
from samegrad.testing.adapters import samegrad_step

RNG = np.random.default_rng(4)
X = RNG.normal(size=(12, 9))
LABELS = RNG.integers(0, 3, 12)
START = RNG.normal(size=(9, 3)) / 3
losses = tf.keras.losses
NAMES = public_classes(losses, losses.Loss)


def model_with(name: str, loss_of: Any, optimizer: Any = None) -> Any:
    """A build function for the doctor: a layer and a loss of (targets, predictions)."""
    start = np.random.default_rng(5).normal(size=(9, outputs_of(name))) / 3

    def build() -> Any:
        w = tf.Variable(start)
        own = optimizer() if optimizer else tf.keras.optimizers.SGD(0.1)

        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_of(y, predicted(name, tf.matmul(x, w)))
                scaled = own.scale_loss(loss)
            own.apply_gradients([(tape.gradient(scaled, w), w)])
            return loss

        return step, [w]

    return build


def loss_of(name: str, **options: Any) -> Any:
    return getattr(losses, name)(**LOSS_ARGUMENTS.get(name, {}), dtype="float64", **options)


def batch_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    return X, truth(name, LABELS)


def checked(name: str) -> Any:
    """Inside, a loss over pairs of one replica's examples is meant."""
    mode = "off" if name in COMPARES_ROWS else "error"
    return tf.config.replica_dependence_check(mode)


@pytest.mark.parametrize("name", NAMES)
def test_the_default_reduction_of_every_loss_is_right(name: str) -> None:
    step = samegrad_step(model_with(name, loss_of(name)))
    with checked(name):
        assert_replica_equivalent(step, batch_of(name), replicas=(2, 3, 4))


@pytest.mark.parametrize("name", NAMES)
def test_the_sum_of_every_loss_divided_by_a_fixed_batch_is_a_convention(name: str) -> None:
    loss = loss_of(name, reduction="sum")
    step = samegrad_step(model_with(name, lambda y, p: loss(y, p) / 64.0))
    with checked(name):
        found = diagnose(step, batch_of(name))
    note = "a loss over pairs" if name in COMPARES_ROWS else "convention"
    assert found.correct and note in found.notes[0], str(found)


SGD = tf.keras.optimizers.SGD


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: SGD(0.1, momentum=0.9, nesterov=True),
        lambda: SGD(0.1, clipnorm=0.01),
        lambda: SGD(0.1, clipvalue=0.01),
        lambda: SGD(0.1, global_clipnorm=0.01),
        lambda: tf.keras.optimizers.LossScaleOptimizer(SGD(0.1), initial_scale=8.0),
    ],
    ids=["momentum", "clipnorm", "clipvalue", "global_clipnorm", "loss scale"],
)  # fmt: skip
def test_optimizers_make_the_update_of_one_device(optimizer: Any) -> None:
    name = "CategoricalCrossentropy"
    step = samegrad_step(model_with(name, loss_of(name), optimizer))
    found = diagnose(step, batch_of(name), replicas=(2, 3))
    assert found.correct and not found.reported_loss_issue, str(found)


def test_weights_of_examples_are_divided_by_those_of_all_replicas() -> None:
    weights = RNG.uniform(0.5, 2.0, 12)
    each = loss_of("MeanSquaredError", reduction="none")

    def build() -> Any:
        w = tf.Variable(START)
        optimizer = tf.keras.optimizers.SGD(0.1)

        def step(x: Any, y: Any, own: Any) -> Any:
            with tf.GradientTape() as tape:
                values = each(y, tf.matmul(x, w))
                loss = tf.nn.compute_weighted_mean_loss(values, own)
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        return step, [w]

    batch = (X, np.eye(3)[LABELS], weights)
    assert_replica_equivalent(samegrad_step(build), batch, weights=weights)


def test_accumulated_gradients_are_the_mean_of_those_of_the_steps() -> None:
    """So the parts of a batch, each times the number of parts, make the step of the batch."""

    def step(shares: list[Any]) -> Outcome:
        windows = [s if isinstance(s, list) else [s] for s in shares]
        strategy = tf.distribute.MirroredStrategy(replicas=len(windows))
        with strategy.scope():
            w = tf.Variable(START)
            parts = len(windows[0])
            sgd = SGD(0.1, gradient_accumulation_steps=parts if parts > 1 else None)

        def micro_step(x: Any, y: Any) -> None:
            with tf.GradientTape() as tape:
                total = tf.reduce_sum(tf.square(tf.matmul(x, w) - y)) * (parts / len(X))
            sgd.apply_gradients([(tape.gradient(total, w), w)])

        for k in range(parts):
            run(strategy, micro_step, [[window[k][i] for window in windows] for i in range(2)])
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
