"""Hypothesis strategies for per-replica batch sizes, splits of a batch, and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from samegrad_doctor._layouts import layout, rows_of, take


def shard_sizes(examples: int, replicas: int, least: int = 0) -> st.SearchStrategy[list[int]]:
    """Generate per-replica batch sizes, equal or not, that sum to the number of examples.

    Args:
        examples: The number of examples.
        replicas: The number of replicas.
        least: The minimum size of a per-replica batch.

    Returns:
        A strategy of lists of integers.

    Raises:
        ValueError: The examples are too few.

    Example:
        >>> sum(shard_sizes(10, 3).example())  # doctest: +SKIP
        10
    """
    free = examples - least * replicas
    if replicas < 1 or free < 0:
        raise ValueError(
            f"[shard_sizes] {replicas} shards of at least {least} must fit: got {examples} "
            "examples."
        )
    cuts = st.lists(st.integers(0, free), min_size=replicas - 1, max_size=replicas - 1).map(sorted)
    return cuts.map(lambda at: [b - a + least for a, b in zip([0, *at], [*at, free], strict=True)])


def splits(batch: Any, replicas: int, least: int = 0) -> st.SearchStrategy[list[Any]]:
    """Generate splits of a batch into per-replica batches.

    Args:
        batch: Arrays of shape [examples, ...] in any structure.
        replicas: The number of replicas.
        least: The minimum size of a per-replica batch.

    Returns:
        A strategy of lists with one batch per replica.
    """
    sizes = shard_sizes(rows_of(batch), replicas, least)
    return sizes.map(lambda own: [take(batch, share[0]) for share in layout(own).parts])


def masks(examples: int, length: int) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Generate masks of padded sequences: ones, then zeros; at least one 1 in each row.

    Args:
        examples: The number of sequences.
        length: The padded length.

    Returns:
        A strategy of arrays of shape [examples, length], float64.
    """
    lengths = st.lists(st.integers(1, length), min_size=examples, max_size=examples)
    return lengths.map(
        lambda own: (np.arange(length)[None, :] < np.array(own)[:, None]).astype(np.float64)
    )


__all__ = ["masks", "shard_sizes", "splits"]
