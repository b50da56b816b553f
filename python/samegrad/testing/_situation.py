"""A layout of weighted examples, and sums over those that an example is with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from samegrad.testing._layouts import Layout
from samegrad.testing._updates import Vector

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)  # arrays have no one answer to ==
class Situation:
    """A layout, and the weights of the examples. Every vector has one number per example.

    Args:
        layout: Who has which examples.
        weights: One per example.
        single: Every example is taken by itself, on one device; the layout does not count.
        known: What was made of it already.
    """

    layout: Layout
    weights: Vector
    single: bool = False
    known: dict[object, Vector] = field(default_factory=dict, repr=False)

    @property
    def right(self) -> Vector:
        """w_i / W."""
        return np.asarray(self.weights / self.weights.sum(), dtype=np.float64)

    @property
    def ones(self) -> Vector:
        """1 for each example."""
        return np.ones(len(self.weights))

    @cached_property
    def places(self) -> Indices:
        """Replica, micro-batch, and the places in the micro-batch, in the share and in all."""
        found = np.zeros((5, len(self.weights)), dtype=np.intp)
        in_all = 0
        for r, share in enumerate(self.layout.parts):
            in_share = 0
            for k, part in enumerate(share):
                for place, i in enumerate(part):
                    found[:, i] = r, k, place, in_share + place, in_all + place
                in_share += len(part)
                in_all += len(part)
        return found

    @property
    def replica(self) -> Indices:
        """The replica of each example."""
        return np.asarray(self.places[0])

    @property
    def micro_batch(self) -> Indices:
        """The micro-batch of each example."""
        return np.asarray(self.places[1])

    @property
    def order(self) -> Indices:
        """The place of each example in its replica's share, and among all."""
        return self.places[3:]

    @property
    def replicas(self) -> int:
        """R."""
        return 1 if self.single else self.layout.replicas

    @property
    def active(self) -> int:
        """A: how many replicas have examples."""
        return 1 if self.single else sum(size > 0 for size in self.layout.sizes)

    @property
    def micro_batches(self) -> int:
        """K."""
        return 1 if self.single else self.layout.micro_batches

    @cached_property
    def sizes(self) -> Vector:
        """n_r."""
        return self.sums(self.ones, "replica")

    def of(self, end: str, axis: str) -> Mask:
        """Whether an example is of the "first" or "last" "replica" or "micro-batch"."""
        own = self.replica if axis == "replica" else self.micro_batch
        return np.asarray(own == (own.min() if end == "first" else own.max()))

    @cached_property
    def _labels(self) -> dict[str, Indices]:
        replica, window = self.replica, self.micro_batch
        part = replica * self.layout.micro_batches + window
        return {"part": part, "replica": replica, "window": window, "node": replica // 2,
                "all": 0 * replica}  # fmt: skip

    def members(self, scope: str) -> Mask:
        """Which examples (columns) a scope of each example (rows) has.

        Raises:
            ValueError: There is no such scope.
        """
        if self.single:
            return np.eye(len(self.weights), dtype=bool)
        end, _, axis = scope.partition(" ")
        if end in ("first", "last"):
            same = self.members("replica") if axis == "part" else True
            return np.logical_and(same, self.of(end, axis))
        labels = self._labels[scope] if scope in self._labels else self._chunks(scope)[0]
        return np.asarray(labels[:, None] == labels)

    def sums(self, values: Vector, scope: str) -> Vector:
        """For each example, the sum of the values over a scope."""
        end, _, inner = scope.partition(" ")
        if not self.single and end in ("largest", "smallest"):
            own = self.sums(values, inner)
            least = own[own > 0].min(initial=np.inf)
            return np.full(len(own), own.max() if end == "largest" else least)
        return np.asarray(self.members(scope) @ values, dtype=np.float64)

    def longest(self, scope: str) -> Vector:
        """The largest weight in a scope."""
        return np.asarray((self.members(scope) * self.weights).max(axis=1), dtype=np.float64)

    def pieces(self, scope: str) -> Vector:
        """How many chunks an example's batch has, or how many nodes there are."""
        if self.single:
            return self.ones
        if scope == "node":
            return self.ones * -(-self.replicas // 2)
        return self._chunks(scope)[1]

    def _chunks(self, rule: str) -> tuple[Indices, Vector]:
        """The piece of each example where the step cuts its batch, and how many pieces that has.

        Args:
            rule: "2 chunks" of about one size, or "chunks of 4" examples, the last one shorter.
        """
        found = re.fullmatch(r"([1-9]\d*) chunks|chunks of ([1-9]\d*)", rule)
        if not found:
            raise ValueError(
                f"[Situation] scope must be one of {', '.join(self._labels)}, with first, last, "
                "largest or smallest before some of them, '2 chunks' or 'chunks of 4': got "
                f"{rule!r}."
            )
        number, place = int(found[1] or found[2]), self.places[2]
        sizes = self.sums(self.ones, "part").astype(np.intp)
        if found[1]:
            size, more = sizes // number, sizes % number
            head = more * (size + 1)  # the first pieces have one example more
            late = more + (place - head) // np.maximum(size, 1)
            chunk = np.where(place < head, place // (size + 1), late)
            count = np.minimum(number, sizes)
        else:
            chunk, count = place // number, -(-sizes // number)
        labels = self._labels["part"] * len(self.weights) + chunk
        return labels, np.asarray(count, dtype=np.float64)
