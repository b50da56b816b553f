"""Transformations of the engine's plans in Python, for elements that Python computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._tensor.sparse import SparseTensor
from samegrad._tensor.sparse import stacked as stacked_sparse
from samegrad._tensor.tensor import Tensor
from samegrad._tensor.text import Text, leaf_of, of_bytes
from samegrad.data._cursor import Cursor
from samegrad.data._random import all_draws
from samegrad.data._structure import Structure, fill, leaves_of, view_of


class ZipCursor(Cursor):
    """Elements of several cursors side by side."""

    def __init__(self, cursors: Structure) -> None:
        self._cursors = cursors
        self._leaves: list[Cursor] = leaves_of(cursors)

    def next(self) -> Structure:
        found, errors = [], []
        for cursor in self._leaves:  # all of them, so that they stay side by side after an error
            try:
                found.append(cursor.next())
            except Exception as error:
                errors.append(error)
        if errors:
            ends = [error for error in errors if isinstance(error, StopIteration)]
            raise (ends or errors)[0]
        return fill(self._cursors, found)

    def skip(self, count: int) -> int:
        return min(cursor.skip(count) for cursor in self._leaves)


class ShuffleCursor(Cursor):
    """The order of the engine's shuffle: see `Dataset.shuffle`."""

    def __init__(self, child: Cursor, buffer_size: int, seed: int, epoch: int) -> None:
        self._child = child
        self._size = buffer_size
        self._held: list[Structure] = []
        self._free: int | None = None  # the place of the last element, until another one is needed
        self._ended = False
        # Numbers of Python, which do not overflow.
        draws = (block.tolist() for block in all_draws(seed, epoch))
        self._draws = chain.from_iterable(draws)

    def next(self) -> Structure:
        self._fill_place()
        while not self._ended and len(self._held) < self._size:
            self._fetch()
        if not self._held:
            raise StopIteration
        self._free = place = next(self._draws) * len(self._held) >> 63
        element, self._held[place] = self._held[place], None
        return element

    def _fill_place(self) -> None:
        """Put the next element, else the last one, where the one before was."""
        if self._free is None:
            return
        self._fetch()
        last = self._held.pop()
        if self._free < len(self._held):
            self._held[self._free] = last
        self._free = None

    def _fetch(self) -> None:
        if not self._ended:
            try:
                self._held.append(self._child.next())
            except StopIteration:
                self._ended = True


class RepeatCursor(Cursor):
    """Opens its input anew for each pass.

    Args:
        open_pass: Makes the cursor of pass n.
        count: How many passes; < 0: no end.
        size: Elements of a pass; < 0: unknown.
    """

    def __init__(self, open_pass: Callable[[int], Cursor], count: int, size: int) -> None:
        self._open, self._count, self._size = open_pass, count, size
        self._pass = 0
        self._within = 0
        self._cursor: Cursor | None = None

    def next(self) -> Structure:
        while self._pass != self._count:
            if self._cursor is None:
                self._cursor = self._open(self._pass)
            try:
                element = self._cursor.next()
            except StopIteration:
                self._end_pass()
                continue
            self._within += 1
            return element
        raise StopIteration

    def skip(self, count: int) -> int:
        done = 0
        if self._size > 0 and self._cursor is None:
            passes = count // self._size
            if self._count >= 0:
                passes = min(passes, self._count - self._pass)
            self._pass += passes
            done = passes * self._size
        while done < count and self._pass != self._count:
            if self._cursor is None:
                self._cursor = self._open(self._pass)
            passed = self._cursor.skip(count - done)
            done += passed
            self._within += passed
            if done < count:
                self._end_pass()
        return done

    def _end_pass(self) -> None:
        # Repeating nothing forever would never return.
        self._pass = self._pass + 1 if self._within else self._count
        self._within = 0
        self._cursor = None


class TakeCursor(Cursor):
    """The first elements; count < 0: all."""

    def __init__(self, child: Cursor, count: int) -> None:
        self._child, self._left = child, count

    def next(self) -> Structure:
        if self._left == 0:
            raise StopIteration
        element = self._child.next()
        self._left -= 1
        return element

    def skip(self, count: int) -> int:
        done = self._child.skip(count if self._left < 0 else min(count, self._left))
        self._left -= done if self._left > 0 else 0
        return done


