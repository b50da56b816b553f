"""The batches of an epoch, and their shares for the replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src import tree
from keras.src.trainers import epoch_iterator

import samegrad as tf
from samegrad import _core
from samegrad._tensor import Tensor
from samegrad._values import PerReplica, TracedPerReplica


class EpochIterator(epoch_iterator.EpochIterator):  # type: ignore[misc]
    """Gives lists of as many batches as one execution takes; the last one may have fewer."""

    def __next__(self) -> Any:
        begin, end, iterator = next(self._epoch_iterator)
        found: list[Any] = []
        with self.catch_stop_iteration():
            for _ in range(self.steps_per_execution):
                found.append(next(iterator))
        if not found:
            raise StopIteration
        return begin, end, found


def shares(batch: Any, strategy: Any) -> Any:
    """A global batch, its rows shared out to the replicas of a strategy.

    Args:
        batch: A structure of arrays, of as many rows each; None stays.
        strategy: Whose replicas they are for.
    """
    if any(getattr(leaf, "_is_per_replica", False) for leaf in tree.flatten(batch)):
        return batch
    count = strategy.num_replicas_in_sync

    def share(leaf: Any) -> Any:
        if leaf is None:
            return None
        tensor = leaf if isinstance(leaf, Tensor) else tf.convert_to_tensor(np.asarray(leaf))
        if not tensor._rank:
            return tensor
        if tensor._example_axis is None:
            tensor = tensor._as_examples(0, 1)
        if count == 1:
            return tensor
        bounds = _core.share_bounds(int(tensor._shape[0]), count, strategy.split == "balanced")
        return PerReplica(_core.split_rows(tensor, bounds))

    return tree.map_structure(share, batch)


def joined(strategy: Any, value: Any) -> Any:
    """One value of what the replicas returned: what is equal, or the sum of the shares.

    Args:
        strategy: Whose replicas they are.
        value: A number, a tensor, or one per replica.
    """
    if not isinstance(value, TracedPerReplica | PerReplica):
        return value
    if isinstance(value, TracedPerReplica) and not value.tensor._varying:
        return value.tensor
    return strategy.reduce("SUM", value, axis=None)
