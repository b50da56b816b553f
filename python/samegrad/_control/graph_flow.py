"""Branches and loops of a traced function, in terms of named Python values.

The engine's branches and loops take and return lists of tensors. Here the values may be nested, and
numbers, variables and other objects may stand among the tensors. What a branch or round makes of
them decides what must be a tensor and of which dtype, so a function is traced again where the
first guess was wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from samegrad import _core
from samegrad._context import state as _context
from samegrad._control.carried_values import (
    UNBOUND,
    FormLearntError,
    Missing,
    Stacked,
    Zeros,
    as_predicate,
    as_tensor,
    can_be_tensor,
    describe,
    is_carried,
    is_untyped,
    leaves,
    refill,
    rewrap,
    same_constant,
    same_structure,
    unwrap,
    zeros_of,
)
from samegrad._control.growing import Place, Shapes, check_start, leave_if_it_may
from samegrad._tensor.sizes import may_be_as_large
from samegrad._tensor.tensor import Tensor, convert_to_tensor
from samegrad.errors import WrongTypeError

Values = tuple[Any, ...]


class _AgainError(Exception):
    """The functions must be traced again, with what was learnt."""


def graph_branch(
    who: str,
    predicate: Any,
    true_fn: Callable[[], Values],
    false_fn: Callable[[], Values],
    names: Sequence[str],
    guarded: Collection[int] = (),
) -> Values:
    """Return the values of the function that a traced predicate chooses in each step.

    Args:
        who: For messages.
        predicate: One element.
        true_fn: Returns as many values as there are names, nested or not.
        false_fn: Likewise.
        names: What the messages call the values.
        guarded: Which values are never looked at where a branch gave them none.

    Raises:
        ValueError: Values of the two functions differ in structure, dtype or shape.
    """
    chosen, joined = as_predicate(who, predicate), _Join(who, names, guarded)
    while True:
        try:
            results = _core.traced_cond(
                chosen,
                lambda: joined.first(_context.recorded(true_fn)),
                lambda: joined.second(_context.recorded(false_fn)),
            )
        except _AgainError:
            continue
        return joined.values(results)


class _Join:
    """Merger of the results of two branches."""

    def __init__(self, who: str, names: Sequence[str], guarded: Collection[int]) -> None:
        self._who, self._names, self._guarded = who, names, guarded
        self._dtypes: dict[Place, str] = {}
        self._one_sided: set[int] = set()
        self._fill: dict[int, Any] = {}  # the substitutes where a branch assigns nothing

    def _held(self, i: int, value: Any) -> Any:
        """Return the value of a branch, or its substitute."""
        if isinstance(value, Missing):
            self._one_sided.add(i)
        value = unwrap(value)
        return self._fill.get(i, value) if value is UNBOUND else value

    def first(self, values: Values) -> list[Tensor]:
        """Return the tensors of one branch."""
        self._first = [self._held(i, value) for i, value in enumerate(values)]
        self._tensors = {
            (i, k): as_tensor(leaf, self._dtypes.get((i, k)))
            for i, value in enumerate(self._first)
            for k, leaf in enumerate(leaves(value))
            if can_be_tensor(leaf) and not self._dropped(i)
        }
        return list(self._tensors.values())

    def _dropped(self, i: int) -> bool:
        return self._fill.get(i) is UNBOUND

    def second(self, values: Values) -> list[Tensor]:
        """Return the tensors of the other branch, with the types of the first one's."""
        self._kept: dict[Place, Any] = {}
        others: dict[Place, Tensor] = {}
        for i, a in enumerate(self._first):
            if self._dropped(i):
                continue
            b = self._held(i, values[i])
            if (a is UNBOUND) != (b is UNBOUND):
                self._one_sided.add(i)
                self._fill[i] = zeros_of(b if a is UNBOUND else a)
                raise _AgainError
            if not same_structure(a, b):
                raise self._error(i, "structure", describe(a), describe(b))
            for k, (x, y) in enumerate(zip(leaves(a), leaves(b), strict=True)):
                if same_constant(x, y):
                    self._kept[i, k] = x
                if (i, k) in self._tensors:
                    others[i, k] = self._match((i, k), x, y)
                elif not same_constant(x, y):
                    raise self._error(i, "value", describe(x), describe(y))
        return list(others.values())

    def _match(self, place: Place, x: Any, y: Any) -> Tensor:
        """Return the leaf y as a tensor of the type that x has."""
        first = self._tensors[place]
        if not can_be_tensor(y):
            raise self._error(place[0], "kind", describe(x), describe(y))
        widens = is_untyped(x) and isinstance(x, int) and isinstance(y, float)
        try:
            second = as_tensor(y, None if widens else first._dtype)
        except TypeError:  # a float and a tensor of integers
            kinds = describe(first), describe(y)
            raise self._error(place[0], "dtype", *kinds, WrongTypeError) from None
        if first._dtype != second._dtype and is_untyped(x) and place not in self._dtypes:
            self._dtypes[place] = second._dtype
            raise _AgainError
        if first._dtype != second._dtype or not may_be_as_large(first, second):
            kind = ValueError if first._dtype == second._dtype else WrongTypeError
            raise self._error(place[0], "dtype and shape", describe(first), describe(second), kind)
        return second

    def _error(
        self, i: int, what: str, first: str, second: str, kind: type[ValueError] = ValueError
    ) -> ValueError:
        return kind(
            f"[{self._who}] {self._names[i]} must have the same {what} whether the condition is "
            f"true or false: got {first} and {second}."
        )

    def values(self, results: Sequence[Tensor]) -> Values:
        """Return the values after the branches."""
        new = {**dict(zip(self._tensors, results, strict=True)), **self._kept}
        done: list[Any] = []
        for i, value in enumerate(self._first):
            parts = [
                rewrap(leaf, new[i, k]) if (i, k) in self._tensors else new.get((i, k), leaf)
                for k, leaf in enumerate(leaves(value))
            ]
            joined = UNBOUND if self._dropped(i) else refill(value, parts)
            one_sided = i in self._one_sided and i not in self._guarded
            done.append(self._missing(i, joined) if one_sided else joined)
        return tuple(done)

    def _missing(self, i: int, value: Any) -> Missing:
        name = self._names[i]
        return Missing(
            f"[{self._who}] {name} has a value after one branch only, and the condition is a "
            f"tensor: give {name} a value before, or in both branches.",
            value,
        )


