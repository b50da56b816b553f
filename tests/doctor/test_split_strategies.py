"""Splits and masks that hypothesis draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import samegrad as tf
from samegrad_doctor.strategies import masks, shard_sizes, splits

X = np.arange(24.0).reshape(8, 3)


@given(shard_sizes(9, 4, least=1))
def test_shares_add_up_and_have_the_least(sizes) -> None:
    assert sum(sizes) == 9 and len(sizes) == 4 and min(sizes) >= 1


@given(splits({"x": X}, 3))
def test_a_split_keeps_all_examples_in_order(shares) -> None:
    np.testing.assert_array_equal(np.concatenate([share["x"] for share in shares]), X)


@given(masks(5, 4))
def test_masks_are_ones_and_then_zeros(mask) -> None:
    assert mask.shape == (5, 4) and (np.diff(mask, axis=1) <= 0).all() and (mask[:, 0] == 1).all()


@given(splits((X, np.arange(8.0)), 3))
def test_any_split_over_replicas_has_the_loss_of_one_device(shares) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=3)
    columns = [
        strategy.experimental_distribute_values_from_function(
            lambda context, i=i: shares[context.replica_id_in_sync_group][i]
        )
        for i in range(2)
    ]

    def loss(x, y):
        return tf.nn.compute_average_loss(tf.square(tf.reduce_sum(x, axis=1) - y))

    total = strategy.reduce("SUM", strategy.run(loss, args=tuple(columns)), axis=None)
    assert float(total) == pytest.approx(np.square(X.sum(axis=1) - np.arange(8)).mean(), rel=1e-12)


def test_shares_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="must fit"):
        shard_sizes(3, 2, least=2)
