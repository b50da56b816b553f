"""What holds for every loss and every metric; a new one is tested as soon as it is public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from loss_cases import (
    CHANCES,
    COMPARES_ROWS,
    LABELS,
    LOSS_ARGUMENTS,
    METRIC_ARGUMENTS,
    ROWS,
    TAKES_LABELS,
    metric_inputs,
    outputs_of,
    predicted,
    truth,
)
from public_classes import public_classes

import samegrad as tf

losses, metrics = tf.keras.losses, tf.keras.metrics
LOSSES = public_classes(losses, losses.Loss)
# Of tensors of one shape, not of examples.
METRICS = [name for name in public_classes(metrics, metrics.Metric) if name != "MeanTensor"]
each_loss = pytest.mark.parametrize("name", LOSSES)
each_metric = pytest.mark.parametrize("name", METRICS)
EQUAL_SHARES = (2, 4)


def loss_of(name: str, /, **options: Any) -> Any:
    return getattr(losses, name)(**LOSS_ARGUMENTS.get(name, {}), **options)


def metric_of(name: str) -> Any:
    return getattr(metrics, name)(**METRIC_ARGUMENTS.get(name, {}))


def pair_of(name: str) -> tuple[Any, Any]:
    numbers = np.random.default_rng(3).normal(size=(ROWS, outputs_of(name)))
    return tf.constant(truth(name)), predicted(name, tf.constant(numbers.astype(np.float32)))


def test_the_tables_name_public_classes() -> None:
    assert {*LOSS_ARGUMENTS, *TAKES_LABELS, *COMPARES_ROWS} <= set(LOSSES)
    assert set(METRIC_ARGUMENTS) <= set(METRICS)


@each_loss
def test_a_loss_is_one_number_per_example_or_their_sum_or_mean(name: str) -> None:
    pair = pair_of(name)
    each = loss_of(name, reduction="none")(*pair).numpy()
    assert each.shape == (ROWS,) and np.isfinite(each).all()
    np.testing.assert_allclose(loss_of(name, reduction="sum")(*pair), each.sum(), rtol=1e-6)
    np.testing.assert_allclose(loss_of(name)(*pair), each.mean(), rtol=1e-6)


@each_loss
def test_the_configuration_of_a_loss_makes_an_equal_one(name: str) -> None:
    loss, pair = loss_of(name, name="own"), pair_of(name)
    again = type(loss).from_config(loss.get_config())
    assert again.get_config() == loss.get_config() and again.name == "own"
    np.testing.assert_array_equal(again(*pair), loss(*pair))


@each_loss
def test_the_loss_of_an_example_does_not_depend_on_the_others(name: str) -> None:
    if name in COMPARES_ROWS:
        pytest.skip("it compares examples")
    y, p = pair_of(name)
    loss = loss_of(name, reduction="none")
    parts = [loss(y[:5], p[:5]).numpy(), loss(y[5:], p[5:]).numpy()]
    np.testing.assert_array_equal(loss(y, p), np.concatenate(parts))


@each_loss
def test_sample_weights_weigh_the_examples(name: str) -> None:
    pair, weights = pair_of(name), np.arange(ROWS, dtype=np.float32)
    each = loss_of(name, reduction="none")
    weighted = each(*pair, sample_weight=weights)
    np.testing.assert_allclose(weighted, each(*pair).numpy() * weights, rtol=1e-6)


@each_loss
def test_an_unknown_reduction_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="Invalid value.*reduction.*global_mean"):
        loss_of(name, reduction="global_mean")


def learned(name: str, replicas: int, options: dict[str, Any], **arguments: Any) -> list[Any]:
    """The loss over all replicas and its gradient."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    rng = np.random.default_rng(4)
    x = rng.normal(size=(ROWS, 5)).astype(np.float32)
    weights = rng.uniform(0.5, 2.0, ROWS).astype(np.float32)
    with strategy.scope():
        w = tf.Variable(rng.normal(size=(5, outputs_of(name))).astype(np.float32))
    loss = getattr(losses, name)(**options, **arguments)

    def step(rows: Any, targets: Any, own: Any) -> Any:
        with tf.GradientTape(persistent=True) as tape:
            p = predicted(name, tf.matmul(rows, w))
            values = [loss(targets, p), loss(targets, p, sample_weight=own)]
        total = tf.distribute.get_replica_context().all_reduce
        return values, [total("sum", tape.gradient(value, w)) for value in values]

    dataset = tf.data.Dataset.from_tensor_slices((x, truth(name), weights)).batch(ROWS)
    (batch,) = strategy.experimental_distribute_dataset(dataset)

    values, gradients = strategy.run(tf.function(step), args=batch)
    found = [strategy.reduce("SUM", value, axis=None) for value in values]
    found += [strategy.experimental_local_results(gradient)[0] for gradient in gradients]
    return [np.asarray(value) for value in found]


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "mean_with_sample_weight"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, LOSS_ARGUMENTS.get(name, {})) for name in LOSSES),
        *((name, {}) for name in LOSS_ARGUMENTS),
    ],
    ids=str,
)
def test_the_shares_of_replicas_add_up_to_the_bits_of_one_device(
    name: str, options: dict[str, Any], reduction: str
) -> None:
    expected = learned(name, 1, options, reduction=reduction)
    assert all(np.isfinite(value).all() for value in expected)
    for replicas in EQUAL_SHARES:
        found = learned(name, replicas, options, reduction=reduction)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)


