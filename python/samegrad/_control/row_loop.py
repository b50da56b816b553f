"""One loop over the rows of tensors, by Python or as one operation of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._base.tree import flatten, map_structure
from samegrad._context import state as _context
from samegrad._context.user_code import converted
from samegrad._control.carried_values import same_structure
from samegrad._tensor.axes import counts_examples
from samegrad._tensor.sizes import is_length, may_be_as_large
from samegrad._tensor.tensor import Tensor, convert_to_tensor

_ops = _core.ops
_traced: list[Callable[..., Any]] = []


def set_function(function: Callable[..., Any]) -> None:
    """Set the function that traces; `samegrad.function`, a higher layer, calls it."""
    _traced[:] = [function]


class RowLoop:
    """A function, and the tensors whose rows it is called with."""

    def __init__(self, who: str, fn: Callable[..., Any], elems: Any, reverse: bool = False) -> None:
        if not callable(fn):
            raise TypeError(f"[{who}] fn must be a function: got {shown(fn)}.")
        self.who, self.fn, self.reverse = who, converted(fn), reverse
        self.elems = map_structure(convert_to_tensor, elems)
        self.arrays: list[Tensor] = flatten(self.elems)
        if not self.arrays or any(x._rank == 0 for x in self.arrays):
            raise ValueError(
                f"[{who}] elems must be tensors with rows: got {shown(elems)}; use expand_dims."
            )
        # Rows do not count as examples while the loop takes them one by one.
        self.examples = all(counts_examples(x, 0) for x in self.arrays)
        self.arrays = [_ops.as_rows(x) if counts_examples(x, 0) else x for x in self.arrays]
        sizes = {x._shape[0] for x in self.arrays}
        if len(sizes) != 1:
            raise ValueError(
                f"[{who}] elems must have as many rows: got {[x._shape[0] for x in self.arrays]}."
            )

    @property
    def count(self) -> int | None:
        """The number of rows, where it is one number."""
        size = self.arrays[0]._shape[0]
        return None if size is None else int(size)

    def take_first(self) -> Any:
        """Return the row that the loop would begin with, which is left out."""
        if not (self.count or is_length(self.arrays[0].shape[0])):
            raise ValueError(
                f"[{self.who}] without an initializer there must be a row to begin with, and their "
                f"number must not be that of examples: got shape {self.arrays[0]._shape}; pass "
                "initializer."
            )
        place, rest = (-1, slice(0, -1)) if self.reverse else (0, slice(1, None))
        firsts = iter([x[place] for x in self.arrays])
        self.arrays, self.examples = [x[rest] for x in self.arrays], False
        return map_structure(lambda _: next(firsts), self.elems)

    def accumulated(self, state: Any, row: Any) -> Any:
        """Return the new accumulator, of the form of the old one."""
        new = self.fn(state, row)
        if not same_structure(new, state):
            raise ValueError(
                f"[{self.who}] fn must return the accumulator in its structure: got {shown(new)} "
                f"for {shown(state)}."
            )
        return map_structure(lambda old, x: self._same_form(old, x), state, new)

    def _same_form(self, old: Tensor, new: Any) -> Tensor:
        number = isinstance(new, int | float) and not isinstance(new, bool)
        tensor = convert_to_tensor(new, old._dtype if number else None)
        if tensor._dtype != old._dtype or not may_be_as_large(tensor, old):
            raise ValueError(
                f"[{self.who}] the accumulator must keep its dtype and shape: it was {old._dtype} "
                f"{tuple(old._shape)} and became {tensor._dtype} {tuple(tensor._shape)}."
            )
        return tensor

    def run(self, body: Callable[[Any, Any], Any], state: Any) -> tuple[Any, Any]:
        """Return the last state and the stacked results of body(state, row) -> (state, result)."""
        leaves = [*self.arrays, *flatten(state)]
        if any(x._symbolic for x in leaves) or _core.tracing():
            return self._traced(body, state)
        if self.count == 0:  # what the shapes would be, only a trace tells
            step = _traced[0](lambda arrays, state: self._with(arrays)._traced(body, state))
            done: tuple[Any, Any] = step(self.arrays, state)
            return done
        return self._eager(body, state)

    def _with(self, arrays: list[Tensor]) -> RowLoop:
        self.arrays = arrays
        return self

    def _rows(self, rows: Any) -> Any:
        rows = iter(rows)
        return map_structure(lambda _: next(rows), self.elems)

    def _eager(self, body: Callable[[Any, Any], Any], state: Any) -> tuple[Any, Any]:
        count = self.count
        assert count is not None
        made: list[list[Tensor]] = []
        result: Any = None
        for i in reversed(range(count)) if self.reverse else range(count):
            state, result = body(state, self._rows(x[i] for x in self.arrays))
            made.append(flatten(result))
            self._check_forms(made[0], made[-1])
        if self.reverse:
            made.reverse()
        stacked = iter(
            [self._examples(_stacked(list(column))) for column in zip(*made, strict=True)]
        )
        return state, map_structure(lambda _: next(stacked), result)

    def _check_forms(self, first: list[Tensor], later: list[Tensor]) -> None:
        forms = [[(x._dtype, tuple(x._shape)) for x in leaves] for leaves in (first, later)]
        if forms[0] != forms[1]:
            raise ValueError(
                f"[{self.who}] fn must return the same dtypes and shapes for each row: got "
                f"{forms[0]} and {forms[1]}."
            )

    def _traced(self, body: Callable[[Any, Any], Any], state: Any) -> tuple[Any, Any]:
        form: list[Any] = []
        carried = flatten(state)

        def step(*tensors: Tensor) -> list[Tensor]:
            given = iter(tensors[len(self.arrays) :])
            before = map_structure(lambda _: next(given), state)
            after, result = _context.recorded(body, before, self._rows(tensors[: len(self.arrays)]))
            form[:] = [result]
            return [*flatten(after), *map(convert_to_tensor, flatten(result))]

        done = _core.traced_scan(step, self.arrays, carried, self.reverse)
        last, stacked = iter(done[: len(carried)]), iter(done[len(carried) :])
        return (
            map_structure(lambda _: next(last), state),
            map_structure(lambda _: self._examples(next(stacked)), form[0]),
        )

    def _examples(self, stacked: Tensor) -> Tensor:
        return _ops.as_examples(stacked, axis=0) if self.examples else stacked


def _stacked(tensors: list[Tensor]) -> Tensor:
    return _ops.concat(*[_ops.expand_dims(x, axes=[0]) for x in tensors], axis=0)
