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

    @cached_property
    def places(self) -> tuple[Indices, Indices, Indices]:
        """The replica of each example, its micro-batch, and its place in the micro-batch."""
        replica, micro_batch, place = (np.zeros(len(self.weights), dtype=np.intp) for _ in "rkp")
        for r, share in enumerate(self.layout.parts):
            for k, part in enumerate(share):
                own = list(part)
                replica[own], micro_batch[own], place[own] = r, k, np.arange(len(own))
        return replica, micro_batch, place

    @property
    def replica(self) -> Indices:
        """The replica of each example."""
        return self.places[0]

    @property
    def micro_batch(self) -> Indices:
        """The micro-batch of each example."""
        return self.places[1]

    @cached_property
    def order(self) -> tuple[Indices, Indices]:
        """The place of each example in its replica's share, and among all."""
        in_share, in_all = np.zeros_like(self.replica), np.zeros_like(self.replica)
        in_all[list(self.layout.examples)] = np.arange(len(self.weights))
        for share in self.layout.parts:
            own = [i for part in share for i in part]
            in_share[own] = np.arange(len(own))
        return in_share, in_all

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
        return self.sums(np.ones_like(self.weights), "replica")

    def chunks(self, rule: str) -> tuple[Indices, Vector]:
        """The piece of each example where the step cuts its batch, and how many pieces that has.

        Args:
            rule: "2 chunks" of about one size, or "chunks of 4" examples, the last one shorter.

        Raises:
            ValueError: The rule is neither.
        """
        found = re.fullmatch(r"([1-9]\d*) chunks|chunks of ([1-9]\d*)", rule)
        if not found:
            raise ValueError(
                "[Situation.chunks] rule must be '2 chunks' or 'chunks of 4', with any number of 1 "
                f"or more: got {rule!r}."
            )
        number = int(found[1] or found[2])
        replica, micro_batch, place = self.places
        sizes = self.sums(np.ones_like(self.weights), "part").astype(np.intp)
        if found[1]:
            size, more = sizes // number, sizes % number
            head = more * (size + 1)
            late = more + (place - head) // np.maximum(size, 1)
            chunk, count = (
                np.where(place < head, place // (size + 1), late),
                np.minimum(number, sizes),
            )
        else:
            chunk, count = place // number, -(-sizes // number)
        labels = ((replica * self.layout.micro_batches) + micro_batch) * len(self.weights) + chunk
        return labels, np.asarray(count, dtype=np.float64)

    def pieces(self, scope: str) -> Vector:
        """How many chunks an example's batch has, or how many nodes there are."""
        if scope == "node":
            return np.full(len(self.weights), -(-self.replicas // 2) * 1.0)
        return self.chunks(scope)[1]

    @cached_property
    def _labels(self) -> dict[str, Indices]:
        replica, micro_batch, _ = self.places
        return {
            "part": replica * self.layout.micro_batches + micro_batch, "replica": replica,
            "window": micro_batch, "all": np.zeros_like(replica), "node": replica // 2,
        }  # fmt: skip

    def labels(self, scope: str) -> Indices:
        """Equal numbers for examples that are together."""
        return self._labels[scope] if scope in self._labels else self.chunks(scope)[0]

    def sums(self, values: Vector, scope: str) -> Vector:
        """For each example, the sum of the values over a scope."""
        if self.single:
            return np.asarray(values, dtype=np.float64)
        replica, micro_batch, _ = self.places
        masks = {
            "first replica": replica == replica.min(), "last replica": replica == replica.max(),
            "first window": micro_batch == 0,
            "last window": micro_batch == self.micro_batches - 1,
        }  # fmt: skip
        if scope in masks:
            return np.full(len(values), values[masks[scope]].sum())
        if scope.startswith("largest"):
            own = np.bincount(self.labels(scope.split()[1]), values)
            return np.full(len(values), own.max())
        if scope in ("first part", "last part"):
            mask = masks[scope.replace("part", "window")]
            return np.asarray(np.bincount(replica, values * mask)[replica], dtype=np.float64)
        labels = self.labels(scope)
        return np.asarray(np.bincount(labels, values)[labels], dtype=np.float64)

    def longest(self, scope: str) -> Vector:
        """The largest weight in a scope."""
        if self.single:
            return self.weights
        labels = self.labels(scope)
        found = np.zeros(int(labels.max()) + 1)
        np.maximum.at(found, labels, self.weights)
        return np.asarray(found[labels], dtype=np.float64)


__all__ = ["Indices", "Situation"]
