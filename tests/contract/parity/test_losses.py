"""Loss helpers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import samegrad as tf

from .values import local, mirrored, per_replica

compute = tf.nn.compute_average_loss
regularization = tf.nn.scale_regularization_loss


@pytest.mark.parity("loss: [1..5] with global batch 10 is 1.5")
def test_the_average_divides_by_the_batch_given() -> None:
    assert float(compute([1.0, 2.0, 3.0, 4.0, 5.0], global_batch_size=10)) == 1.5


@pytest.mark.parity("loss: [2.5,6.2,5.] is 4.56667 alone and half of it on each of two")
def test_replicas_that_have_the_same_losses_share_the_average() -> None:
    losses = [2.5, 6.2, 5.0]
    assert float(compute(losses)) == pytest.approx(4.56667, abs=1e-5)
    strategy = mirrored()
    shares = strategy.run(lambda: compute(tf.constant(losses)))
    assert local(strategy, shares) == pytest.approx([2.28333, 2.28333], abs=1e-5)
    assert float(strategy.reduce("SUM", shares, axis=None)) == pytest.approx(4.56667, abs=1e-5)


@pytest.mark.parity("loss: sample weights weigh, the batch divides")
@pytest.mark.parametrize(
    ("losses", "weights", "expected"),
    [
        ([2.0, 4.0, 6.0], 2.0, 8.0),
        ([2.0, 4.0, 6.0], [0.3, 0.5, 0.2], 1.266667),
        ([[2.0, 0.5], [4.0, 1.0]], [[0.3, 0.7], [0.2, 0.8]], 1.275),
    ],
)
def test_sample_weights(losses, weights, expected) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = float(compute(losses, sample_weight=weights))
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parity("loss: without a batch size the actual global count divides")
@pytest.mark.parametrize(
    ("parts", "expected"), [(([1.0, 2.0, 3.0], [10.0]), 4.0), (([8.0], []), 8.0)]
)
def test_the_actual_count_divides_where_shares_are_uneven(parts, expected) -> None:
    strategy = mirrored()
    values = per_replica(strategy, *(np.asarray(part, np.float32) for part in parts))
    shares = strategy.run(compute, args=(values,))
    assert float(strategy.reduce("SUM", shares, axis=None)) == expected


@pytest.mark.parity("loss: global batch size 0, -1, 4.0, [4]; scalar loss; other weights")
def test_senseless_batch_sizes_and_losses() -> None:
    losses = [1.0, 2.0]
    assert float(compute(losses, global_batch_size=0)) == 0.0
    with pytest.raises(ValueError, match="-1"):
        compute(losses, global_batch_size=-1)
    with pytest.raises(TypeError, match=r"4\.0"):
        compute(losses, global_batch_size=4.0)
    with pytest.raises(ValueError, match=r"\[4\]|\(1,\)"):
        compute(losses, global_batch_size=[4])
    with pytest.raises(ValueError, match="per example|scalar|number"):
        compute(3.0)
    with pytest.raises(ValueError, match="3"):
        compute(losses, sample_weight=[1.0, 2.0, 3.0])


@pytest.mark.parity("loss: in cross-replica context only with a batch size; float64 stays")
def test_cross_replica_context_needs_the_batch_size() -> None:
    with mirrored().scope():
        with pytest.raises(RuntimeError, match="global_batch_size"):
            compute([2.0, 3.0])
        assert float(compute([2.0, 3.0], global_batch_size=4)) == 1.25
    assert compute(np.array([1.0, 2.0])).dtype == tf.float64


@pytest.mark.parity("loss: scale_regularization_loss divides by the replicas")
def test_regularization_is_divided_by_the_replicas() -> None:
    losses = [2.5, 6.2, 5.0]
    assert float(regularization(losses)) == pytest.approx(13.7, abs=1e-5)
    assert float(regularization([])) == 0.0
    strategy = mirrored()
    shares = strategy.run(lambda: regularization(losses))
    assert local(strategy, shares) == pytest.approx([6.85] * len(local(strategy, shares)))
    with strategy.scope(), pytest.raises(RuntimeError):
        regularization(losses)


@pytest.mark.parity("loss: the default reduction is the share of the mean over all replicas")
@pytest.mark.parametrize(
    "options", [{}, {"reduction": "sum_over_batch_size"}, {"reduction": "mean"}]
)
def test_the_default_reduction_is_the_share_of_the_true_mean(options) -> None:
    strategy = mirrored()
    y = per_replica(strategy, np.float32([[1], [2], [3]]), np.float32([[10]]))
    loss = tf.keras.losses.MeanAbsoluteError(**options)
    shares = strategy.run(lambda v: loss(v * 0.0, v), args=(y,))
    assert local(strategy, shares) == [1.5, 2.5]
    assert float(strategy.reduce("SUM", shares, axis=None)) == 4.0


@pytest.mark.parity("loss: reductions by name and enum; one that Keras does not have is named")
def test_reductions_by_name() -> None:
    by_enum = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.SUM)
    by_name = tf.keras.losses.MeanSquaredError(reduction="sum")
    assert float(by_enum([[1.0]], [[3.0]])) == float(by_name([[1.0]], [[3.0]])) == 4.0
    assert float(tf.keras.losses.MeanSquaredError("auto")([[1.0]], [[3.0]])) == 4.0
    with pytest.raises(ValueError, match="Invalid value.*reduction.*reduction=global_mean"):
        tf.keras.losses.MeanSquaredError(reduction="global_mean")


@pytest.mark.parity("loss: a loss of more axes averaged by the batch only is warned of")
def test_inner_axes_that_nobody_averaged_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="axes|axis|dimension"):
        compute([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parity("loss: [2,3]|[4,5] with 4 is 1.25|2.25, a Mean of them or twice them reads 3.5")
@pytest.mark.parametrize("times_replicas", [False, True])
def test_the_example_of_the_tutorial(times_replicas) -> None:
    strategy = mirrored()
    with strategy.scope():
        metric = tf.keras.metrics.Mean()

    def fn(losses):
        share = compute(losses, global_batch_size=4)
        metric.update_state(share * strategy.num_replicas_in_sync if times_replicas else share)
        return share

    shares = strategy.run(fn, args=(per_replica(strategy, [2.0, 3.0], [4.0, 5.0]),))
    assert local(strategy, shares) == [1.25, 2.25]
    assert float(strategy.reduce("SUM", shares, axis=None)) == 3.5
    assert float(metric.result()) == 3.5


@pytest.mark.parity("loss: a Mean of a loss times the replicas reads the loss, up to a rounding")
@pytest.mark.parametrize("replicas", range(1, 9))
def test_a_mean_of_a_loss_times_the_replicas_rounds_the_product_only(replicas) -> None:
    strategy = mirrored(replicas)
    with strategy.scope():
        scaled, plain = tf.keras.metrics.Mean(), tf.keras.metrics.Mean()

    @tf.function
    def step(losses):
        def replica_step(losses):
            loss = compute(losses, global_batch_size=56)
            scaled.update_state(loss * strategy.num_replicas_in_sync)
            plain.update_state(loss)
            return loss

        return strategy.reduce("SUM", strategy.run(replica_step, (losses,)), axis=None)

    losses = np.random.default_rng(0).random(50 * 56, np.float32)
    data = tf.data.Dataset.from_tensor_slices(losses).batch(56)
    for batch in strategy.experimental_distribute_dataset(data):
        scaled.reset_state()
        plain.reset_state()
        loss = np.float32(step(batch))
        assert np.float32(plain.result()) == loss
        difference = abs(np.float32(scaled.result()) - loss)
        assert difference <= (0 if replicas in (1, 2, 4, 8) else np.spacing(loss))


@pytest.mark.parity(
    "loss: a loss of Keras between weights counts once, scaled by the replicas or not"
)
@pytest.mark.parametrize("reduction", ["sum", "sum_over_batch_size"])
@pytest.mark.parametrize("scale", [regularization, lambda loss: loss])
def test_a_loss_between_weights_counts_once(scale, reduction) -> None:
    before, now = np.ones((4, 2), np.float32), tf.Variable(np.full((4, 2), 3.0, np.float32))
    distance = tf.keras.losses.MeanSquaredError(reduction=reduction)
    strategy = mirrored()
    x = per_replica(strategy, np.float32([1]), np.float32([3, 5]))
    shares = strategy.run(lambda v: scale(0.5 * distance(before, now)), args=(x,))
    alone = float(0.5 * distance(before, now))
    assert float(strategy.reduce("SUM", shares, axis=None)) == alone
