"""Frontier of two runs of a step: operations that differ although their operands agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from samegrad._base.user_files import shown_line
from samegrad.train._record_file import Detail, Stored

_COMPARABLE = {"replicated", "rows"}
# Some of their results are references to values of a loop, whose own operations are in the list.
_LOOPS = ("replay", "unstack_rounds")


@dataclass(frozen=True)
class FrontierOperation:
    """Operation whose results differ although all that they are made of agrees.

    Attributes:
        op: The name of the operation.
        type: The dtype and shape of its result.
        line: The line of user code that called it; empty if none is known.
        occurrence: The position among the operations of this name and line, from 1.
        of: The number of operations of this name and line.
    """

    op: str
    type: str
    line: str
    occurrence: int
    of: int

    def __str__(self) -> str:
        at = f" at {shown(self.line)}" if self.line else ""
        which = f", {_ordinal(self.occurrence)}" if self.of > 1 else ""
        return f"{self.op}{which}{at} ({self.type})"


class _Key(NamedTuple):
    op: str
    line: str
    type: str
    occurrence: int


def frontier(
    a: Sequence[Detail], b: Sequence[Detail], same_division: bool
) -> tuple[list[FrontierOperation], int]:
    """Return the operations whose results differ although all operands agree.

    Operations are matched by their order if both runs have the same ones, or else by name, line,
    type and occurrence. Operations without a match, and
    those whose results depend on the division into replicas, are looked through: what uses them
    agrees with what they are made of.

    Args:
        a: Operations of the one run in order.
        b: Operations of the other run.
        same_division: True if both runs have equal replicas and processes.

    Returns:
        The frontier, and the number of operations that were compared.
    """
    if not same_division:
        a, b = _whole(a), _whole(b)
    equal: list[bool | None] = []  # None: looked through
    for one, other in zip(a, _matches(a, b), strict=True):
        if other is None or one.op in _LOOPS:
            equal.append(None)
        elif same_division or {one.placement, other.placement} <= _COMPARABLE:
            equal.append(one.hashes == other.hashes)
        else:
            equal.append(None)
    found = [n for n in _differing(equal) if _agree(a, equal, n, backwards=True)]
    # Operations of a loop that read each other's results have one that is first.
    found = found or [n for n in _differing(equal) if _agree(a, equal, n, backwards=False)]
    return [_named(a, n) for n in found], sum(one is not None for one in equal)


def _whole(operations: Sequence[Detail]) -> list[Detail]:
    """Give the sums of single replicas the results of their all-reduce, as one replica has them."""
    whole = list(operations)
    for one in operations:
        if one.op == "all_reduce" and len(one.inputs) == 1 and one.inputs[0] >= 0:
            source = whole[one.inputs[0]]
            if source.placement not in _COMPARABLE and len(source.hashes) == len(one.hashes):
                whole[one.inputs[0]] = source._replace(hashes=one.hashes, placement=one.placement)
    return whole


def _differing(equal: Sequence[bool | None]) -> list[int]:
    return [n for n, one in enumerate(equal) if one is False]


def _agree(a: Sequence[Detail], equal: Sequence[bool | None], n: int, backwards: bool) -> bool:
    """Return True if all operands of an operation agree.

    Args:
        a: The operations.
        equal: Whether the results of each are equal in both runs; None: they are unknown.
        n: The operation.
        backwards: Whether results of later operations count, which loops hand to earlier ones.
    """
    seen = {n}
    open_ = [n]
    while open_:
        at = open_.pop()
        for operand in a[at].inputs:
            if operand < 0 or operand in seen or (operand > at and not backwards):
                continue
            if equal[operand] is False:
                return False
            seen.add(operand)
            if equal[operand] is None:
                open_.append(operand)
    return True


def _named(a: Sequence[Detail], n: int) -> FrontierOperation:
    one = a[n]
    places = [(other.op, other.line) for other in a]
    at = one.op, one.line
    return FrontierOperation(
        one.op, one.type, one.line, places[: n + 1].count(at), places.count(at)
    )


def first_stored(a: Sequence[Stored], b: Sequence[Stored]) -> Stored | None:
    """Return the first stored value of two equal plans that differs."""
    for one, other in zip(a, b, strict=False):
        if one[:-1] != other[:-1]:
            return None
        if one.hash != other.hash:
            return one
    return None


def _matches(a: Sequence[Detail], b: Sequence[Detail]) -> list[Detail | None]:
    """Return the operation of the other run for each one."""
    if [one[:2] for one in a] == [one[:2] for one in b]:  # lines may have moved
        return list(b)
    others = dict(zip(_keys(b), b, strict=True))
    return [others.get(key) for key in _keys(a)]


def _keys(operations: Sequence[Detail]) -> list[_Key]:
    seen: Counter[tuple[str, str, str]] = Counter()
    keys = []
    for one in operations:
        place = (one.op, one.line, one.type)
        seen[place] += 1
        keys.append(_Key(*place, seen[place]))
    return keys


def shown(line: str) -> str:
    """Return "train.py:31" as messages show it. A cell of this notebook has its number."""
    file, _, number = line.rpartition(":")
    return shown_line(file, int(number)) if file and number.isdigit() else line


def _ordinal(number: int) -> str:
    """Return "1st", "2nd".

    Example:
        >>> [_ordinal(n) for n in (1, 2, 3, 4, 11, 22)]
        ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(0 if number % 100 in (11, 12, 13) else number % 10)
    return f"{number}{suffix or 'th'}"
