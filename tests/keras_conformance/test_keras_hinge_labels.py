"""Hinge losses: labels of 0 and 1 become -1 and 1 if those of all replicas are of this kind."""

from __future__ import annotations

import numpy as np
import pytest

import samegrad as tf
from samegrad import keras

PREDICTIONS = np.array([[0.5, -0.25], [0.75, 1.5], [-0.4, 0.1]], np.float32)
LABELS = {
    "binary": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
    "signed": [[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]],
    # Those of the first two examples, a replica's, are binary.
    "binary on one replica": [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]],
}


def expected(name, labels):
    """The mean over the examples, by NumPy."""
    labels = np.array(labels, np.float32)
    if np.isin(labels, [0.0, 1.0]).all():
        labels = 2.0 * labels - 1.0
    losses = np.maximum(1.0 - labels * PREDICTIONS, 0.0)
    return float(np.mean(losses**2 if name.startswith("Squared") else losses))


def source(kind, strategy, labels):
    """What a program gives to `run`, and what a step makes labels and predictions of."""
    labels = np.array(labels, np.float32)
    if kind == "dataset":
        dataset = tf.data.Dataset.from_tensor_slices((labels, PREDICTIONS)).batch(3)
        return next(iter(strategy.experimental_distribute_dataset(dataset))), lambda y, x: (y, x)
    if kind == "plain":
        tensors = tf.constant(labels), tf.constant(PREDICTIONS)
        return (), lambda: tensors
    if kind == "mirrored":
        with strategy.scope():
            variables = tf.Variable(labels), tf.Variable(PREDICTIONS)
        return (), lambda: tuple(v.read_value() for v in variables)
    return (labels, PREDICTIONS), lambda y, x: (y, x)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("kind", ["dataset", "plain", "mirrored", "arrays"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", ["Hinge", "SquaredHinge"])
def test_hinge_loss_and_metric_decide_by_the_labels_of_all_replicas(
    name, labels, kind, replicas, traced
):
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    args, operands = source(kind, strategy, LABELS[labels])
    loss = getattr(keras.losses, name)()
    with strategy.scope():
        metric = getattr(keras.metrics, name)()

    def step(*given):
        y, x = operands(*given)
        metric.update_state(y, x)
        return loss(y, x)

    def program(*given):
        return strategy.reduce("SUM", strategy.run(step, args=given), axis=None)

    found = (tf.function(program) if traced else program)(*args)
    right = expected(name, LABELS[labels])
    assert float(found) == pytest.approx(right, rel=1e-6)
    assert float(metric.result()) == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", ["Hinge", "SquaredHinge"])
def test_hinge_loss_outside_of_run_decides_by_the_labels(name, labels, traced):
    loss = getattr(keras.losses, name)()
    given = tf.constant(LABELS[labels]), tf.constant(PREDICTIONS)
    found = (tf.function(loss) if traced else loss)(*given)
    assert float(found) == pytest.approx(expected(name, LABELS[labels]), rel=1e-6)
