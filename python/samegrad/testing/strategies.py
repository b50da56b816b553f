"""Strategies of hypothesis: sizes of shares, splits of a batch, masks. Needs hypothesis."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from samegrad._surface.boundary import guard
from samegrad.testing._layouts import layout, rows_of, take


def shard_sizes(examples: int, replicas: int, least: int = 0) -> st.SearchStrategy[list[int]]:
    """Sizes of the replicas' shares that add up to the examples, uneven ones included.

    Args:
        examples: How many there are.
        replicas: How many shares.
        least: Examples that every share has.

    Example:
        >>> sum(shard_sizes(10, 3).example())  # doctest: +SKIP
        10
    """
    free = examples - least * replicas
    if replicas < 1 or free < 0:
        raise ValueError(
            f"[shard_sizes] {replicas} shares of at least {least} must fit: got {examples} "
            "examples."
        )
    cuts = st.lists(st.integers(0, free), min_size=replicas - 1, max_size=replicas - 1).map(sorted)
    return cuts.map(lambda at: [b - a + least for a, b in zip([0, *at], [*at, free], strict=True)])


def splits(batch: Any, replicas: int, least: int = 0) -> st.SearchStrategy[list[Any]]:
    """The batch, split between replicas in any way.

    Args:
        batch: Arrays with examples along axis 0, in any structure.
        replicas: How many shares.
        least: Examples that every share has.
    """
    sizes = shard_sizes(rows_of(batch), replicas, least)
    return sizes.map(lambda own: [take(batch, share[0]) for share in layout(own).parts])


def masks(examples: int, length: int) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Masks of padded sequences: ones, then zeros; each sequence has at least one element.

    Args:
        examples: How many sequences.
        length: Of the padded ones.

    Returns:
        Arrays of shape (examples, length), float64.
    """
    lengths = st.lists(st.integers(1, length), min_size=examples, max_size=examples)
    return lengths.map(
        lambda own: (np.arange(length)[None, :] < np.array(own)[:, None]).astype(np.float64)
    )


__all__ = ["masks", "shard_sizes", "splits"]

guard(__name__)
