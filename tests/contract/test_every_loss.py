"""What holds for every loss and every metric; a new one is tested as soon as it is public."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from public_classes import public_classes

import samegrad as tf

losses, metrics = tf.keras.losses, tf.keras.metrics
ROWS, CLASSES = 12, 3


def concrete(module: Any, base: type) -> list[str]:
    """The classes that users make themselves without a function."""
    return [
        name
        for name in public_classes(module, base)
        if "fn" not in inspect.signature(getattr(module, name)).parameters
    ]


LOSSES = concrete(losses, losses.Loss)
METRICS = concrete(metrics, metrics.Metric)


def truth_and_prediction(name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    predictions = rng.dirichlet(np.ones(CLASSES), ROWS).astype(np.float32)
    labels = rng.integers(0, CLASSES, ROWS)
    return (labels if "Sparse" in name else np.eye(CLASSES, dtype=np.float32)[labels]), predictions


def under(replicas: int, fn: Any, *arrays: np.ndarray, batch: int = ROWS) -> tuple[Any, list]:
    """The strategy, and what fn gives on its replicas for each batch."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(batch)
    batches = strategy.experimental_distribute_dataset(dataset)
    return strategy, [strategy.run(fn, args=shares) for shares in batches]


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_one_number_per_example_or_their_sum_or_mean(name: str) -> None:
    kind, pair = getattr(losses, name), truth_and_prediction(name)
    each = kind(reduction="none")(*pair).numpy()
    assert each.shape == (ROWS,) and np.isfinite(each).all()
    np.testing.assert_allclose(kind(reduction="sum")(*pair), each.sum(), rtol=1e-6)
    np.testing.assert_allclose(kind()(*pair), each.mean(), rtol=1e-6)
    again = kind.from_config(kind().get_config())
    np.testing.assert_array_equal(again(*pair), kind()(*pair))


@pytest.mark.parametrize("name", LOSSES)
def test_sample_weights_weigh_the_examples(name: str) -> None:
    kind, pair = getattr(losses, name), truth_and_prediction(name)
    weights = np.arange(ROWS, dtype=np.float32)
    each, weighted = kind(reduction="none"), kind(reduction="none")(*pair, sample_weight=weights)
    np.testing.assert_allclose(weighted, each(*pair).numpy() * weights, rtol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_under_a_strategy_the_default_reduction_is_refused_with_a_remedy(name: str) -> None:
    loss = getattr(losses, name)()
    with pytest.raises(ValueError, match="GLOBAL_MEAN"):
        under(2, loss, *truth_and_prediction(name))


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("name", LOSSES)
def test_the_global_mean_is_that_of_one_device(name: str, replicas: int) -> None:
    kind, pair = getattr(losses, name), truth_and_prediction(name)
    strategy, shares = under(replicas, kind(reduction=losses.Reduction.GLOBAL_MEAN), *pair, batch=7)
    found = [float(strategy.reduce("SUM", share, axis=None)) for share in shares]
    each = kind(reduction="none")(*pair).numpy()
    np.testing.assert_allclose(found, [each[:7].mean(), each[7:].mean()], rtol=1e-6)


def metric_arguments(name: str) -> tuple[np.ndarray, ...]:
    pair = truth_and_prediction(name)
    takes_pair = "y_pred" in inspect.signature(getattr(metrics, name).update_state).parameters
    if name == "Accuracy":  # compares labels
        return pair[0].argmax(axis=1), pair[1].argmax(axis=1)
    return pair if takes_pair or name not in ("Mean", "Sum") else pair[1:]


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("name", METRICS)
def test_a_metric_over_replicas_has_the_figure_of_one_device(name: str, replicas: int) -> None:
    arrays = metric_arguments(name)
    alone = getattr(metrics, name)()
    alone.update_state(*arrays)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        metric = getattr(metrics, name)()
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(7)
    for shares in strategy.experimental_distribute_dataset(dataset):
        strategy.run(metric.update_state, args=shares if isinstance(shares, tuple) else (shares,))
    np.testing.assert_allclose(metric.result(), alone.result(), rtol=1e-6)
    metric.reset_state()
    assert float(metric.result()) == 0


@pytest.mark.parametrize("name", METRICS)
def test_the_configuration_of_a_metric_makes_an_equal_one(name: str) -> None:
    metric = getattr(metrics, name)()
    again = type(metric).from_config(metric.get_config())
    assert again.get_config() == metric.get_config()
