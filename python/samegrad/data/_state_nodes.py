"""The stages of a dataset whose elements depend on those before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._tensor.spec import TensorSpec
from samegrad.data._cursor import Cursor
from samegrad.data._function_nodes import call, to_element
from samegrad.data._nodes import INFINITE, UNKNOWN, Node, Run
from samegrad.data._random import data_function, mix, take_ordinal
from samegrad.data._structure import (
    Structure,
    fill,
    leaves_of,
    map_leaves,
    of_view,
    spec_of,
    view_of,
)

_DRAWS_AT_ONCE = 256


class _Sequential(Node):
    """Elements that Python makes in their order."""

    def __init__(self, child: Node, batched: bool | None) -> None:
        super().__init__(child, batched=batched)
        self.child = child
        self.ordinal = take_ordinal()

    @property
    def spec(self) -> Structure:
        return self.child.spec

    def cardinality(self) -> int:
        return UNKNOWN

    def index(self, run: Run) -> None:
        return None

    def python_cursor(self, run: Run) -> Cursor:
        return _Generated(self._elements(self.child.cursor(run), mix(run.seed_of(self), run.epoch)))

    def _elements(self, child: Cursor, seed: int) -> Iterator[Structure]:
        raise NotImplementedError


class _Generated(Cursor):
    def __init__(self, elements: Iterator[Structure]) -> None:
        self._elements = elements

    def next(self) -> Structure:
        return next(self._elements)


def all_of(cursor: Cursor) -> Iterator[Structure]:
    """The elements of a cursor."""
    while True:
        try:
            element = cursor.next()
        except StopIteration:
            return
        yield element


class TakeWhileNode(_Sequential):
    """The elements up to the first for which a function is not true."""

    def __init__(self, child: Node, predicate: Callable[..., Any]) -> None:
        super().__init__(child, child.batched)
        self._predicate = predicate

    def _elements(self, child: Cursor, seed: int) -> Iterator[Structure]:
        for number, element in enumerate(all_of(child)):
            with data_function(seed, number):
                wanted = bool(call(self._predicate, element))
            if not wanted:
                return
            yield element


class ScanNode(_Sequential):
    """What a function makes of a state and each element, and the next state."""

    def __init__(self, child: Node, state: Structure, function: Callable[..., Any]) -> None:
        super().__init__(child, child.batched)
        self._state, self._function = state, function
        self._spec: Structure = None

    @property
    def spec(self) -> Structure:
        if self._spec is None:
            try:
                first = self.python_cursor(Run.of(self, 0, 0)).next()
            except StopIteration:
                raise ValueError(
                    "[Dataset.element_spec] the result of a function is known from its first "
                    "element: got a dataset without elements."
                ) from None
            self._spec = map_leaves(spec_of, first)
        return self._spec

    def cardinality(self) -> int:
        return self.child.cardinality()

    def _elements(self, child: Cursor, seed: int) -> Iterator[Structure]:
        state = self._state
        for number, element in enumerate(all_of(child)):
            with data_function(seed, number):
                made = self._function(state, element)
            if not isinstance(made, tuple | list) or len(made) != 2:
                raise TypeError(
                    "[Dataset.scan] scan_func must return the next state and an element: got "
                    f"{type(made).__name__}."
                )
            state = next_state(state, made[0], "Dataset.scan")
            yield to_element(made[1], "Dataset.scan")


def next_state(before: Structure, after: Any, who: str) -> Structure:
    """The state that a function returned.

    Raises:
        TypeError: It has another structure or other dtypes than the one before.
    """
    made = to_element(after, who)
    kinds = [[leaf._dtype for leaf in leaves_of(state)] for state in (before, made)]
    if kinds[0] != kinds[1]:
        raise TypeError(
            f"[{who}] the state must keep its structure and dtypes: got {', '.join(kinds[1])} "
            f"after {', '.join(kinds[0])}; use tf.cast."
        )
    return made


class UniqueNode(_Sequential):
    """Each element the first time that it comes."""

    def __init__(self, child: Node) -> None:
        super().__init__(child, child.batched)

    def _elements(self, child: Cursor, seed: int) -> Iterator[Structure]:
        seen = set()
        for element in all_of(child):
            views = [view_of(leaf) for leaf in leaves_of(element)]
            key = tuple(
                (view.shape, tuple(view.ravel()) if view.dtype == object else view.tobytes())
                for view in views
            )
            if key not in seen:
                seen.add(key)
                yield element


class RebatchNode(_Sequential):
    """The rows of batches in batches of other sizes, which repeat."""

    def __init__(self, child: Node, sizes: Sequence[int], drop_remainder: bool) -> None:
        super().__init__(child, True)
        self._sizes, self._drop = list(sizes), drop_remainder

    @property
    def spec(self) -> Structure:
        rows = self._sizes[0] if self._drop and len(set(self._sizes)) == 1 else None
        return map_leaves(lambda s: TensorSpec((rows, *s.shape[1:]), s.dtype), self.child.spec)

    def cardinality(self) -> int:
        return INFINITE if self.child.cardinality() == INFINITE else UNKNOWN

    def _elements(self, child: Cursor, seed: int) -> Iterator[Structure]:
        held: list[list[Any]] = []  # the rows at hand: per element, its leaves
        rows = made = 0
        for element in all_of(child):
            views = [view_of(leaf) for leaf in leaves_of(element)]
            rows += _rows(views)
            held.append(views)
            while rows >= (size := self._sizes[made % len(self._sizes)]):
                yield fill(element, _cut(held, size))
                rows, made = rows - size, made + 1
            last = element
        if rows and not self._drop:
            yield fill(last, _cut(held, rows))


def _rows(views: list[Any]) -> int:
    sizes = {view.shape[0] if view.ndim else None for view in views}
    if len(sizes) != 1 or None in sizes:
        raise ValueError(
            "[Dataset.rebatch] all components must have the same number of rows: got shapes "
            f"{', '.join(str(view.shape) for view in views)}; call batch first."
        )
    return int(views[0].shape[0])


def _cut(held: list[list[Any]], count: int) -> list[Any]:
    """The first rows of those at hand, which lose them."""
    parts: list[list[Any]] = []
    while count:
        size = len(held[0][0])
        parts.append([view[:count] for view in held[0]])
        if size <= count:
            held.pop(0)
        else:
            held[0] = [view[count:] for view in held[0]]
        count -= min(size, count)
    return [of_view(np.concatenate(columns)) for columns in zip(*parts, strict=True)]


class ChooseNode(Node):
    """Elements of several datasets, by the number of the one that is next.

    Args:
        inputs: The datasets.
        choices: Gives the numbers; None: they are drawn.
        weights: How often each is drawn, in proportion.
        seed: Of the draws; None: derived from the process's.
        stop: Whether all ends with the first dataset that has no more elements.
    """

    def __init__(
        self, inputs: Sequence[Node], choices: Node | None, weights: Sequence[float],
        seed: int | None, stop: bool,
    ) -> None:  # fmt: skip
        kinds = {node.batched for node in inputs}
        parts = (*inputs, choices) if choices else tuple(inputs)
        super().__init__(*parts, batched=kinds.pop() if len(kinds) == 1 else None)
        self._inputs, self._choices, self._weights = tuple(inputs), choices, list(weights)
        self._seed, self._stop = seed, stop
        if choices is None and seed is None:
            self.ordinal = take_ordinal()

    @property
    def spec(self) -> Structure:
        return self._inputs[0].spec

    def cardinality(self) -> int:
        sizes = [node.cardinality() for node in self._inputs]
        if self._choices is None and INFINITE in sizes:
            return UNKNOWN if self._stop and set(sizes) != {INFINITE} else INFINITE
        return UNKNOWN if self._choices or self._stop or UNKNOWN in sizes else sum(sizes)

    def index(self, run: Run) -> None:
        return None

    def python_cursor(self, run: Run) -> Cursor:
        cursors = [node.cursor(run) for node in self._inputs]
        return _Generated(self._elements(list(cursors), self._numbers(run)))

    def _numbers(self, run: Run) -> Iterator[int]:
        if self._choices:
            return (int(element) for element in all_of(self._choices.cursor(run)))
        seed = run.seed_of(self) if self._seed is None else self._seed & (1 << 64) - 1
        return self._draws(seed, run.epoch)

    def _draws(self, seed: int, epoch: int) -> Iterator[int]:
        bounds = np.cumsum(np.asarray(self._weights, np.float64))
        first = 0
        while True:
            draws = np.asarray(_core.shuffle_draws(seed, epoch, first, _DRAWS_AT_ONCE), np.uint64)
            places = draws.astype(np.float64) / 2.0**63 * bounds[-1]
            yield from np.searchsorted(bounds, places, side="right").clip(0, len(bounds) - 1)
            first += _DRAWS_AT_ONCE

    def _elements(self, cursors: list[Cursor], numbers: Iterator[int]) -> Iterator[Structure]:
        left = {n for n in range(len(cursors)) if self._choices or self._weights[n] > 0}
        for number in numbers:
            if not 0 <= number < len(cursors):
                raise ValueError(
                    "[Dataset.choose_from_datasets] a choice must be the number of a dataset: got "
                    f"{number} for {len(cursors)} datasets."
                )
            if number not in left:
                continue
            try:
                element = cursors[number].next()
            except StopIteration:
                left.remove(number)
                if self._stop or not left:
                    return
                continue
            yield element
