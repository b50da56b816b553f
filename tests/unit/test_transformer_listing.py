"""A Transformer program whose replicas divide by their own tokens, and average their losses.

The checks name each line and its fix. The fixed program is compared on 1 to 4 replicas.
"""

from __future__ import annotations

import linecache
import warnings
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad.errors import LossNormalizationWarning

LISTING = """
def loss_function(real, pred):
    mask = tf.math.logical_not(tf.math.equal(real, 0))
    loss_ = loss_object(real, pred)
    mask = tf.cast(mask, dtype=loss_.dtype)
    loss_ *= mask
    return tf.reduce_sum(loss_) / tf.reduce_sum(mask)

def train_step(inp, tar):
    tar_inp = tar[:, :-1]
    tar_real = tar[:, 1:]
    with tf.GradientTape() as tape:
        predictions = model(tar_inp, training=True)
        loss = loss_function(tar_real, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    return loss

@tf.function
def distributed_train_step(inp, tar):
    losses = strategy.run(train_step, args=(inp, tar))
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)
"""
LOCAL_TOKENS = "return tf.reduce_sum(loss_) / tf.reduce_sum(mask)"
ALL_TOKENS = "return tf.nn.compute_weighted_mean_loss(loss_, mask)"
MEAN = "return strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)"
SUM = MEAN.replace("MEAN", "SUM")


def sentences() -> np.ndarray:
    rng = np.random.default_rng(0)
    tokens = np.array([3, 4, 5, 6, 3, 4, 5, 6])
    return np.where(np.arange(6) < tokens[:, None], rng.integers(1, 9, (8, 6)), 0)


def trained(source: str, replicas: int) -> tuple[list[str], float, float, list[np.ndarray]]:
    """The warnings of one step, its loss, that of the metric, and the weights."""
    tf.keras.utils.set_random_seed(1)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    layers = tf.keras.layers
    names: dict[str, Any] = {"tf": tf, "strategy": strategy}
    with strategy.scope():
        names["model"] = tf.keras.Sequential(
            [tf.keras.Input((None,)), layers.Embedding(9, 8), layers.Dense(9)]
        )
        names["optimizer"] = tf.keras.optimizers.Adam(0.01)
        names["train_loss"] = tf.keras.metrics.Mean()
        names["loss_object"] = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction="none"
        )
    path = f"listing{hash(source)}.py"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    exec(compile(source, path, "exec"), names)
    data = tf.data.Dataset.from_tensors((sentences(), sentences()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for batch in strategy.experimental_distribute_dataset(data):
            loss = float(names["distributed_train_step"](*batch))
    found = [
        f"{source.splitlines()[w.lineno - 1].strip()}: {w.message}"
        for w in caught
        if w.category is LossNormalizationWarning
    ]
    return found, loss, float(names["train_loss"].result()), names["model"].get_weights()


def test_local_token_denominator_is_named_at_its_line_with_the_fix_for_tokens() -> None:
    (found,) = trained(LISTING, 2)[0]
    assert found.startswith(f"{LOCAL_TOKENS}: [loss normalization] mean per replica, then sum: ")
    assert "the tokens of all replicas: nn.compute_weighted_mean_loss(losses, mask)" in found


def test_mean_of_the_replicas_losses_is_named_at_its_line_once_the_tokens_are_right() -> None:
    (found,) = trained(LISTING.replace(LOCAL_TOKENS, ALL_TOKENS), 2)[0]
    assert found.startswith(f"{MEAN}: [loss normalization] divided by the global batch, then av")
    assert "Fix: sum the per-replica losses (reduce SUM)" in found


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
def test_listing_with_both_fixes_has_the_bits_of_one_replica(replicas: int) -> None:
    fixed = LISTING.replace(LOCAL_TOKENS, ALL_TOKENS).replace(MEAN, SUM)
    found, loss, of_metric, weights = trained(fixed, replicas)
    _, one, _, of_one = trained(fixed, 1)
    assert not found
    assert loss == of_metric == one
    assert loss == pytest.approx(trained(LISTING, 1)[1], rel=1e-6)
    for own, expected in zip(weights, of_one, strict=True):
        np.testing.assert_array_equal(own, expected)
