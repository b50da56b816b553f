"""Iterables of traced loops: tensors, ranges, and enumerate and zip of them."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any

from samegrad import _core
from samegrad._base.shown import shown
from samegrad._context.python_runs import need_python
from samegrad._control.control_flow import is_traced
from samegrad._ops.arrays import cast, where
from samegrad._ops.arrays import shape as shape_of
from samegrad._ops.creation import range_
from samegrad._ops.gather import gather
from samegrad._surface.argument_rules import NO_VALUE
from samegrad._tensor.sizes import has_no_value
from samegrad._tensor.tensor import Tensor, convert_to_tensor, match
from samegrad.math import maximum, minimum


class Sequence(abc.ABC):
    """Items by number, each made inside the loop."""

    @abc.abstractmethod
    def length(self) -> Any:
        """Return the number of items."""

    @abc.abstractmethod
    def item(self, index: Tensor) -> Any:
        """The item with the number."""

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "[for] how often this loop runs is known in the step only, so it must be the `for` of "
            "a function that samegrad.function rewrites: no comprehension, and no code of an "
            "installed library; or use samegrad.while_loop."
        )


class Rows(Sequence):
    """A tensor along axis 0."""

    def __init__(self, tensor: Tensor) -> None:
        if not tensor._rank:
            raise TypeError("[for] a tensor without axes has no rows to go over.")
        self._tensor = tensor

    def length(self) -> Any:
        """The size of axis 0."""
        return shape_of(self._tensor)[0]

    def item(self, index: Tensor) -> Any:
        """The row."""
        return gather(self._tensor, index)


class Range(Sequence):
    """The numbers of a range with a bound that has no value yet."""

    def __init__(self, start: Any, limit: Any = None, delta: Any = 1) -> None:
        self._given = (start,) if limit is None else (start, limit, delta)
        bounds = (0, start, delta) if limit is None else (start, limit, delta)
        like = next(convert_to_tensor(n) for n in bounds if is_traced(n))
        self._start, self._limit, self._delta = (match(n, like) for n in bounds)

    def length(self) -> Any:
        """Return the number of integers in the range."""
        distance = self._limit - self._start
        one = convert_to_tensor(1, distance._dtype)
        if distance._dtype not in ("int32", "int64"):
            steps = _core.ops.floor(-(distance / self._delta))
            return cast(maximum(-steps, 0.0), "int32")
        least = where(self._delta > 0, one, -one)
        count = maximum((distance + self._delta - least) // self._delta, 0)
        return count if count._dtype == "int32" else cast(count, "int32")

    def item(self, index: Tensor) -> Any:
        """The number."""
        return self._start + cast(index, self._start._dtype) * self._delta

    def _as_tensor(self) -> Tensor:
        for bound in filter(has_no_value, self._given):
            if not bound._looks:
                rule = f"[range] its bounds must have values: got {shown(bound)}"
                need_python(f"{rule}; {NO_VALUE}.", TypeError)
        return range_(*self._given)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:  # by which Keras knows what it converts
        return self._as_tensor().__array__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._as_tensor(), name)


def _of_tensor(name: str) -> Any:
    return lambda self, *operands: getattr(self._as_tensor(), name)(*operands)


for _name in (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv",
    "mod", "rmod", "pow", "neg", "lt", "le", "gt", "ge", "eq", "ne", "getitem",
):  # fmt: skip
    setattr(Range, f"__{_name}__", _of_tensor(f"__{_name}__"))


class Enumerated(Sequence):
    """Pairs of a number and an item."""

    def __init__(self, sequence: Sequence, start: Any = 0) -> None:
        self._sequence, self._start = sequence, start

    def length(self) -> Any:
        """Return the number of items."""
        return self._sequence.length()

    def item(self, index: Tensor) -> Any:
        """The pair."""
        return index + self._start, self._sequence.item(index)


class Zipped(Sequence):
    """Tuples of items, as many as the shortest sequence has."""

    def __init__(self, sequences: list[Sequence]) -> None:
        self._sequences = sequences

    def length(self) -> Any:
        """Return the number of items of the shortest sequence."""
        lengths = [cast(sequence.length(), "int32") for sequence in self._sequences]
        shortest = lengths[0]
        for length in lengths[1:]:
            shortest = minimum(shortest, length)
        return shortest

    def item(self, index: Tensor) -> Any:
        """The tuple."""
        return tuple(sequence.item(index) for sequence in self._sequences)


def sequence_of(value: Any) -> Sequence | None:
    """Return the sequence of a traced loop; None if the loop is Python's."""
    if isinstance(value, Sequence):
        return value
    if not _core.tracing() or not (isinstance(value, Tensor) or hasattr(value, "_is_variable")):
        return None
    return Rows(convert_to_tensor(value))


__all__ = ["Enumerated", "Range", "Rows", "Sequence", "Zipped", "sequence_of"]
