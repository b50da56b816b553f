"""A layout of weighted examples, and what a row of the catalogue says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from samegrad._base.mistakes import Words
from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)  # arrays have no one answer to ==
class Situation:
    """A layout, and the weights of the examples.

    Every vector has one number per example; `of_…` are sums over those that an example is with.

    Args:
        layout: Who has which examples.
        weights: One per example.
    """

    layout: Layout
    weights: Vector

    @property
    def right(self) -> Vector:
        """w_i / W."""
        return np.asarray(self.weights / self.weights.sum(), dtype=np.float64)

    @cached_property
    def replica(self) -> Indices:
        """The replica of each example."""
        return self._places()[0]

    @cached_property
    def micro_batch(self) -> Indices:
        """The micro-batch of each example."""
        return self._places()[1]

    def _places(self) -> tuple[Indices, Indices]:
        replica, micro_batch = (np.zeros(len(self.weights), dtype=np.intp) for _ in range(2))
        for r, share in enumerate(self.layout.parts):
            for k, part in enumerate(share):
                replica[list(part)], micro_batch[list(part)] = r, k
        return replica, micro_batch

    @property
    def replicas(self) -> int:
        """R."""
        return self.layout.replicas

    @property
    def active(self) -> int:
        """How many replicas have examples."""
        return sum(size > 0 for size in self.layout.sizes)

    @property
    def micro_batches(self) -> int:
        """K."""
        return self.layout.micro_batches

    def _sums(self, values: Vector, *by: Indices) -> Vector:
        """For each example, the sum of the values of those that share its places."""
        alike = np.logical_and.reduce([place[:, None] == place[None, :] for place in by])
        return np.asarray(alike @ values, dtype=np.float64)

    @property
    def of_replica(self) -> Vector:
        """W_r."""
        return self._sums(self.weights, self.replica)

    @property
    def of_part(self) -> Vector:
        """W_rk."""
        return self._sums(self.weights, self.replica, self.micro_batch)

    @property
    def of_micro_batch(self) -> Vector:
        """W_k, over all replicas."""
        return self._sums(self.weights, self.micro_batch)

    @property
    def sizes(self) -> Vector:
        """n_r."""
        return self._sums(np.ones_like(self.weights), self.replica)

    @property
    def part_sizes(self) -> Vector:
        """n_rk."""
        return self._sums(np.ones_like(self.weights), self.replica, self.micro_batch)

    @property
    def longest(self) -> Vector:
        """The largest weight in the replica's share."""
        return np.array([self.weights[self.replica == r].max() for r in self.replica])

    @property
    def longest_of_part(self) -> Vector:
        """The largest weight in the micro-batch."""
        places = zip(self.replica, self.micro_batch, strict=True)
        return np.array(
            [self.weights[(self.replica == r) & (self.micro_batch == k)].max() for r, k in places]
        )

    @property
    def largest(self) -> int:
        """The largest n_r."""
        return max(self.layout.sizes)

    @property
    def last(self) -> Vector:
        """1 for examples of the last micro-batch, 0 for others."""
        return np.asarray(self.micro_batch == self.micro_batches - 1, dtype=np.float64)

    @property
    def of_last(self) -> Vector:
        """The weight of the last micro-batch of the replica."""
        return self._sums(np.asarray(self.weights * self.last), self.replica)


Predict = Callable[[Situation], Vector]


def right_weights(situation: Situation) -> Vector:
    """The weights as they should be, for mistakes that do not show in weights."""
    return situation.right


@dataclass(frozen=True)
class Mistake:
    """A row of the catalogue.

    Args:
        name: A few words.
        sentence: What happens.
        formula: The weight that an example gets.
        fix: What to write instead.
        predict: The weights for a situation.
        fixed: Whether it also happens where a fixed number divides.
        micro: Whether it takes several micro-batches to happen.
        weighted: Whether it takes examples of different weight.
        empty: Whether it takes a replica without examples.
        report: What it means where a reported loss or metric shows it.
    """

    name: str
    sentence: str
    formula: str
    fix: str
    predict: Predict = right_weights
    fixed: bool = False
    micro: bool = False
    weighted: bool = False
    empty: bool = False
    report: str = ""

    @property
    def words(self) -> Words:
        """What is said of it."""
        return Words(self.name, self.sentence, self.formula, self.fix)


SUM_AND_COUNT = (
    "add up sums and counts, and divide once: keras.optimizers.Adam(gradient_accumulation_steps=N)"
)
