"""Values of two recorded programs that can be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from samegrad.train._record_file import Entry, Program, Step

# Kind, name without the counters of layers, number among the variables of this name, and number
# among the values of this kind and variable: several sums may make up one gradient.
Key = tuple[str, str, int, int]
_COMPARABLE = ("replicated", "rows")
_COUNTER = re.compile(r"_\d+(?=_|/|$)")
_SHOWN = 5  # names in a message
_WIDTH = 16  # digits of a hash


@dataclass
class Side:
    """State of a run before a step.

    Attributes:
        header: The fields of its header.
        values: The hashes of all variables after the last step that read or wrote them.
        last: The number of the last step; None before the first one.
    """

    header: Mapping[str, Any]
    values: dict[Key, str] = field(default_factory=dict)
    last: int | None = None

    def before(self, step: Step, slot: int, slots: Sequence[Key]) -> str | None:
        """Return the hash of a variable before a step."""
        return step.before.get(slot, self.values.get(slots[slot]))

    def pass_step(self, step: Step, slots: Sequence[Key]) -> None:
        """Take the variables after a step."""
        self.last = step.index
        self.values |= {slots[slot]: value for slot, value in step.before.items()}
        for position, entry in enumerate(step.program.entries):
            if entry.kind == "variable":
                self.values[slots[entry.slot]] = hash_at(step, position)


class Pairs(NamedTuple):
    """Values of two programs that can be compared.

    Attributes:
        positions: The key of each value and its position in both programs.
        variables: The key of each variable that can be compared and its slot in both programs.
        slots: The keys of all variables of both programs.
        names: The names of the variables, as the first program has them.
        matched: True if all values that can be compared are in both.
        aligned: True if all values are at equal positions.
    """

    positions: dict[Key, tuple[int, int]]
    variables: dict[Key, tuple[int, int]]
    slots: tuple[list[Key], list[Key]]
    names: dict[Key, str]
    matched: bool
    aligned: bool

    def names_of(self, keys: Sequence[Key]) -> str:
        """Return the names of values. Values without a name have their number."""
        return listed([*dict.fromkeys(self._name(key) for key in keys)])

    def _name(self, key: Key) -> str:
        kind, common, number, _ = key
        name = self.names.get(("variable", common, number, 0), "") if common else ""
        if not name:
            return f"{kind} {number}"
        repeated = list(self.names.values()).count(name) > 1
        return f"{name} (number {number + 1})" if repeated else name


def hash_at(step: Step, position: int) -> str:
    """Return the hash of a value of a step."""
    return step.hashes[_WIDTH * position : _WIDTH * (position + 1)]


def differs(x: Step, y: Step, pairs: Pairs, key: Key) -> bool:
    """Return True if a value of two steps differs."""
    i, j = pairs.positions[key]
    return hash_at(x, i) != hash_at(y, j)


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words. Of many names it has the first ones and a count.

    Example:
        >>> listed(["a", "b", "c"]), listed(list("abcdefg"))
        ('a, b and c', 'a, b, c, d, e and 2 more')
    """
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def pair(a: Program, b: Program, same_division: bool) -> Pairs:
    """Match the values of two programs by kind, name and number.

    Args:
        a: The one program.
        b: The other program.
        same_division: True if both have equal replicas and processes, so that values of single
            replicas can be compared.
    """
    slots = _slots(a), _slots(b)
    keys = _keys(a.entries, slots[0]), _keys(b.entries, slots[1])
    usable: list[dict[Key, int]] = []
    single: set[Key] = set()
    for own, program in zip(keys, (a, b), strict=True):
        usable.append({})
        for position, (key, entry) in enumerate(zip(own, program.entries, strict=True)):
            if same_division or entry.placement in _COMPARABLE:
                usable[-1][key] = position
            else:
                single.add(key)
    if not same_division:  # the sums that make up a gradient have another order
        sums = [Counter(key[1:3] for key in own if key[0] == "gradient") for own in keys]
        usable = [
            {
                key: position
                for key, position in one.items()
                if key[0] != "gradient" or sums[0][key[1:3]] == sums[1][key[1:3]] == 1
            }
            for one in usable
        ]
    both = [key for key in usable[0] if key in usable[1]]
    dtypes = all(a.entries[usable[0][k]].dtype == b.entries[usable[1][k]].dtype for k in both)
    # A value may be comparable in one program only. Another division records other variables.
    matched = dtypes and all(
        key in keys[1 - side]
        for side in (0, 1)
        for key in usable[side]
        if same_division or key[0] in ("argument", "output")
    )
    at = [{key: slot for slot, key in enumerate(own) if key not in single} for own in slots]
    return Pairs(
        {key: (usable[0][key], usable[1][key]) for key in both},
        {key: (slot, at[1][key]) for key, slot in at[0].items() if key in at[1]},
        slots,
        dict(zip(slots[0], a.variables, strict=True)),
        matched,
        aligned=same_division and keys[0] == keys[1],
    )


def _slots(program: Program) -> list[Key]:
    seen: Counter[str] = Counter()
    keys = []
    for name in (_COUNTER.sub("", name) for name in program.variables):
        keys.append(("variable", name, seen[name], 0))
        seen[name] += 1
    return keys


def _keys(entries: Sequence[Entry], slots: Sequence[Key]) -> list[Key]:
    """Return the keys of entries. Gradients and variables have those of their variable."""
    seen: Counter[tuple[str, str, int]] = Counter()
    keys = []
    for entry in entries:
        of_variable = entry.kind in ("gradient", "variable")
        name, number = slots[entry.slot][1:3] if of_variable else ("", entry.slot)
        keys.append((entry.kind, name, number, seen[entry.kind, name, number]))
        seen[entry.kind, name, number] += 1
    return keys
