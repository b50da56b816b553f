"""Division of a batch between replicas and processes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from samegrad import _core
from samegrad._tensor.per_replica import PerReplica, strings_per_replica
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text


@dataclass(frozen=True)
class Split:
    """Rule that divides elements between replicas.

    Attributes:
        replicas: Number of replicas.
        own: Whether each replica gets an element of its own.
        processes: First replica of each process, and the number of all replicas.
    """

    replicas: int
    own: bool = False
    processes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The engine's name for it."""
        if self.replicas == 1:
            return "none"
        return "own" if self.own else "chunks"

    @property
    def elements_per_step(self) -> int:
        """Return the number of elements of the dataset in one step."""
        return self.own_count if self.own else 1

    @property
    def own_range(self) -> tuple[int, int]:
        """This process's replicas; (0, 0): it has all."""
        found: tuple[int, int] = _core.own_replicas(self.processes)
        return found

    @property
    def own_count(self) -> int:
        """Return the number of this process's replicas."""
        first, last = self.own_range
        return last - first if self.processes else self.replicas


def split_rows(leaf: Any, bounds: Any, own: tuple[int, int]) -> PerReplica:
    """Return the rows of a component of a batch between bounds, for each replica."""
    if not isinstance(leaf, Text):
        return PerReplica(_core.split_rows(leaf, bounds, own))
    return strings_per_replica(leaf[begin:end] for begin, end in itertools.pairwise(bounds))


def check_dense(leaf: Any) -> None:
    """Check a component of a batch that is split.

    Raises:
        TypeError: It is ragged, sparse or a dataset.
    """
    if not isinstance(leaf, Tensor | Text):
        raise TypeError(
            "[experimental_distribute_dataset] components of batches that replicas share are "
            f"dense: got {type(leaf).__name__}; in Dataset.map turn ragged tensors into dense ones "
            "with to_tensor(), sparse ones with tf.sparse.to_dense."
        )


def check_numbers(leaf: Any) -> None:
    """Check a component of a batch that several processes share.

    Raises:
        TypeError: It is text, ragged, sparse or a dataset.
    """
    if isinstance(leaf, Text):
        strings_per_replica([leaf])
    check_dense(leaf)
