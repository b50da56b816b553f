"""Frontier of two runs of a step: operations that differ although their operands agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from samegrad._base.user_files import shown_line
from samegrad.train._record_file import Detail, Stored

_LINE = re.compile(r"(.+):([0-9]{1,9})")
_COMPARABLE = {"replicated", "rows"}


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
        if other is None:
            equal.append(None)
        elif same_division or {one.placement, other.placement} <= _COMPARABLE:
            equal.append(one.hashes == other.hashes)
        else:
            equal.append(None)
    operands: list[bool] = []
    agrees: list[bool] = []
    for position, (one, own) in enumerate(zip(a, equal, strict=True)):
        operands.append(all(agrees[n] for n in one.inputs if 0 <= n < position))
        agrees.append(operands[-1] if own is None else own)
    differing = [n for n, own in enumerate(equal) if own is False and operands[n]]
    # Loops also hand results of later operations to earlier ones.
    found = [n for n in differing if all(equal[m] is not False or m <= n for m in a[n].inputs)]
    return _named(a, found or differing), sum(own is not None for own in equal)


def _whole(operations: Sequence[Detail]) -> list[Detail]:
    """Give the sums of single replicas the results of their all-reduce, as one replica has them."""
    whole = list(operations)
    for one in operations:
        if one.op == "all_reduce" and len(one.inputs) == 1 and one.inputs[0] >= 0:
            source = whole[one.inputs[0]]
            if source.placement not in _COMPARABLE and len(source.hashes) == len(one.hashes):
                whole[one.inputs[0]] = source._replace(hashes=one.hashes, placement=one.placement)
    return whole


def _named(operations: Sequence[Detail], found: Sequence[int]) -> list[FrontierOperation]:
    totals = Counter((one.op, one.line) for one in operations)
    passed: Counter[tuple[str, str]] = Counter()
    named = []
    wanted = set(found)
    for n, one in enumerate(operations):
        at = one.op, one.line
        passed[at] += 1
        if n in wanted:
            named.append(FrontierOperation(one.op, one.type, one.line, passed[at], totals[at]))
    return named


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
    found = _LINE.fullmatch(line)
    return shown_line(found[1], int(found[2])) if found else line


def _ordinal(number: int) -> str:
    """Return "1st", "2nd".

    Example:
        >>> [_ordinal(n) for n in (1, 2, 3, 4, 11, 22)]
        ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(0 if number % 100 in (11, 12, 13) else number % 10)
    return f"{number}{suffix or 'th'}"
