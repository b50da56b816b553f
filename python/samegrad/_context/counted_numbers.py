"""Numbers that remember which counts they are made of.

`strategy.num_replicas_in_sync` is an int like any other; what a program computes from it by
multiplication and division remembers how often the number of replicas is a factor of it. The check
of loss normalization reads that where such a number meets a tensor.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from samegrad import _core
from samegrad._context.state import note_one_replica


class Counted:
    """Base of the two classes below: the powers of the counts."""

    _counts: tuple[int, int]
    _asked: frozenset[int]

    def __mul__(self, other: Any) -> Any:
        return _joined(self, other, super().__mul__(other), 1)  # type: ignore[misc]

    def __rmul__(self, other: Any) -> Any:
        return _joined(self, other, super().__rmul__(other), 1)  # type: ignore[misc]

    def __truediv__(self, other: Any) -> Any:
        return _joined(self, other, super().__truediv__(other), -1)  # type: ignore[misc]

    def __rtruediv__(self, other: Any) -> Any:
        return _joined(other, self, super().__rtruediv__(other), -1)  # type: ignore[misc]

    def __floordiv__(self, other: Any) -> Any:
        return _joined(self, other, super().__floordiv__(other), -1)  # type: ignore[misc]

    def __rfloordiv__(self, other: Any) -> Any:
        return _joined(other, self, super().__rfloordiv__(other), -1)  # type: ignore[misc]


class CountedInt(Counted, int):
    """An int that is made of counts."""


class CountedFloat(Counted, float):
    """A float that is made of counts."""


def counted(
    number: float, examples: int = 0, replicas: int = 0, asked: frozenset[int] = frozenset()
) -> Any:
    """Return the number, as one with these powers of counts among its factors.

    Args:
        number: An int or float.
        examples: The power of the number of examples of all replicas.
        replicas: The power of the number of replicas.
        asked: Which questions for the number of replicas it comes from; see `Questions`.

    Example:
        >>> n = counted(4, replicas=1)
        >>> 2 / n, counts_of(2 / n), counts_of(n * (1 / n))
        (0.5, (0, -1), (0, 0))
    """
    made: Any = CountedInt(number) if isinstance(number, int) else CountedFloat(number)
    made._counts, made._asked = (examples, replicas), asked
    return made


def counts_of(number: Any) -> tuple[int, int] | None:
    """The powers of the numbers of examples and of replicas among its factors, if it knows them.

    Example:
        >>> counts_of(7) is None
        True
    """
    if not isinstance(number, Counted):
        return None
    questions.open -= number._asked
    questions.met |= number._counts[1] != 0
    return number._counts


class Questions(threading.local):
    """For the number of replicas, by this thread's program while it is traced.

    One is open until a number that comes from the answer meets a tensor. A float operand on the
    left (0.01 / n) makes a plain float of it; then the program knows more than the check does.
    `met`: whether a power of that number met a tensor.
    """

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.met = False
        self._last = 0

    def begin(self) -> None:
        """A program is traced from here on."""
        self.open.clear()
        self.met = False

    def ask(self, number: int) -> int:
        """Return the number of replicas, for whoever called the function that calls this one."""
        if not _asked_by_user():
            return number
        self._last += 1
        self.open.add(self._last)
        answer: int = counted(number, replicas=1, asked=frozenset((self._last,)))
        return answer

    def ask_one(self) -> int:
        """Return 1, the number of replicas of a strategy that never has another one."""
        _asked_by_user()
        return 1


def _asked_by_user() -> bool:
    """Tell if user code, which a trace records, asks a strategy for its number of replicas."""
    if not _core.tracing():
        return False
    caller = sys._getframe(3).f_globals.get("__name__", "")
    if caller.partition(".")[0] == __name__.partition(".")[0]:
        return False
    note_one_replica("num_replicas_in_sync")
    return True


questions = Questions()


def _joined(a: Any, b: Any, result: Any, sign: int) -> Any:
    if result is NotImplemented:
        return result
    own, other = (getattr(operand, "_counts", (0, 0)) for operand in (a, b))
    asked = getattr(a, "_asked", frozenset()) | getattr(b, "_asked", frozenset())
    return counted(result, own[0] + sign * other[0], own[1] + sign * other[1], asked)


__all__ = ["Counted", "CountedFloat", "CountedInt", "counted", "counts_of", "questions"]
