"""Line numbers of code that was compiled from a patched source: those of the file on the disk.

Tracebacks, `inspect` and debuggers read the lines of a function from the file that it names.
"""

from __future__ import annotations

import bisect
import itertools
from types import CodeType
from typing import Any

from samegrad._keras.patching import Patched

_LONGEST_RUN = 8  # code units of one entry
# Forms of entries of a location table (`Objects/locations.md` of CPython).
_LONG, _NO_LOCATION = 14, 15


class LineNumbers:
    """Line numbers of a file by those of its patched source.

    Args:
        patched: The patched source.
        file: The source of the file.
    """

    def __init__(self, patched: Patched, file: str) -> None:
        self._numbers = (0, *patched.lines)  # lines count from 1
        lines = zip(["", *patched.text.split("\n")], self._numbers, strict=True)
        before = ["", *file.split("\n")]
        self._same = [before[number] == line for line, number in lines]
        self._breaks = [
            line for line, same in enumerate(self._same)
            if line and not (same and self._numbers[line - 1] + 1 == self._numbers[line])
        ]  # fmt: skip

    def moved(self, code: CodeType) -> CodeType:
        """Return code of the patched source, and the code inside of it, with the file's lines."""
        return self._moved(code, len(self._numbers))

    def _moved(self, code: CodeType, end: int) -> CodeType:
        """Move code that ends before or on line `end`."""
        inner = [value for value in code.co_consts if isinstance(value, CodeType)]
        inner.sort(key=lambda value: value.co_firstlineno, reverse=True)
        moved: dict[int, Any] = {}
        behind = end
        for value in inner:
            moved[id(value)] = self._moved(value, behind)
            behind = value.co_firstlineno
        first = self._numbers[code.co_firstlineno]
        table = code.co_linetable  # relative to the first line
        if self._has_breaks(code.co_firstlineno, end):
            table = self._table(code, first)
        constants = tuple(moved.get(id(value), value) for value in code.co_consts)
        return code.replace(co_consts=constants, co_firstlineno=first, co_linetable=table)

    def _has_breaks(self, first: int, last: int) -> bool:
        after = bisect.bisect_right(self._breaks, first)
        inside = after < len(self._breaks) and self._breaks[after] <= last
        return inside or not self._same[first]

    def _table(self, code: CodeType, first: int) -> bytes:
        """Encode the location table of code that begins on line `first` of the file."""
        table = bytearray()
        for (line, end, *columns), units in itertools.groupby(code.co_positions()):
            length = sum(1 for _ in units)
            if line is None or end is None:
                table += _entry(_NO_LOCATION, length)
                continue
            number = self._numbers[line]
            step = number - first
            first = number
            step = -step << 1 | 1 if step < 0 else step << 1
            same = self._same[line] and self._same[end]
            known = (column + 1 if same and column is not None else 0 for column in columns)
            table += _entry(_LONG, length, step, self._numbers[end] - number, *known)
        return bytes(table)


def _entry(form: int, units: int, *values: int) -> bytes:
    """Encode one location of code units: the first value is the step to its line."""
    entry = bytearray()
    while units > 0:
        entry.append(0x80 | form << 3 | min(units, _LONGEST_RUN) - 1)
        for value in values:
            while value >= 64:
                entry.append(value & 63 | 64)
                value >>= 6
            entry.append(value)
        values = (0, *values[1:]) if values else ()
        units -= _LONGEST_RUN
    return bytes(entry)
