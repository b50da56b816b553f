"""Operators of converted functions: Python's control flow for values, traced for tensors.

Rewritten functions know this module as `ag__`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from samegrad import _core
from samegrad._control.carried_values import UNBOUND, as_predicate
from samegrad._control.control_flow import is_traced, require
from samegrad._control.graph_flow import graph_branch, graph_loop
from samegrad._control.growing import shapes_of_pairs
from samegrad._tensor.tensor import convert_to_tensor
from samegrad.autograph._convert import call
from samegrad.autograph._sequences import Sequence as TracedSequence
from samegrad.autograph._sequences import sequence_of

Block = Callable[[], None]
_RESULT = ("the result",)
_SHOWN = {"ag__result": "the returned value"}


def read(get: Callable[[], Any]) -> Any:
    """The value of a variable, attribute or item, or UNBOUND."""
    try:
        return get()
    except (NameError, AttributeError, KeyError, IndexError, TypeError):
        return UNBOUND


def is_unbound(value: Any) -> bool:
    """Tell if a variable has no value."""
    return value is UNBOUND


def differs(get: Callable[[], Any], new: Any) -> bool:
    """Tell if an attribute or item must be assigned to hold `new`."""
    return new is not UNBOUND and read(get) is not new


class State:
    """The variables that the blocks of a statement bind.

    Args:
        get: Returns the values.
        set_: Takes new ones.
        names: Variables, then attributes and items.
        live: Those whose values matter afterwards (in a loop: to the next round, too).
    """

    def __init__(
        self,
        get: Callable[[], Sequence[Any]],
        set_: Callable[[Sequence[Any]], None],
        names: Sequence[str],
        live: Sequence[str],
    ) -> None:
        self._get, self._set = get, set_
        self._live = [i for i, name in enumerate(names) if name in live]
        self.names = [_shown(names[i]) for i in self._live]
        # Flags decide whether these are looked at.
        self.guarded = [k for k, i in enumerate(self._live) if names[i].startswith("ag__")]
        self._before: list[Any] = []

    def save(self) -> tuple[Any, ...]:
        """Remember all values, and return those that matter."""
        self._before = list(self._get())
        return tuple(self._before[i] for i in self._live)

    def restore(self, values: Sequence[Any] | None = None) -> None:
        """Set what was remembered, but for the values that matter if they are given."""
        new = list(self._before)
        if values is not None:
            for i, value in zip(self._live, values, strict=True):
                new[i] = value
        self._set(new)

    def live(self) -> tuple[Any, ...]:
        """The values that matter."""
        now = self._get()
        return tuple(now[i] for i in self._live)


def _shown(name: str) -> str:
    if name.startswith(("ag__broken", "ag__continued", "ag__returned")):
        return "the way out of the loop"
    return _SHOWN.get(name, repr(name))


def if_stmt(condition: Any, body: Block, orelse: Block, state: State) -> None:
    """`if condition: body` with `else: orelse`."""
    if not is_traced(condition):
        (body if condition else orelse)()
        return
    state.save()

    def branch(block: Block) -> tuple[Any, ...]:
        state.restore()
        block()
        return state.live()

    values = graph_branch(
        "if", condition, lambda: branch(body), lambda: branch(orelse), state.names, state.guarded
    )
    state.restore(values)


def while_stmt(
    test: Callable[[], Any],
    body: Block,
    state: State,
    maximum_iterations: int | None = None,
    shape_invariants: Any = None,
    **ignored: Any,
) -> None:
    """`while test(): body`."""
    rounds = 0
    while maximum_iterations is None or rounds < maximum_iterations:
        more = test()
        if is_traced(more):
            left = None if maximum_iterations is None else maximum_iterations - rounds
            _graph_while(test, body, state, left, shape_invariants)
            return
        if not more:
            return
        body()
        rounds += 1


def _graph_while(
    test: Callable[[], Any], body: Block, state: State, maximum: int | None, grows: Any
) -> None:
    def ask(values: tuple[Any, ...]) -> Any:
        state.restore(values)
        return test()

    def one_round(values: tuple[Any, ...]) -> tuple[Any, ...]:
        state.restore(values)
        body()
        return state.live()

    start = state.save()
    shapes = shapes_of_pairs("while", grows, start)
    state.restore(graph_loop("while", ask, one_round, state.names, start, maximum, shapes))


def for_stmt(
    iterable: Any,
    test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    state: State,
    maximum_iterations: int | None = None,
    shape_invariants: Any = None,
    **ignored: Any,
) -> None:
    """`for item in iterable: body(item)`, while `test` says so, if there is one."""
    sequence = sequence_of(iterable)
    if sequence is not None:
        _graph_for(sequence, test, body, state, maximum_iterations, shape_invariants)
        return
    for item in iterable:
        more = True if test is None else test()
        if is_traced(more):  # a `break` that depends on a tensor
            if_stmt(more, lambda item=item: body(item), lambda: None, state)  # type: ignore[misc]
            continue
        body(item)
        if test is not None and not is_traced(test()) and not test():
            return


def _graph_for(
    sequence: TracedSequence,
    test: Callable[[], Any] | None,
    body: Callable[[Any], None],
    state: State,
    maximum: int | None,
    grows: Any,
) -> None:
    length = sequence.length()

    def ask(values: tuple[Any, ...]) -> Any:
        state.restore(values[1:])
        within = values[0] < length
        return within if test is None else and_(lambda: within, test)

    def one_round(values: tuple[Any, ...]) -> tuple[Any, ...]:
        state.restore(values[1:])
        body(sequence.item(values[0]))
        return (values[0] + 1, *state.live())

    names = ["the number of the round", *state.names]
    start = (convert_to_tensor(0), *state.save())
    shapes = shapes_of_pairs("for", grows, start)
    values = graph_loop("for", ask, one_round, names, start, maximum, shapes)
    state.restore(values[1:])


def and_(*operands: Callable[[], Any]) -> Any:
    """`a and b and …`."""
    value = operands[0]()
    if len(operands) == 1:
        return value
    if not is_traced(value):
        return and_(*operands[1:]) if value else value
    return if_exp(value, lambda: and_(*operands[1:]), lambda: value, "and")


def or_(*operands: Callable[[], Any]) -> Any:
    """`a or b or …`."""
    value = operands[0]()
    if len(operands) == 1:
        return value
    if not is_traced(value):
        return value if value else or_(*operands[1:])
    return if_exp(value, lambda: value, lambda: or_(*operands[1:]), "or")


def not_(value: Any) -> Any:
    """`not value`."""
    if not is_traced(value):
        return not value
    return _core.ops.logical_not(as_predicate("not", value))


def if_exp(
    condition: Any, body: Callable[[], Any], orelse: Callable[[], Any], who: str = "if"
) -> Any:
    """`body() if condition else orelse()`."""
    if not is_traced(condition):
        return body() if condition else orelse()
    return graph_branch(who, condition, lambda: (body(),), lambda: (orelse(),), _RESULT)[0]


def chain(first: Any, *links: Callable[..., Any]) -> Any:
    """`a < b < c`: comparisons and operands in turn."""
    compare, operand = links[0], links[1]
    second = operand()
    if len(links) == 2:
        return compare(first, second)
    return and_(lambda: compare(first, second), lambda: chain(second, *links[2:]))


def assert_stmt(condition: Any, message: Callable[[], Any], text: str) -> None:
    """`assert condition, message`."""
    if is_traced(condition):
        require(condition, lambda: f"assert {text}: {message()}", AssertionError)
    elif not condition:
        given = message()
        raise AssertionError(*(() if given is None else (given,)))


__all__ = [
    "State", "and_", "assert_stmt", "call", "chain", "differs", "for_stmt", "if_exp", "if_stmt",
    "is_unbound", "not_", "or_", "read", "while_stmt",
]  # fmt: skip