def state_of(name: str, replicas: int) -> list[np.ndarray]:
    """A metric's result and variables after two batches, with weights in the second."""
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        metric = metric_of(name)
    arrays = metric_inputs(name)
    weights = np.linspace(0.2, 2.0, ROWS, dtype=np.float32)
    for parts, option in (((*arrays,), False), ((*(a[::-1] for a in arrays), weights), True)):
        dataset = tf.data.Dataset.from_tensor_slices(parts).batch(ROWS)
        (batch,) = strategy.experimental_distribute_dataset(dataset)
        batch = batch if isinstance(batch, tuple) else (batch,)

        @tf.function
        def update(*parts: Any, weighted: bool = option) -> None:
            given = {"sample_weight": parts[-1]} if weighted else {}
            metric.update_state(*(parts[:-1] if weighted else parts), **given)

        strategy.run(update, args=batch)
    return [np.asarray(x) for x in (metric.result(), *metric.variables)]


@each_metric
def test_a_metric_over_replicas_has_the_bits_of_one_device(name: str) -> None:
    expected = state_of(name, 1)
    assert all(np.isfinite(value).all() for value in expected)
    for replicas in EQUAL_SHARES:
        for one, other in zip(expected, state_of(name, replicas), strict=True):
            np.testing.assert_array_equal(one, other)


@each_metric
def test_a_metric_that_is_reset_is_a_new_one(name: str) -> None:
    metric, new = metric_of(name), metric_of(name)
    arrays = metric_inputs(name)
    metric.update_state(*arrays)
    first = np.asarray(metric.result())
    metric.reset_state()
    for one, other in zip(metric.variables, new.variables, strict=False):  # some are made later
        np.testing.assert_array_equal(one, other)
    metric.update_state(*arrays)
    np.testing.assert_array_equal(metric.result(), first)


@each_metric
def test_the_configuration_of_a_metric_makes_an_equal_one(name: str) -> None:
    metric, arrays = metric_of(name), metric_inputs(name)
    again = type(metric).from_config(metric.get_config())
    assert again.get_config() == metric.get_config()
    for made in (metric, again):
        made.update_state(*arrays)
    np.testing.assert_array_equal(again.result(), metric.result())


def test_predictions_of_another_shape_are_refused_with_both_shapes() -> None:
    with pytest.raises(ValueError, match=r"\(12, 2\)"):
        losses.MeanSquaredError()(CHANCES[:, :2], CHANCES)
    with pytest.raises(ValueError, match="num_classes|rank|shape"):
        losses.SparseCategoricalCrossentropy()(LABELS[:5], CHANCES)
