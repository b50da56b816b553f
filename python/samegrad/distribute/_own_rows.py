"""Batches of which a process makes no more than the rows of its own replicas."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

from samegrad import _core
from samegrad._tensor.per_replica import PerReplica
from samegrad._tensor.tensor import Tensor
from samegrad.data._cursor import PREFETCHED, BackgroundCursor, Cursor, WorkCursor, threads_of
from samegrad.data._function_nodes import MapNode, PrefetchNode
from samegrad.data._nodes import BatchNode, Node, Run
from samegrad.data._python_cursors import stack_elements
from samegrad.data._structure import Structure, fill, leaves_of

Maker = Callable[[int, Structure], Structure]


class Shares(Protocol):
    """What of a Split matters here."""

    @property
    def replicas(self) -> int:
        """Between how many replicas a batch is shared out."""

    @property
    def balanced(self) -> bool:
        """Whether shares are subtrees of the summation tree."""

    @property
    def own_range(self) -> tuple[int, int]:
        """This process's replicas."""


def own_rows_of(root: Node, run: Run, split: Shares) -> Cursor | None:
    """The shares of batches of elements that functions make (`map`), row by row.

    Elements that another process's replicas get pass by unmade: the draws of a function depend on
    the number of the element alone.

    Args:
        root: The dataset's last stage.
        run: Which epoch.
        split: Who gets which rows.

    Returns:
        None where the dataset is of another kind: its batches have to be made whole.
    """
    batch = root
    while isinstance(batch, PrefetchNode):
        batch = batch.child
    if not isinstance(batch, BatchNode) or batch._stack is not None:
        return None
    maps: list[MapNode] = []
    node = batch.child
    while isinstance(node, MapNode | PrefetchNode):
        if isinstance(node, MapNode):
            maps.insert(0, node)
        node = node.child
    if not maps:
        return None
    source, size, drop = node, batch._size, batch._drop

    def open_cursor() -> Cursor:
        makers = [one.maker(run) for one in maps]
        return _OwnRowsCursor(source.cursor(run), makers, size, drop, split)

    calls = [one.calls for one in maps if one.calls is not None]
    threads = max((threads_of(count) for count in calls), default=1)
    return BackgroundCursor(open_cursor, PREFETCHED * threads, threads)


class _OwnRowsCursor(WorkCursor):
    def __init__(
        self, source: Cursor, makers: list[Maker], size: int, drop: bool, split: Shares
    ) -> None:
        self._source, self._makers = source, makers
        self._size, self._drop, self._split = size, drop, split
        self._position = 0

    def take(self) -> tuple[int, list[Structure]]:
        """The number of the first element, and what the elements of a batch are made of."""
        first = self._position
        taken: list[Structure] = []
        try:
            while len(taken) < self._size:
                taken.append(self._source.next())
                self._position += 1
        except StopIteration:
            if not taken or self._drop:
                raise
        return first, taken

    def make(self, taken: tuple[int, list[Structure]]) -> Structure:
        position, elements = taken
        bounds = _core.share_bounds(len(elements), self._split.replicas, self._split.balanced)
        first, last = self._split.own_range
        begin, end = bounds[first], bounds[last]
        # Without rows of its own a process still has to know their shape.
        made = [self._made(position + i, elements[i]) for i in range(begin, end) or range(1)]
        batch = stack_elements(made)
        own = [bound - begin for bound in bounds[first : last + 1]]
        return fill(batch, [self._shares(leaf, own, bounds, first) for leaf in leaves_of(batch)])

    def _made(self, position: int, element: Structure) -> Structure:
        for make in self._makers:
            element = make(position, element)
        return element

    @staticmethod
    def _shares(leaf: Any, own: list[int], bounds: list[int], first: int) -> PerReplica:
        if not isinstance(leaf, Tensor):
            raise TypeError(
                "[experimental_distribute_dataset] components of batches are numbers where there "
                f"are several processes: got {type(leaf).__name__}; keep text out of the batches, "
                "or make each process's own with distribute_datasets_from_function."
            )
        counts = [end - begin for begin, end in pairwise(bounds)]
        shapes = [[count, *tuple(leaf._shape)[1:]] for count in counts]
        parts = list(_core.split_rows(leaf, own))
        return PerReplica(_core.spread_parts(parts, first, shapes))

    def skip(self, count: int) -> int:
        done = self._source.skip(count * self._size)
        self._position += done
        whole, rest = divmod(done, self._size)
        return whole + (1 if rest and not self._drop else 0)


__all__ = ["own_rows_of"]