def graph_loop(
    who: str,
    test: Callable[[Values], Any],
    body: Callable[[Values], Values],
    names: Sequence[str],
    initial: Values,
    maximum: int | None = None,
    shapes: Shapes | None = None,
) -> Values:
    """Return the values after a loop that goes on while `test` says so, at most `maximum` times.

    Args:
        who: For messages.
        test: Whether another round is due; one element.
        body: A round: takes and returns the values.
        names: What the messages call them.
        initial: What they are at first; UNBOUND for those that the body makes.
        maximum: The largest number of rounds; None for any number.
        shapes: The shapes that values may take from round to round; the others keep theirs.

    Raises:
        NeedsPython: A value takes another shape that it may have; Python runs the function then.
        ValueError: A value changes its structure, dtype or shape in a round.
    """
    state = _LoopState(who, names, initial, shapes or {})
    while True:
        try:
            results = _core.traced_while(
                lambda *tensors: state.ask(test, tensors),
                lambda *tensors: _context.recorded(state.round, body, tensors),
                state.start(),
                -1 if maximum is None else int(maximum),
            )
        except FormLearntError as error:
            if not state.learns(error.form):
                raise
            continue
        except _AgainError:
            continue
        return state.pack(results)


class _LoopState:
    """The values that a loop carries from round to round."""

    def __init__(self, who: str, names: Sequence[str], initial: Values, shapes: Shapes) -> None:
        self._who, self._names, self._shapes = who, names, shapes
        self._initial = [unwrap(value) for value in initial]
        self._dtypes: dict[Place, str] = {}
        self._variables: set[Place] = set()  # variables that give way to other values
        self._failure: Exception | None = None  # what the first trace said
        self._probing = False

    def learns(self, form: object) -> bool:
        """Tell whether this loop made the values of that spec wait."""
        parts = [leaf for value in self._initial for leaf in leaves(value)]
        return any(isinstance(leaf, Stacked) and leaf._learns(form) for leaf in parts)

    def start(self) -> list[Tensor]:
        """Return the tensors before the first iteration."""
        self._tensors = {
            (i, k): as_tensor(leaf, self._dtypes.get((i, k)))
            for i, value in enumerate(self._initial)
            for k, leaf in enumerate(leaves(value))
            if self._changes((i, k), leaf)
        }
        for place, shape in self._shapes.items():
            if place in self._tensors:
                check_start(self._who, self._names[place[0]], self._tensors[place]._shape, shape)
        return list(self._tensors.values())

    def _changes(self, place: Place, leaf: Any) -> bool:
        variable = getattr(leaf, "_is_variable", False) and not isinstance(leaf, Zeros)
        return place in self._variables if variable else can_be_tensor(leaf)

    def pack(self, tensors: Sequence[Tensor]) -> Values:
        """Return the values of an iteration, given its tensors."""
        new = dict(zip(self._tensors, tensors, strict=True))
        packed = []
        for i, value in enumerate(self._initial):
            parts = [
                rewrap(leaf, new[i, k]) if (i, k) in new else leaf
                for k, leaf in enumerate(leaves(value))
            ]
            packed.append(refill(value, parts))
        return tuple(packed)

    def ask(self, test: Callable[[Values], Any], tensors: Sequence[Tensor]) -> list[Tensor]:
        """Evaluate the condition of another iteration."""
        if self._probing:
            return [convert_to_tensor(True)]
        return [as_predicate(self._who, self._attempt(test, self.pack(tensors)))]

    def round(self, body: Callable[[Values], Values], tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the tensors after an iteration."""
        values = self.pack(tensors)
        if self._probing:
            self._probe(body, values)
        done = self._attempt(body, values)
        after: dict[Place, Tensor] = {}
        for i, (old, new) in enumerate(zip(self._initial, done, strict=True)):
            if old is UNBOUND:
                self._created(i, new)
                continue
            if unwrap(new) is not new or new is UNBOUND or not same_structure(old, new):
                raise self._error(i, describe(values[i]), describe(new))
            for k, (x, y) in enumerate(zip(leaves(old), leaves(new), strict=True)):
                if (i, k) in self._tensors:
                    after[i, k] = self._match((i, k), x, y)
                elif not same_constant(x, y):
                    self._replaced((i, k), x, y)
        return list(after.values())

    def _attempt(self, function: Callable[[Values], Any], values: Values) -> Any:
        """A number starts as float32 or int32: where that does not fit, look what fits."""
        try:
            return function(values)
        except (TypeError, ValueError) as error:
            if self._failure is not None or not self._untyped():
                raise
            self._failure, self._probing = error, True
            raise _AgainError from None

    def _untyped(self) -> list[Place]:
        return [
            place for place in self._tensors
            if is_untyped(leaves(self._initial[place[0]])[place[1]])
        ]  # fmt: skip

    def _probe(self, body: Callable[[Values], Values], values: Values) -> None:
        """Run an iteration with Python's numbers, to learn their types."""
        assert self._failure is not None
        self._probing = False
        mixed = [
            old if any(is_untyped(leaf) for leaf in leaves(old)) else new
            for old, new in zip(self._initial, values, strict=True)
        ]
        try:
            done = body(tuple(mixed))
            for i, k in self._untyped():
                leaf = leaves(done[i])[k]
                if is_carried(leaf) and as_tensor(leaf)._dtype != self._tensors[i, k]._dtype:
                    self._dtypes[i, k] = as_tensor(leaf)._dtype
        except (TypeError, ValueError, IndexError):
            raise self._failure from None
        if not self._dtypes:
            raise self._failure
        raise _AgainError

    def _match(self, place: Place, x: Any, y: Any) -> Tensor:
        """Return the leaf y, which was x before the loop, as a tensor of the same type."""
        before = self._tensors[place]
        if not can_be_tensor(y):
            raise self._error(place[0], describe(before), describe(y))
        try:
            tensor = as_tensor(y, before._dtype)
        except TypeError:  # a float where there were integers
            tensor = as_tensor(y)
        if tensor._dtype != before._dtype and is_untyped(x) and place not in self._dtypes:
            self._dtypes[place] = tensor._dtype
            raise _AgainError
        if tensor._dtype == before._dtype and may_be_as_large(tensor, before):
            return tensor
        if tensor._dtype == before._dtype:
            allowed, name = self._shapes.get(place), self._names[place[0]]
            leave_if_it_may(self._who, name, before._shape, tensor._shape, allowed)
        kind = ValueError if tensor._dtype == before._dtype else WrongTypeError
        raise self._error(place[0], describe(before), describe(tensor), kind)

    def _created(self, i: int, new: Any) -> None:
        """A variable that the body makes: after no round at all it holds zeros."""
        if unwrap(new) is UNBOUND:
            return
        zeros = zeros_of(unwrap(new))
        if zeros is UNBOUND:
            name = self._names[i]
            raise ValueError(
                f"[{self._who}] {name} must have a value before the loop, which may make no round: "
                f"it becomes {describe(unwrap(new))}, whose number of examples is not known; "
                f"assign {name} before."
            )
        self._initial[i] = zeros
        if any(isinstance(leaf, Zeros) for leaf in leaves(zeros)):
            raise _AgainError

    def _replaced(self, place: Place, x: Any, y: Any) -> None:
        if not (getattr(x, "_is_variable", False) and can_be_tensor(y)):
            raise self._error(place[0], describe(x), describe(y))
        self._variables.add(place)
        raise _AgainError

    def _error(
        self, i: int, before: str, after: str, kind: type[ValueError] = ValueError
    ) -> ValueError:
        name = self._names[i]
        return kind(
            f"[{self._who}] {name} must keep its structure, dtype and shape in a loop: it was "
            f"{before} and became {after}; start with a tensor of the final form, or say which "
            "shapes it takes with shape_invariants."
        )


__all__ = ["UNBOUND", "graph_branch", "graph_loop"]
