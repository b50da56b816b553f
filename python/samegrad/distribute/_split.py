"""Which rows of a batch belong to which replica, and to which process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from samegrad import _core
from samegrad._tensor.tensor import Tensor


@dataclass(frozen=True)
class Split:
    """How elements are shared out.

    Attributes:
        replicas: Between how many.
        balanced: Whether the shares are subtrees of the summation tree, rather than equal chunks.
        own: Whether each replica gets an element of its own.
        processes: Over which the replicas are spread.
    """

    replicas: int
    balanced: bool = False
    own: bool = False
    processes: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The engine's name for it."""
        if self.replicas == 1:
            return "none"
        return "own" if self.own else "balanced" if self.balanced else "chunks"

    @property
    def elements_per_step(self) -> int:
        """How many elements of the dataset make one of ours."""
        return self.own_count if self.own else 1

    @property
    def own_range(self) -> tuple[int, int]:
        """This process's replicas; (0, 0): it has all."""
        found: tuple[int, int] = _core.own_replicas(self.processes)
        return found

    @property
    def own_count(self) -> int:
        """How many replicas this process has."""
        first, last = self.own_range
        return last - first if self.processes else self.replicas


def check_numbers(leaf: Any) -> None:
    """A component of a batch that is split.

    Raises:
        TypeError: It is text, ragged, sparse or a dataset.
    """
    if not isinstance(leaf, Tensor):
        raise TypeError(
            "[experimental_distribute_dataset] components of batches that replicas share are "
            f"dense numbers: got {type(leaf).__name__}; in Dataset.map turn text into numbers, "
            "ragged tensors into dense ones with to_tensor(), sparse ones with tf.sparse.to_dense."
        )