class SkipCursor(Cursor):
    """All but the first elements."""

    def __init__(self, child: Cursor, count: int) -> None:
        self._child, self._before = child, count

    def next(self) -> Structure:
        self._pass_over()
        return self._child.next()

    def skip(self, count: int) -> int:
        self._pass_over()
        return self._child.skip(count)

    def _pass_over(self) -> None:
        if self._before:
            self._child.skip(self._before)
            self._before = 0


class ShardCursor(Cursor):
    """Every count-th element, from element `index` on."""

    def __init__(self, child: Cursor, count: int, index: int) -> None:
        self._child, self._count, self._before = child, count, index

    def next(self) -> Structure:
        self._child.skip(self._before)
        element = self._child.next()
        self._before = self._count - 1
        return element


class BatchCursor(Cursor):
    """Consecutive elements as one."""

    def __init__(
        self,
        child: Cursor,
        batch_size: int,
        drop_remainder: bool,
        stack: Callable[[list[Structure]], Structure],
    ) -> None:
        self._child, self._size, self._drop, self._stack = (
            child, batch_size, drop_remainder, stack,
        )  # fmt: skip

    def next(self) -> Structure:
        elements: list[Structure] = []
        try:
            while len(elements) < self._size:
                elements.append(self._child.next())
        except StopIteration:
            if not elements or self._drop:
                raise
        return self._stack(elements)

    def skip(self, count: int) -> int:
        whole, rest = divmod(self._child.skip(count * self._size), self._size)
        return whole + (1 if rest and not self._drop else 0)


def stack_elements(elements: list[Structure]) -> Structure:
    """Elements of one structure as a batch, their leaves as rows."""
    if isinstance(elements[0], Tensor):
        return _core.stack_rows(elements)
    if _are_flat(elements):
        return tuple([stacked(column) for column in zip(*elements, strict=True)])
    columns = zip(*map(leaves_of, elements), strict=True)
    return fill(elements[0], [stacked(column) for column in columns])


def _are_flat(elements: list[Structure]) -> bool:
    """Tell if all are tuples of as many tensors, whose leaves need no search."""
    size = len(elements[0]) if type(elements[0]) is tuple else -1
    return all(
        type(element) is tuple and len(element) == size and all(type(x) is Tensor for x in element)
        for element in elements
    )


def stacked(column: tuple[Any, ...]) -> Any:
    """Leaves of elements as one leaf of a batch."""
    first = column[0]
    if isinstance(first, Tensor):
        return _core.stack_rows(column)
    if isinstance(first, SparseTensor):
        return stacked_sparse(column)
    if not isinstance(first, Text):
        raise TypeError(
            f"[Dataset.batch] components are numbers or strings: got {type(first).__name__}; batch "
            "the datasets of a window, or pad ragged tensors with to_tensor()."
        )
    shapes = {text._shape for text in column}
    if len(shapes) > 1:
        raise ValueError(
            f"[Dataset.batch] elements must have one shape: got {' and '.join(map(str, shapes))}; "
            "see padded_batch."
        )
    return of_bytes(np.stack([text.encoded for text in column]))


class SelectionCursor(Cursor):
    """Elements that are chosen one by one.

    Args:
        child: The elements.
        chosen: Gets the number of an element and the element; StopIteration ends all.
    """

    def __init__(self, child: Cursor, chosen: Callable[[int, Structure], bool]) -> None:
        self._child, self._chosen = child, chosen
        self._read = 0
        self._ended = False

    def next(self) -> Structure:
        while not self._ended:
            element = self._child.next()
            self._read += 1
            try:
                if self._chosen(self._read - 1, element):
                    return element
            except StopIteration:
                self._ended = True
        raise StopIteration


class UnbatchCursor(Cursor):
    """The rows of each element, one after the other."""

    def __init__(self, child: Cursor) -> None:
        self._child = child
        self._rows: Iterator[Structure] = iter(())

    def next(self) -> Structure:
        while True:
            for row in self._rows:
                return row
            self._rows = _rows_of(self._child.next())


def _rows_of(element: Structure) -> Iterator[Structure]:
    views = [view_of(leaf) for leaf in leaves_of(element)]
    sizes = {view.shape[0] if view.ndim else None for view in views}
    if len(sizes) != 1 or None in sizes:
        raise ValueError(
            "[Dataset.unbatch] all components must have the same number of rows: got shapes "
            f"{', '.join(str(view.shape) for view in views)}."
        )
    for row in range(views[0].shape[0]):
        yield fill(element, [_row(view, row) for view in views])


def _row(view: Any, row: int) -> Any:
    return leaf_of(np.asarray(view[row], view.dtype))
