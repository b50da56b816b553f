"""The stages of a dataset whose elements depend on those before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from samegrad._core import InvalidArgumentError
from samegrad._tensor.spec import TensorSpec
from samegrad._tensor.text import leaf_of
from samegrad.data._cursor import Cursor
from samegrad.data._function_nodes import decided
from samegrad.data._mapped import to_element
from samegrad.data._nodes import (
    INFINITE,
    UNKNOWN,
    Node,
    PythonNode,
    Run,
    SelectionNode,
)
from samegrad.data._random import all_draws, data_function, take_ordinal
from samegrad.data._stand_ins import spec_of_results
from samegrad.data._structure import (
    Structure,
    fill,
    leaves_of,
    map_leaves,
    view_of,
)


class TakeWhileNode(SelectionNode):
    """The elements up to the first for which a function is not true."""

    def __init__(self, child: Node, predicate: Callable[..., Any]) -> None:
        super().__init__(child)
        self._predicate = predicate

    def _choice(self, seed: int) -> Callable[[int, Structure], bool]:
        is_true = decided(self._predicate, seed)

        def chosen(number: int, element: Structure) -> bool:
            if not is_true(number, element):
                raise StopIteration
            return True

        return chosen


class UniqueNode(SelectionNode):
    """Each element the first time that it comes."""

    def _choice(self, seed: int) -> Callable[[int, Structure], bool]:
        seen: set[Any] = set()

        def is_new(number: int, element: Structure) -> bool:
            key = tuple(map(_identity, leaves_of(element)))
            new = key not in seen
            seen.add(key)
            return new

        return is_new


def _identity(leaf: Any) -> tuple[Any, ...]:
    view = view_of(leaf)
    return view.shape, tuple(view.ravel()) if view.dtype == object else view.tobytes()


class ScanNode(PythonNode):
    """Elements and next states that a function makes of states and elements."""

    def __init__(self, child: Node, state: Structure, function: Callable[..., Any]) -> None:
        super().__init__(child, batched=child.batched)
        self.child, self._state, self._function = child, state, function
        self.ordinal = take_ordinal()
        self._spec: Structure = None

    @property
    def spec(self) -> Structure:
        if self._spec is None:
            self._spec, _ = spec_of_results(
                self,
                self.child,
                lambda part: to_element(self._function(self._state, part)[1], "Dataset.scan"),
            )
        return self._spec

    def cardinality(self) -> int:
        return self.child.cardinality()

    def python_cursor(self, run: Run) -> Cursor:
        return _ScanCursor(self.child.cursor(run), self._state, self._function, run.draws_of(self))


class _ScanCursor(Cursor):
    def __init__(
        self, child: Cursor, state: Structure, function: Callable[..., Any], seed: int
    ) -> None:
        self._child, self._state, self._function, self._seed = child, state, function, seed
        self._read = 0

    def next(self) -> Structure:
        element = self._child.next()
        self._read += 1
        with data_function(self._seed, self._read - 1):
            made = self._function(self._state, element)
        if not isinstance(made, tuple | list) or len(made) != 2:
            raise TypeError(
                "[Dataset.scan] scan_func must return the next state and an element: got "
                f"{type(made).__name__}."
            )
        self._state = next_state(self._state, made[0], "Dataset.scan")
        return to_element(made[1], "Dataset.scan")


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


class RebatchNode(PythonNode):
    """The rows of batches in batches of other sizes, which repeat."""

    def __init__(self, child: Node, sizes: Sequence[int], drop_remainder: bool) -> None:
        super().__init__(child, batched=True)
        self.child, self._sizes, self._drop = child, list(sizes), drop_remainder

    @property
    def spec(self) -> Structure:
        rows = self._sizes[0] if self._drop and len(set(self._sizes)) == 1 else None
        return map_leaves(lambda s: TensorSpec((rows, *s.shape[1:]), s.dtype), self.child.spec)

    def cardinality(self) -> int:
        return INFINITE if self.child.cardinality() == INFINITE else UNKNOWN

    def python_cursor(self, run: Run) -> Cursor:
        return _RebatchCursor(self.child.cursor(run), self._sizes, self._drop)


class _RebatchCursor(Cursor):
    def __init__(self, child: Cursor, sizes: Sequence[int], drop_remainder: bool) -> None:
        self._child, self._sizes, self._drop = child, sizes, drop_remainder
        self._held: list[list[Any]] = []  # the rows at hand: per element, its leaves
        self._rows = self._made = 0
        self._template: Structure = None

    def next(self) -> Structure:
        size = self._sizes[self._made % len(self._sizes)]
        while self._rows < size:
            try:
                element = self._child.next()
            except StopIteration:
                if self._drop or not self._rows:
                    raise
                size = self._rows
                continue
            views = [view_of(leaf) for leaf in leaves_of(element)]
            self._rows += _rows(views)
            self._held.append(views)
            self._template = element
        self._rows, self._made = self._rows - size, self._made + 1
        return fill(self._template, _cut(self._held, size))


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
    return [leaf_of(np.concatenate(columns)) for columns in zip(*parts, strict=True)]


class ChooseNode(PythonNode):
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

    def python_cursor(self, run: Run) -> Cursor:
        opened = [node.cursor(run) for node in self._inputs]
        left = {n for n in range(len(opened)) if self._choices or self._weights[n] > 0}
        return _ChooseCursor(opened, left, self._numbers(run), self._stop)

    def _numbers(self, run: Run) -> Callable[[], int]:
        if self._choices:
            choices = self._choices.cursor(run)
            return lambda: int(choices.next())
        seed = run.seed_of(self) if self._seed is None else self._seed & (1 << 64) - 1
        return self._draws(seed, run.epoch).__next__

    def _draws(self, seed: int, epoch: int) -> Iterator[int]:
        bounds = np.cumsum(np.asarray(self._weights, np.float64))
        for draws in all_draws(seed, epoch):
            places = draws.astype(np.float64) / 2.0**63 * bounds[-1]
            yield from np.searchsorted(bounds, places, side="right").clip(0, len(bounds) - 1)


class _ChooseCursor(Cursor):
    def __init__(
        self, inputs: list[Cursor], left: set[int], number: Callable[[], int], stop: bool
    ) -> None:
        self._inputs, self._left, self._number, self._stop = inputs, left, number, stop
        self._ended = not left

    def next(self) -> Structure:
        while not self._ended:
            number = self._number()
            if not 0 <= number < len(self._inputs):
                raise InvalidArgumentError(
                    "[Dataset.choose_from_datasets] a choice must be the number of a dataset: got "
                    f"{number} for {len(self._inputs)} datasets."
                )
            if number not in self._left:
                continue
            try:
                return self._inputs[number].next()
            except StopIteration:
                self._left.remove(number)
                self._ended = self._stop or not self._left
        raise StopIteration
