"""Values of a traced data function that its program does not compute: strings, decoded files.

A program of the engine has neither strings nor sizes that nobody knows before a file is decoded.
While a function of `Dataset.map` is traced, the functions that work outside of traces (`on_host`)
compute these values, and the calls are recorded. For another element the calls are replayed, and
the program gets their results.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from samegrad import _core
from samegrad._tensor.conversion import Tensor
from samegrad._tensor.deferred import DeferredTensor
from samegrad._tensor.text import Text

F = TypeVar("F", bound=Callable[..., Any])
Native = Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]


class NotRecordedError(Exception):
    """The function does something that a program and calls of the host's functions do not."""


class Slot(NamedTuple):
    """A value of the host by its number; those of the element come first."""

    number: int


class HostCall(NamedTuple):
    """A call whose arguments may be slots; its result is the next slot."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def made(self, values: list[Any]) -> Any:
        """Return the result for these values of the slots."""
        args = [values[arg.number] if type(arg) is Slot else arg for arg in self.args]
        named = {k: values[v.number] if type(v) is Slot else v for k, v in self.kwargs.items()}
        return self.function(*args, **named)

    @property
    def slots(self) -> set[int]:
        """The slots that it takes."""
        given = (*self.args, *self.kwargs.values())
        return {arg.number for arg in given if type(arg) is Slot}

    def by_engine(self, native: Native | None) -> tuple[Any, int] | None:
        """Return the engine's function of one slot, and which; None: it has none for this call."""
        others = (*self.args[1:], *self.kwargs.values())
        if native is None or not self.args or any(type(arg) is Slot for arg in others):
            return None
        function = native(self.function, self.args[1:], self.kwargs)
        return None if function is None else (function, self.args[0].number)


class HostCalls:
    """The values of the host while a function is traced.

    Attributes:
        values: By slot, of the element that it is traced with.
        calls: What made those that are not of the element.
        native: Of each call, the engine's function and its slot; None: it has none.
        entered: The slots that the program reads, in the order of its arguments.
    """

    def __init__(self, trace: _core.Trace) -> None:
        self._trace = trace
        self.values: list[Any] = []
        self.calls: list[HostCall] = []
        self.native: list[tuple[Any, int] | None] = []
        self.entered: list[int] = []
        self._tensors: dict[int, Tensor] = {}

    def given(self, value: Any) -> Any:
        """Return the stand-in of a leaf of the function's element."""
        number = self._add(value)
        return HostText(self, number) if isinstance(value, Text) else self.tensor(number)

    def tensor(self, number: int) -> Tensor:
        """Return the argument of the program that a slot is."""
        known = self._tensors.get(number)
        if known is None:
            known = self._tensors[number] = self._trace.argument([self.values[number]])
            self.entered.append(number)
        return known

    def slot_of(self, leaf: Any) -> int | None:
        """Return the slot whose value a result is, unchanged."""
        if isinstance(leaf, HostText | HostTensor):
            return leaf._slot
        return next((n for n, tensor in self._tensors.items() if tensor is leaf), None)

    def call(
        self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any],
        native: Native | None = None,
    ) -> Any:  # fmt: skip
        """Return the result of a function of the host; `native` as for `on_host`."""
        noted = HostCall(
            function, tuple(map(_noted, args)), {k: _noted(v) for k, v in kwargs.items()}
        )
        with _core.no_trace():
            made = noted.made(self.values)
        self.calls.append(noted)
        self.native.append(noted.by_engine(native))
        return self._seen(self._add(made))

    def _seen(self, number: int) -> Any:
        """Return the stand-in of the result of a call."""
        made = self.values[number]
        if type(made) is dict:
            return {name: self.call(operator.getitem, (Slot(number), name), {}) for name in made}
        if type(made) not in (Tensor, Text):
            raise NotRecordedError(f"a function of the host gives {type(made).__name__}")
        return HostText(self, number) if type(made) is Text else HostTensor(self, number)

    def _add(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1


def _noted(arg: Any) -> Any:
    if isinstance(arg, HostText | HostTensor):
        return Slot(arg._slot)
    parts = arg if isinstance(arg, list | tuple) else (arg,)
    if any(
        isinstance(part, HostText | HostTensor) or (isinstance(part, Tensor) and part._symbolic)
        for part in parts
    ):
        raise NotRecordedError("an argument of the host's function is computed by the program")
    return arg


class HostText(Text):
    """Text that is another one for each element: nobody may look at it."""

    __slots__ = ("_calls", "_slot")

    def __init__(self, calls: HostCalls, slot: int) -> None:
        self._calls, self._slot = calls, slot

    def _unknown(self) -> Any:
        raise NotRecordedError("the string of an element is read")

    _bytes = property(_unknown)
    _decoded = property(_unknown)
    _origin = property(_unknown)

    def __getitem__(self, key: Any) -> Any:
        return self._calls.call(Text.__getitem__, (self, key), {})

    def __add__(self, other: Any) -> Any:
        return self._calls.call(Text.__add__, (self, other), {})

    def __eq__(self, other: object) -> Any:
        return self._calls.call(Text.__eq__, (self, other), {})

    def __ne__(self, other: object) -> Any:
        return self._calls.call(Text.__ne__, (self, other), {})


class HostTensor(DeferredTensor):
    """A tensor that a call made. It enters the program where anything but `on_host` uses it."""

    __slots__ = ("_calls", "_slot")

    def __init__(self, calls: HostCalls, slot: int) -> None:
        self._calls, self._slot = calls, slot

    def _as_tensor(self) -> Tensor:
        return self._calls.tensor(self._slot)


def on_host(native: Native | None = None) -> Callable[[F], F]:
    """Mark a function of strings, or of their results, that no program computes.

    Args:
        native: A function of the marked function and the recorded arguments after the first one. It
            returns the engine's function of the first argument alone (`_core.HostFunction`), which
            gives the same without Python, or None if the engine lacks it.
    """

    def marked(function: F) -> F:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            for value in args:
                if type(value) is HostText or type(value) is HostTensor:
                    return value._calls.call(function, args, kwargs, native)
            for value in kwargs.values():
                if type(value) is HostText or type(value) is HostTensor:
                    return value._calls.call(function, args, kwargs, native)
            return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    return marked
