"""Layouts of weighted examples, and sums over replicas and micro-batches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
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
    """Layouts and the weights of their examples. A vector has the examples layout by layout.

    Args:
        layout: The layout, or several.
        weights: The weight of each example of the first layout, then of the next one, and so on.
        known: A cache of computed vectors.
    """

    layout: Layout | Sequence[Layout]
    weights: Vector
    known: dict[object, Vector] = field(default_factory=dict, repr=False)

    @cached_property
    def layouts(self) -> Sequence[Layout]:
        """Return the layouts."""
        return [self.layout] if isinstance(self.layout, Layout) else self.layout

    @cached_property
    def right(self) -> Vector:
        """Return w_i / W, the correct weights."""
        return self.weights / self.sums(self.weights, "all")

    @cached_property
    def ones(self) -> Vector:
        """Return a vector of ones."""
        return np.ones(len(self.weights))

    @cached_property
    def places(self) -> Indices:
        """Return layout, example, replica, micro-batch, and index in it, its shard and batch."""
        found = []
        for p, item in enumerate(self.layouts):
            in_all = itertools.count()
            for r, share in enumerate(item.parts):
                in_share = itertools.count()
                for k, part in enumerate(share):
                    found += [(p, i, r, k, place, next(in_share), next(in_all))
                              for place, i in enumerate(part)]  # fmt: skip
        return np.array(sorted(found), dtype=np.intp).reshape(-1, 7).T

    @property
    def replica(self) -> Indices:
        """Return the replica of each example."""
        return np.asarray(self.places[2])

    @property
    def micro_batch(self) -> Indices:
        """Return the micro-batch of each example."""
        return np.asarray(self.places[3])

    @property
    def order(self) -> Indices:
        """Return the index of each example in its shard, and in the batch."""
        return self.places[5:]

    @cached_property
    def counts(self) -> Vector:
        """Return R, A (replicas with examples) and K of each example's layout."""
        found = [(o.replicas, np.count_nonzero(o.sizes), o.micro_batches) for o in self.layouts]
        return np.asarray(np.array(found, dtype=np.float64)[self.places[0]].T)

    @property
    def replicas(self) -> Vector:
        """Return R, the number of replicas."""
        return np.asarray(self.counts[0])

    @property
    def micro_batches(self) -> Vector:
        """Return K, the number of micro-batches."""
        return np.asarray(self.counts[2])

    @cached_property
    def examples(self) -> Vector:
        """Return n, the number of examples of each example's layout."""
        return self.sums(self.ones, "all")

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
        own = -own if end == "first" else own
        return np.asarray(own == _largest(own, self._labels["all"]))

    @cached_property
    def _labels(self) -> dict[str, Indices]:
        """The group of each example in a scope; scopes of chunks join when they are asked for."""
        item, _, replica, window = self.places[:4]
        shares, windows = 1 + self.places[2:4].max(axis=1, initial=0)
        share = item * shares + replica
        return {"part": share * windows + window, "window": item * windows + window,
                "replica": share, "node": item * shares + replica // 2, "all": item}  # fmt: skip

    def _members(self, scope: str) -> tuple[Indices, Mask]:
        """The group of each example in a scope, and a mask of the examples that count in groups."""
        end, _, axis = scope.partition(" ")
        if end in ("first", "last"):
            return self._labels["replica" if axis == "part" else "all"], self.of(end, axis)
        if scope not in self._labels:
            self._labels[scope] = self._chunks(scope)[0]
        return self._labels[scope], np.asarray(True)

    def sums(self, values: Vector, scope: str) -> Vector:
        """Return for each example the sum of values over a scope.

        Args:
            values: A vector.
            scope: The scope, such as "replica" or "largest part".

        Returns:
            A vector.

        Raises:
            ValueError: There is no such scope.
        """
        end, _, inner = scope.partition(" ")
        if end in ("largest", "smallest"):
            own = self.sums(values, inner)
            if end == "largest":
                return _largest(own, self._labels["all"])
            return -_largest(np.where(own > 0, -own, -np.inf), self._labels["all"])
        labels, counted = self._members(scope)
        return np.asarray(np.bincount(labels, values * counted)[labels], dtype=np.float64)

    def longest(self, scope: str) -> Vector:
        """Return for each example the largest weight in a scope.

        Args:
            scope: The scope.

        Returns:
            A vector.
        """
        labels, counted = self._members(scope)
        return _largest(self.weights * counted, labels)

    def pieces(self, scope: str) -> Vector:
        """Return for each example the number of chunks of its batch, or of nodes.

        Args:
            scope: "node", or a rule for chunks such as "2 chunks".

        Returns:
            A vector.
        """
        return -(-self.replicas // 2) if scope == "node" else self._chunks(scope)[1]

    def _chunks(self, rule: str) -> tuple[Indices, Vector]:
        """The piece of each example where the step cuts its batch, and how many pieces that has.

        Args:
            rule: "2 chunks" of about one size, or "chunks of 4" examples, the last one shorter.
        """
        found = re.fullmatch(r"([1-9]\d*) chunks|chunks of ([1-9]\d*)", rule)
        if not found:
            raise ValueError(
                "[Situation] scope must be one of part, replica, window, node, all, with first, "
                "last, largest or smallest before some of them, '2 chunks' or 'chunks of 4': got "
                f"{rule!r}."
            )
        number, place = int(found[1] or found[2]), self.places[4]
        sizes = self.sums(self.ones, "part").astype(np.intp)
        if found[1]:
            size, more = sizes // number, sizes % number  # so many pieces have one example more
            chunk = np.maximum(place // (size + 1), (place - more) // np.maximum(size, 1))
            count = np.minimum(number, sizes)
        else:
            chunk, count = place // number, -(-sizes // number)
        labels = self._labels["part"] * (1 + chunk.max(initial=0)) + chunk
        return labels, np.asarray(count, dtype=np.float64)


def _largest(values: npt.NDArray[np.generic], labels: Indices) -> Vector:
    """Return for each example the largest value in its group."""
    found = np.full(1 + labels.max(initial=-1), -np.inf)
    np.maximum.at(found, labels, values)
    return found[labels]
