"""Gives replicas their rows of a global batch, in different places of memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Shares = tuple[int, ...]
# Makes the per-replica tensors of a global one.
Layout = Callable[[Any, Shares], Sequence[Any]]


def placed(columns: list[Any], shares: Shares, layout: str, strategy: Any) -> list[Any]:
    """Arguments of a distributed step.

    Args:
        columns: Tensors of the whole global batch.
        shares: Rows of each replica.
        layout: A name in LAYOUTS; "mixed": another one for each column; "dataset": what a
            distributed dataset gives, whose shares these must be.
        strategy: Has as many replicas.
    """
    if layout == "dataset":
        return _from_dataset(columns, shares, strategy)
    layouts = itertools.cycle(LAYOUTS.values()) if layout == "mixed" else None

    def value(column: Any) -> Any:
        parts = (next(layouts) if layouts else LAYOUTS[layout])(column, shares)
        return strategy.experimental_distribute_values_from_function(
            lambda context: parts[context.replica_id_in_sync_group]
        )

    return list(map(value, columns))


def _from_dataset(columns: list[Any], shares: Shares, strategy: Any) -> list[Any]:
    import samegrad as tf

    dataset = tf.data.Dataset.from_tensor_slices(tuple(columns)).batch(sum(shares))
    (batch,) = strategy.experimental_distribute_dataset(dataset)
    parts = strategy.experimental_local_results(batch[0])
    own = strategy.own_replicas
    assert tuple(len(part) for part in parts) == shares[own.start : own.stop]
    return list(batch)


def _slices(column: Any, shares: Shares) -> Sequence[Any]:
    from samegrad import _core

    parts: Sequence[Any] = _core.split_rows(column, [0, *map(int, np.cumsum(shares))])
    return parts


def _copies(column: Any, shares: Shares) -> Sequence[Any]:
    import samegrad as tf

    return [tf.constant(part.numpy()) for part in _slices(column, shares)]


def _shuffled(column: Any, shares: Shares) -> Sequence[Any]:
    """Slices of one array that has the rows of odd replicas first."""
    import samegrad as tf

    order = [*range(1, len(shares), 2), *range(0, len(shares), 2)]
    parts = _slices(column, shares)
    memory = tf.constant(np.concatenate([parts[i].numpy() for i in order]))
    found = _slices(memory, tuple(shares[i] for i in order))
    return [found[order.index(i)] for i in range(len(shares))]


def _gaps(column: Any, shares: Shares) -> Sequence[Any]:
    """Slices of one array; before those of even replicas, a row of NaN, or of zeros of integers."""
    import samegrad as tf

    blank = np.zeros_like(column.numpy(), shape=(1, *column.shape[1:]))
    if blank.dtype.kind != "i":
        blank[:] = np.nan
    sizes = [(1 - i % 2, share) for i, share in enumerate(shares)]
    parts = [part.numpy() for part in _slices(column, shares)]
    rows = [x for (gap, _), part in zip(sizes, parts, strict=True) for x in (blank[:gap], part)]
    memory = tf.constant(np.concatenate(rows))
    return _slices(memory, tuple(n for pair in sizes for n in pair))[1::2]


LAYOUTS: dict[str, Layout] = {
    "slices": _slices,
    "apart": _copies,
    "shuffled": _shuffled,
    "gaps": _gaps,
}
