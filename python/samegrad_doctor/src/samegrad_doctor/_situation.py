"""A layout of weighted examples, and sums over replicas and micro-batches."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from samegrad_doctor._layouts import Layout
from samegrad_doctor._updates import Vector

Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)  # arrays have no one answer to ==
class Situation:
    """A layout and the weights of its examples. Every vector has shape [examples].

    Args:
        layout: The layout.
        weights: The weight of each example.
        single: Run each example by itself on one device, and ignore the layout.
        known: A cache of computed vectors.
    """

    layout: Layout
    weights: Vector
    single: bool = False
    known: dict[object, Vector] = field(default_factory=dict, repr=False)

    @property
    def right(self) -> Vector:
        """Return w_i / W, the correct weights."""
        return np.asarray(self.weights / self.weights.sum(), dtype=np.float64)

    @property
    def ones(self) -> Vector:
        """Return a vector of ones."""
        return np.ones(len(self.weights))

    @cached_property
    def places(self) -> Indices:
        """Return each example's replica, micro-batch, and index in micro-batch, shard and batch."""
        found, in_all = np.zeros((5, len(self.weights)), dtype=np.intp), itertools.count()
        for r, share in enumerate(self.layout.parts):
            in_share = itertools.count()
            for k, part in enumerate(share):
                for place, i in enumerate(part):
                    found[:, i] = r, k, place, next(in_share), next(in_all)
        return found

    @property
    def replica(self) -> Indices:
        """Return the replica of each example."""
        return np.asarray(self.places[0])

    @property
    def micro_batch(self) -> Indices:
        """Return the micro-batch of each example."""
        return np.asarray(self.places[1])

    @property
    def order(self) -> Indices:
        """Return the index of each example in its shard, and in the batch."""
        return self.places[3:]

    @property
    def replicas(self) -> int:
        """Return R, the number of replicas."""
        return 1 if self.single else self.layout.replicas

    @property
    def active(self) -> int:
        """Return A, the number of replicas with examples."""
        return 1 if self.single else sum(size > 0 for size in self.layout.sizes)

    @property
    def micro_batches(self) -> int:
        """Return K, the number of micro-batches."""
        return 1 if self.single else self.layout.micro_batches

    @cached_property
    def sizes(self) -> Vector:
        """Return n_r, the size of each example's per-replica batch."""
        return self.sums(self.ones, "replica")

    def of(self, end: str, axis: str) -> Mask:
        """Return a mask of the examples of the first or last replica or micro-batch.

        Args:
            end: "first" or "last".
            axis: "replica" or "micro-batch".

        Returns:
            A mask with one element per example.
        """
        own = self.replica if axis == "replica" else self.micro_batch
        return np.asarray(own == (own.min() if end == "first" else own.max()))

    @cached_property
    def _labels(self) -> dict[str, Indices]:
        replica, window = self.replica, self.micro_batch
        part = replica * self.layout.micro_batches + window
        return {"part": part, "replica": replica, "window": window, "node": replica // 2,
                "all": 0 * replica}  # fmt: skip

    def members(self, scope: str) -> Mask:
        """Return a mask of the examples (columns) in the scope of each example (rows).

        Args:
            scope: The scope, such as "replica", "part" or "first replica".

        Returns:
            A square mask: element [i, j] tells if example j is in the scope of example i.

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
        """Return for each example the sum of values over a scope.

        Args:
            values: A vector.
            scope: The scope, such as "replica" or "largest part".

        Returns:
            A vector.
        """
        end, _, inner = scope.partition(" ")
        if not self.single and end in ("largest", "smallest"):
            own = self.sums(values, inner)
            least = own[own > 0].min(initial=np.inf)
            return np.full(len(own), own.max() if end == "largest" else least)
        return np.asarray(self.members(scope) @ values, dtype=np.float64)

    def longest(self, scope: str) -> Vector:
        """Return for each example the largest weight in a scope.

        Args:
            scope: The scope.

        Returns:
            A vector.
        """
        return np.asarray((self.members(scope) * self.weights).max(axis=1), dtype=np.float64)

    def pieces(self, scope: str) -> Vector:
        """Return for each example the number of chunks of its batch, or of nodes.

        Args:
            scope: "node", or a rule for chunks such as "2 chunks".

        Returns:
            A vector.
        """
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
            size, more = sizes // number, sizes % number  # so many pieces have one example more
            chunk = np.maximum(place // (size + 1), (place - more) // np.maximum(size, 1))
            count = np.minimum(number, sizes)
        else:
            chunk, count = place // number, -(-sizes // number)
        labels = self._labels["part"] * len(self.weights) + chunk
        return labels, np.asarray(count, dtype=np.float64)
