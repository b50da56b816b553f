"""The batches of an epoch, and their shares for the replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
from keras.src import tree
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.variables import standardize_dtype
from keras.src.trainers import epoch_iterator
from keras.src.trainers.data_adapters import is_tf_dataset

import samegrad as tf
from samegrad import _core
from samegrad._base.tree import map_structure
from samegrad._keras.losses import in_replica_of_several, value_of_all
from samegrad._tensor.tensor import Tensor
from samegrad._values import PerReplica, TracedPerReplica


class EpochIterator(epoch_iterator.EpochIterator):  # type: ignore[misc]
    """Gives lists of as many batches as one execution takes; the last one may have fewer."""

    def __init__(self, x: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> None:
        if is_tf_dataset(x):
            options["shuffle"] = False
        super().__init__(x, y, sample_weight, **options)

    def _get_iterator(self) -> Any:
        adapter = self.data_adapter
        batches = getattr(adapter, "get_batches", adapter.get_numpy_iterator)
        return batches()

    def __next__(self) -> Any:
        begin, end, iterator = next(self._epoch_iterator)
        count = self.steps_per_execution
        if self._num_batches and not self.steps_per_epoch:
            count = min(count, self._num_batches - begin)
        found: list[Any] = []
        with self.catch_stop_iteration():
            for _ in range(count):
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
    count = strategy.num_replicas_in_sync

    def share(leaf: Any) -> Any:
        if leaf is None or getattr(leaf, "_is_per_replica", False):
            return leaf
        tensor = leaf if isinstance(leaf, Tensor) else tf.convert_to_tensor(np.asarray(leaf))
        if not tensor._rank:
            return tensor
        if tensor._example_axis is None:
            tensor = tensor._as_examples(0, 1)
        if count == 1:
            return tensor
        bounds = _core.share_bounds(int(tensor._shape[0]), count, strategy.split == "balanced")
        return PerReplica(_core.split_rows(tensor, bounds))

    return map_structure(share, batch)


def symbolic(batch: Any) -> Any:
    """The shapes and types of a batch, whose number of examples is left open."""

    def spec(leaf: Any) -> Any:
        if leaf is None:
            return None
        part = leaf.values[0] if isinstance(leaf, PerReplica) else leaf
        sizes = tuple(part.shape)
        return KerasTensor((None, *sizes[1:]) if sizes else (), standardize_dtype(part.dtype))

    return tree.map_structure(spec, batch)


def of_all(name: str, value: Any) -> Any:
    """One value of what the replicas return: what is equal on all, or the sum of their shares.

    Args:
        name: Of the value, for messages.
        value: A number, or a replica's tensor.

    Raises:
        ValueError: It differs, and the step does not show that it is a share.
    """
    if not in_replica_of_several() or not isinstance(value, Tensor) or not value._varying:
        return value
    if value._rank or _core.current_trace().loss_scale(value) != "share":
        raise ValueError(
            f"[train_step] {name!r} differs between the replicas, and the step does not show what "
            "it is of all examples: return the result() of a metric, or a replica's share of the "
            "loss (of compute_loss, or samegrad.nn.compute_average_loss)."
        )
    return value_of_all(value)


def of_first(value: Any) -> Any:
    """The first of the replicas' values, which are equal."""
    if isinstance(value, TracedPerReplica):
        return value.tensor
    return value.values[0] if isinstance(value, PerReplica) else value
