"""Small strategies and values for the tests beside this file."""

from __future__ import annotations

from typing import Any

import numpy as np

import samegrad as tf


def mirrored(replicas: int = 2, **options: Any) -> tf.distribute.MirroredStrategy:
    return tf.distribute.MirroredStrategy(replicas=replicas, **options)


def per_replica(strategy: tf.distribute.Strategy, *values: Any) -> Any:
    """One value per replica."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: np.asarray(values[context.replica_id_in_sync_group])
    )


def local(strategy: tf.distribute.Strategy, value: Any) -> list[Any]:
    """The parts of a value as nested lists."""
    parts = strategy.experimental_local_results(value)
    return [np.asarray(part.numpy() if hasattr(part, "numpy") else part).tolist() for part in parts]


def batches(strategy: tf.distribute.Strategy, dataset: Any) -> list[list[Any]]:
    """What each replica gets of each batch."""
    return [local(strategy, x) for x in strategy.experimental_distribute_dataset(dataset)]
