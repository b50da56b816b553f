"""The graph of a scalar says how it was made of a replica's examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad import _core

SHARES = {
    "mean": "mean",
    "scaled": "mean",
    "inner_first": "mean",
    "by_count": "mean",
    "before_the_sum": "mean",
    "difference": "mean",
    "sum": "unknown",
    "by_literal": "unknown",
    "largest": "unknown",
    "root": "unknown",
    "square": "unknown",
    "deviation": "unknown",
    "mean_and_penalty": "mean",
    "by_weights": "unknown",
    "by_weights_before_the_sum": "unknown",
    "times_a_reciprocal": "unknown",
    "penalty": "common",
    "number": "common",
    "share": "share",
    "share_times_replicas": "times_replicas",
}


def _count(x: Any) -> Any:
    return tf.cast(tf.shape(x)[0], "float32")


def _made(name: str, x: Any, w: Any) -> Any:
    share: Callable[[], Any] = lambda: tf.nn.compute_average_loss(tf.reduce_sum(x * w, -1))  # noqa: E731
    made: dict[str, Callable[[], Any]] = {
        "mean": lambda: tf.reduce_mean(x * w),
        "scaled": lambda: 0.5 * tf.reduce_mean(tf.square(x * w)) + 0.1,
        "inner_first": lambda: tf.reduce_mean(tf.reduce_max(x * w, -1)),
        "by_count": lambda: tf.reduce_sum(x * w) / _count(x),
        "before_the_sum": lambda: tf.reduce_sum(x * w / _count(x)),
        "difference": lambda: 3.0 * tf.reduce_mean(x * w) - tf.reduce_mean(x),
        "sum": lambda: tf.reduce_sum(x * w),
        "by_literal": lambda: tf.reduce_sum(x * w) / 5.0,
        "largest": lambda: tf.reduce_max(x * w),
        "root": lambda: tf.sqrt(tf.reduce_mean(tf.square(x * w))),
        "square": lambda: tf.square(tf.reduce_mean(x * w)),
        "deviation": lambda: tf.math.reduce_std(x * w),
        "mean_and_penalty": lambda: tf.reduce_mean(x * w) + tf.reduce_sum(w * w),
        "by_weights": lambda: tf.reduce_sum(x * w) / tf.reduce_sum(tf.abs(x)),
        "by_weights_before_the_sum": lambda: tf.reduce_sum(x * w / tf.reduce_sum(tf.abs(x))),
        "times_a_reciprocal": lambda: tf.reduce_sum(x * w * (1.0 / tf.reduce_sum(tf.abs(x)))),
        "penalty": lambda: 0.1 * tf.reduce_sum(tf.square(w)),
        "number": lambda: tf.constant(3.0),
        "share": share,
        "share_times_replicas": lambda: (
            share() * tf.cast(tf.distribute.get_strategy().num_replicas_in_sync, "float32")
        ),
    }
    return made[name]()


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("name", sorted(SHARES))
def test_a_scalar_shows_how_its_examples_were_averaged(name: str, replicas: int) -> None:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    weights = tf.Variable([1.0, 2.0])
    rows = np.arange(10, dtype=np.float32).reshape(5, 2)
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(5)
    found = []

    def look(x: Any) -> Any:
        value = tf.convert_to_tensor(_made(name, x, weights))
        found.append(_core.current_trace().loss_normalization(value))
        return value

    for batch in strategy.experimental_distribute_dataset(dataset):
        strategy.run(look, (batch,))
    assert set(found) == {SHARES[name]}
