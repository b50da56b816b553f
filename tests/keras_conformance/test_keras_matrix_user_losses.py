"""Losses and metrics that a user wrote: one device's figures, or an error that names the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras_programs import keras, shared
from matrix_programs import (
    SHARES,
    assert_finite,
    assert_near,
    masked,
    on_one_device,
    on_replicas,
    total,
)

import samegrad as tf

ops, losses, metrics = keras.ops, keras.losses, keras.metrics
UNEVEN = [[4, 1], [2, 1, 1, 1]]
WEIGHTS = tf.Variable(np.random.default_rng(7).normal(size=(4, 3)))
BIAS = tf.Variable(np.array([0.1, 0.2, 0.3]))
FACTOR = 0.1

# Of targets and predictions (n, 2, 3); what becomes of the examples is in the name.
RIGHT = {
    "mean": lambda y, p: ops.mean(ops.square(y - p)),
    "twice a mean": lambda y, p: 2 * ops.mean(ops.abs(y - p)),
    "sum of means": lambda y, p: ops.mean(ops.square(y - p)) + ops.mean(ops.abs(p)) / 2,
    "mean with a bias": lambda y, p: ops.mean(y * p + BIAS) - ops.mean(p - BIAS),
    "rows with a bias": lambda y, p: ops.mean(y * p + BIAS, axis=-1),
    "mean of a part": lambda y, p: ops.mean(p[:, 0]) + ops.mean(y[:, 1] * p[:, 1, :1]),
    "mean of the largest": lambda y, p: ops.mean(ops.max(p, axis=-1)),
    "sum over the number": lambda y, p: ops.sum(y * p) / ops.cast(ops.shape(y)[0], p.dtype),
    "sum over the size": lambda y, p: ops.sum(y * p) / ops.cast(ops.size(y), p.dtype),
    "means over the examples": lambda y, p: ops.mean(ops.square(y - p), axis=0),
    "mean of a loss": lambda y, p: ops.mean(losses.mean_squared_error(y, p)),
    "penalty alone": lambda y, p: FACTOR * ops.sum(ops.square(WEIGHTS)),
    "values": lambda y, p: ops.square(y - p),
    "flat values": lambda y, p: ops.reshape(ops.square(y - p), (-1,)),
    "root of a mean": lambda y, p: ops.sqrt(ops.mean(ops.square(y - p))),
    "product of means": lambda y, p: ops.mean(y) * ops.mean(p),
    "weighted mean": lambda y, p: ops.sum(y * ops.log(p)) / ops.sum(y),
    "weighted mean with a guard": lambda y, p: tf.math.divide_no_nan(
        ops.sum(y * p), ops.maximum(ops.sum(y), 1.0)),
    "overlap": lambda y, p: 1 - (2 * ops.sum(y * p) + 1) / (ops.sum(y) + ops.sum(p) + 1),
    "logarithm of a mean": lambda y, p: ops.log(ops.mean(ops.exp(p))) + ops.mean(y * p),
    "norm of a mean": lambda y, p: ops.sqrt(ops.sum(ops.square(ops.mean(p, axis=0)))),
    "correlation": lambda y, p: ops.mean(y * p) / ops.sqrt(
        ops.mean(ops.square(y)) * ops.mean(ops.square(p))),
    "dice of classes": lambda y, p: losses.dice(y, p, axis=(0, 1)),
}  # fmt: skip
REFUSED = {
    "largest": lambda y, p: ops.max(ops.square(y - p)),
    "sum": lambda y, p: ops.sum(ops.square(y - p)),
    "largest over a sum": lambda y, p: ops.max(p) / ops.sum(y * p),
    "deviation": lambda y, p: ops.std(p),
    "cosine over the examples": lambda y, p: losses.cosine_similarity(y, p, axis=0),
    "largest of the examples": lambda y, p: ops.max(p, axis=0),
}
SUMS = {
    "sum with a bias": lambda y, p: ops.sum(y * p + BIAS),
    "sum": lambda y, p: ops.sum(ops.square(y - p)),
    "sums over the examples": lambda y, p: ops.sum(ops.square(y - p), axis=0),
    "mean": lambda y, p: ops.mean(ops.square(y - p)),
    "penalty": lambda y, p: FACTOR * ops.sum(ops.square(WEIGHTS)),
    "values": lambda y, p: ops.square(y - p),
}


class _Loss(losses.Loss):  # type: ignore[misc,name-defined]
    """A loss of a function."""

    def __init__(self, fn: Any, reduction: str = "sum_over_batch_size") -> None:
        super().__init__(reduction=reduction)
        self._fn = fn

    def call(self, y: Any, p: Any) -> Any:
        """What the function gives."""
        return self._fn(y, p)


def _batch(count: int) -> dict[str, Any]:
    rng = np.random.default_rng(count)
    mask = rng.random((count, 2)) < 0.6
    mask[0, 0] = True
    return {
        "x": rng.normal(size=(count, 2, 4)),
        "y": (rng.random((count, 2, 3)) > 0.5) * 1.0,
        "mask": mask,
        "weight": np.round(rng.random((count, 2)), 2),
    }


def _step(loss: Any, use_mask: bool = False, use_weight: bool = False) -> Any:
    def step(x: Any, y: Any, mask: Any, weight: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            p = ops.sigmoid(ops.matmul(x, WEIGHTS))
            value = loss(y, masked(p, mask if use_mask else None), weight if use_weight else None)
        return {"value": value, "gradient": tape.gradient(value, WEIGHTS)}

    return step


def _check(step: Any, shares: Any, *, traced: bool = True) -> None:
    for sizes in shares:
        wanted = on_one_device(step, _batch(total(sizes)))
        assert_finite(wanted, sizes)
        assert_near(on_replicas(step, _batch(total(sizes)), sizes, traced=traced), wanted, sizes)


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("traced", [True, False])
def test_a_users_mean_is_that_of_the_batch(float64: None, name: str, traced: bool) -> None:
    _check(_step(_Loss(RIGHT[name])), [*SHARES, *UNEVEN] if traced else UNEVEN, traced=traced)


@pytest.mark.parametrize("name", SUMS)
def test_a_users_sum_is_that_of_the_batch(float64: None, name: str) -> None:
    _check(_step(_Loss(SUMS[name], "sum")), [*SHARES, *UNEVEN])


@pytest.mark.parametrize("name", ["mean", "sum of means", "penalty alone"])
@pytest.mark.parametrize("use_mask", [False, True])
def test_a_users_mean_is_weighted_as_a_whole(float64: None, name: str, use_mask: bool) -> None:
    _check(_step(_Loss(RIGHT[name]), use_mask, True), [*SHARES, *UNEVEN])
    _check(_step(_Loss(RIGHT[name], "mean_with_sample_weight"), use_mask, True), UNEVEN)


@pytest.mark.parametrize("name", REFUSED)
def test_what_shows_no_mean_is_refused(float64: None, name: str) -> None:
    with pytest.raises(ValueError, match="one value per example"):
        on_replicas(_step(_Loss(REFUSED[name])), _batch(5), [3, 2])


def test_a_largest_value_is_no_sum(float64: None) -> None:
    with pytest.raises(ValueError, match="one value per example"):
        on_replicas(_step(_Loss(REFUSED["largest"], "sum")), _batch(5), [3, 2])


METRICS = {
    "mean of a loss": (metrics.Mean, lambda m, x, w: m.update_state(
        losses.MeanSquaredError()(x, 2 * x))),
    "mean of a weighted loss": (metrics.Mean, lambda m, x, w: m.update_state(
        losses.MeanSquaredError(reduction="mean_with_sample_weight")(x, 2 * x, w),
        sample_weight=ops.sum(w))),
    "mean of means": (metrics.Mean, lambda m, x, w: m.update_state(ops.mean(x))),
    "mean of means with a bias": (
        metrics.Mean,
        lambda m, x, w: m.update_state(ops.mean(x + BIAS[:2])),
    ),
    "sum of sums with a bias": (
        metrics.Sum,
        lambda m, x, w: m.update_state(ops.sum(x + BIAS[:2])),
    ),
    "mean of means by examples": (metrics.Mean, lambda m, x, w: m.update_state(
        ops.mean(x), sample_weight=ops.shape(x)[0])),
    "mean of means over the examples": (metrics.Mean, lambda m, x, w: m.update_state(
        ops.mean(x, axis=0))),
    "mean of a penalty": (metrics.Mean, lambda m, x, w: m.update_state(ops.sum(WEIGHTS))),
    "mean of a number": (metrics.Mean, lambda m, x, w: m.update_state(3.0, sample_weight=2.0)),
    "mean of values with one weight": (
        metrics.Mean,
        lambda m, x, w: m.update_state(ops.mean(x, axis=-1), sample_weight=2.0),
    ),
    "mean of values with the sum of weights": (
        metrics.MeanSquaredError,
        lambda m, x, w: m.update_state(x, 2 * x, sample_weight=ops.sum(w)),
    ),
    "sum of values with one weight": (
        metrics.Sum,
        lambda m, x, w: m.update_state(x, sample_weight=0.5),
    ),
    "sum of losses": (metrics.Sum, lambda m, x, w: m.update_state(
        losses.MeanSquaredError()(x, 2 * x))),
    "sum of means": (metrics.Sum, lambda m, x, w: m.update_state(ops.mean(x))),
    "sum of sums": (metrics.Sum, lambda m, x, w: m.update_state(ops.sum(x))),
    "mean of a user's mean": (
        lambda: metrics.MeanMetricWrapper(lambda y, p: ops.mean(y - p)),
        lambda m, x, w: m.update_state(x, 3 * x)),
    "mean of a root": (metrics.Mean, lambda m, x, w: m.update_state(
        ops.sqrt(ops.mean(ops.square(x))))),
    "mean of a user's weighted mean": (
        lambda: metrics.MeanMetricWrapper(lambda y, p: ops.sum(y * p) / ops.sum(p)),
        lambda m, x, w: m.update_state(x, ops.square(x))),
}  # fmt: skip
NO_METRICS = {
    "mean of the largest": lambda m, x: m.update_state(ops.max(x)),
    "mean of a deviation": lambda m, x: m.update_state(ops.std(x)),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_mean_of_scalars_is_that_of_all_examples(float64: None, name: str) -> None:
    make, update = METRICS[name]
    for sizes in [*SHARES, *UNEVEN]:
        rng = np.random.default_rng(2)
        batches = [(rng.normal(size=(total(sizes), 2)), rng.random(total(sizes))) for _ in "ab"]
        found, wanted = make(), make()
        strategy = tf.distribute.MirroredStrategy(replicas=len(sizes))

        def step(x: Any, w: Any, metric: Any = found) -> None:
            update(metric, x, w)

        run = tf.function(lambda x, w, s=strategy, f=step: s.run(f, (x, w)))
        for x, w in batches:
            update(wanted, tf.constant(x), tf.constant(w))
            run(shared(x, sizes), shared(w, sizes))
        np.testing.assert_allclose(found.result(), wanted.result(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NO_METRICS)
def test_a_metric_of_what_one_replica_sees_is_refused(name: str) -> None:
    strategy, mean = tf.distribute.MirroredStrategy(replicas=2), metrics.Mean()
    with pytest.raises(ValueError, match=r"\[mean\].*one value per example"):
        strategy.run(lambda x: NO_METRICS[name](mean, x), (shared(np.ones((5, 2)), [3, 2]),))


def _with_a_penalty(y: Any, p: Any) -> Any:
    return ops.mean(ops.square(y - p)) + FACTOR * ops.sum(ops.square(WEIGHTS))


def test_a_mean_and_a_penalty_of_weights_is_that_of_the_batch(float64: None) -> None:
    _check(_step(_Loss(_with_a_penalty)), [*SHARES, *UNEVEN])


@pytest.mark.parametrize("shares", [[5, 1], [1, 0, 5], [2, 2]])
def test_a_mean_over_tokens_counts_those_of_all_replicas(float64: None, shares: list[int]) -> None:
    def over_tokens(y: Any, p: Any) -> Any:
        real = ops.cast(y > 0, p.dtype)
        return ops.sum(ops.square(p) * real) / ops.sum(real)

    batch = _batch(total(shares))
    batch["y"][: shares[0]] = 0.0  # the first replica has one token
    batch["y"][0, 0, 0] = 1.0
    step = _step(_Loss(over_tokens))
    assert_near(on_replicas(step, batch, shares), on_one_device(step, batch), shares)


def test_a_loss_divided_by_the_replicas_already_is_refused(float64: None) -> None:
    def divided(y: Any, p: Any) -> Any:
        context = tf.distribute.get_replica_context()
        return ops.sum(y * p) / ops.sum(y) / context.num_replicas_in_sync

    with pytest.raises(ValueError, match="one value per example"):
        on_replicas(_step(_Loss(divided)), _batch(5), [3, 2])


def test_a_function_of_means_with_a_derivative_of_its_own_is_refused(float64: None) -> None:
    @tf.custom_gradient
    def root(x: Any) -> Any:
        y = tf.sqrt(x)
        return y, lambda dy: dy / (2 * y + 1)

    loss = _Loss(lambda y, p: root(ops.mean(ops.square(y - p))))
    with pytest.raises(ValueError, match="one value per example"):
        on_replicas(_step(loss), _batch(5), [3, 2])
