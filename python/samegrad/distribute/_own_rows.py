"""Batches of which a process makes no more than the rows of its own replicas."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

from samegrad import _core
from samegrad._tensor.per_replica import PerReplica
from samegrad.data._cursor import BackgroundCursor, Cursor, WorkCursor
from samegrad.data._function_nodes import MapNode, PrefetchNode
from samegrad.data._nodes import BatchNode, Node, Run
from samegrad.data._python_cursors import stack_elements
from samegrad.data._structure import Structure, fill, leaves_of
from samegrad.data._threads import threads_of
from samegrad.distribute._split import Split, check_numbers

Maker = Callable[[int, Structure], Structure]


def own_rows_of(root: Node, run: Run, split: Split) -> Cursor | None:
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
    source = node

    def open_cursor() -> Cursor:
        makers = [one.maker(run) for one in maps]
        return _OwnRowsCursor(source.cursor(run), makers, batch, split)

    calls = [one.calls for one in maps if one.calls is not None]
    threads = max((threads_of(count) for count in calls), default=1)
    tuned = all(count < 0 for count in calls)
    return _FailsForGood(BackgroundCursor(open_cursor, threads=threads, tuned=tuned))


class _OwnRowsError(Exception):
    """Error of a function (its cause) for an example that other processes do not compute."""


class _FailsForGood(Cursor):
    """Gives no batch after one of which this process could not make its rows.

    The others have that batch. A program that passes over the error would pair other batches.
    """

    def __init__(self, child: Cursor) -> None:
        self._child = child
        self._error: BaseException | None = None

    def next(self) -> Structure:
        if self._error is not None:
            raise RuntimeError(
                "[experimental_distribute_dataset] no batch comes after one of which a process "
                "could not make its own rows, as the other processes have that one: got "
                f"{type(self._error).__name__}: {self._error}; let the error end the job, or pass "
                "over such elements with ignore_errors before batch."
            ) from self._error
        try:
            return self._child.next()
        except _OwnRowsError as error:
            self._error = error.__cause__ or error
            raise self._error from None

    def skip(self, count: int) -> int:
        return self._child.skip(count)


class _OwnRowsCursor(WorkCursor):
    def __init__(self, source: Cursor, makers: list[Maker], batch: BatchNode, split: Split) -> None:
        self._source, self._makers = source, makers
        self._size, self._drop, self._split = batch._size, batch._drop, split
        self._position = 0
        self._first: tuple[int, Structure] | None = None  # of this run: the same for all processes

    def take(self) -> tuple[int, list[Structure]]:
        """The number of the first element, and what the elements of a batch are made of."""
        first = self._position
        taken: list[Structure] = []
        try:
            while len(taken) < self._size:
                taken.append(self._source.next())
                self._first = self._first or (self._position, taken[0])
                self._position += 1
        except StopIteration:
            if not taken or self._drop:
                raise
        return first, taken

    def make(self, taken: tuple[int, list[Structure]]) -> Structure:
        try:
            return self._own(*taken)
        except MemoryError:  # the batch is read again
            raise
        except Exception as error:
            raise _OwnRowsError from error

    def _own(self, position: int, elements: list[Structure]) -> Structure:
        bounds = _core.share_bounds(len(elements), self._split.replicas)
        first, last = self._split.own_range
        begin, end = bounds[first], bounds[last]
        # Without rows of its own a process still has to know their shape.
        made = [self._made(position + i, elements[i]) for i in range(begin, end) or range(1)]
        batch = stack_elements(made)
        if not self._like_the_first(batch):
            # Those of the other processes may differ from these: an error, which the rows of one
            # process do not show.
            stack_elements([self._made(position + i, each) for i, each in enumerate(elements)])
        own = [bound - begin for bound in bounds[first : last + 1]]
        return fill(batch, [self._shares(leaf, own, bounds, first) for leaf in leaves_of(batch)])

    def _like_the_first(self, batch: Structure) -> bool:
        """Tell if elements have the shapes of the run's first one."""
        found = [tuple(leaf._shape[1:]) for leaf in leaves_of(batch)]
        return found == self._first_shapes

    @cached_property
    def _first_shapes(self) -> list[tuple[int, ...]]:
        assert self._first is not None, "what is made was taken"
        return [tuple(leaf._shape) for leaf in leaves_of(self._made(*self._first))]

    def _made(self, position: int, element: Structure) -> Structure:
        for make in self._makers:
            element = make(position, element)
        return element

    @staticmethod
    def _shares(leaf: Any, own: list[int], bounds: list[int], first: int) -> PerReplica:
        check_numbers(leaf)
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
