"""Holds the engine's results against the interpreter's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz.bits import bytes_of
from fuzz.difference import Difference
from fuzz.interpret import Optimizer, Share, interpret, update
from fuzz.program import Program, direction, input_data, variable_data
from fuzz.worker import Mode, Outcome

# By dtype: the part of a size that may be lost to rounding, and how much numbers are moved to
# see how far rounding can carry.
ROUNDING = {"float64": (1e-9, 1e-12), "float32": (2e-4, 1e-6)}
# From which size on what is made of a number need not be finite.
HUGE = {"float64": 1e150, "float32": 1e18}
ORDERS = {"g": "first", "h": "second"}


class Meaning:
    """What a replica's step should give, and what slightly other numbers give.

    Args:
        at: The interpretation with numbers that are moved by so much, and whether equal elements
            of a value are moved apart.
        dtype: How much rounding moves them. In float32 it also makes ties of what is nearly equal.
    """

    def __init__(self, at: Callable[[float, bool], Share], dtype: str) -> None:
        self.at, self.dtype = at, dtype
        self.exact = at(0.0, False)

    @functools.cached_property
    def moved(self) -> list[Share]:
        # Both ways: of two numbers that are equal, each is the larger one once.
        by = ROUNDING[self.dtype][1]
        apart = [self.at(by, True)] if self.dtype == "float32" else []
        return [self.at(by, False), self.at(-by, False), *apart]

    def refuses(self, compare: Callable[[Share, list[Share]], str]) -> str:
        """What a comparison says, which is asked how far rounding carries only where it must."""
        said = compare(self.exact, [])
        return said and compare(self.exact, self.moved)


# What was interpreted already, by all that it depends on.
Known = dict[tuple[Any, ...], Meaning]


def against_interpreter(
    program: Program, mode: Mode, outcome: Outcome, name: str, known: Known
) -> list[Difference]:
    """Values, derivatives and variables of each step.

    Not of those in 16 bits, in which rounding leaves little: of them, bits are compared.
    """
    if program.dtype not in ROUNDING:
        return []
    weights = variable_data(program)
    optimizer = next((Optimizer(u[1]) for u in program.updates if u[0] == "apply"), None)
    for number, step in enumerate(outcome.steps):
        place = f"step {number}, {mode} ({name})"
        xs = input_data(program, number)
        meanings = _meanings(program, mode, step, xs, weights, known)
        found = _step(program, step, meanings, place)
        if found:
            return found
        if (said := _repeated(program, outcome, number)) is not None:
            return [Difference("values", f"{said} in {place}", "the draws of the step before")]
        gradients = _summed(step["g"])
        expected = update(program, weights, gradients, optimizer)
        if any(not np.max(np.abs(g), initial=0) < HUGE[program.dtype] for g in _known(gradients)):
            return []  # an optimizer's squares may overflow
        for i, (w, e) in enumerate(zip(step["w"], expected, strict=True)):
            allowed = ROUNDING[program.dtype][0] * (1e-9 + np.max(np.abs(e), initial=0))
            said = _compare(w, e, np.full(e.shape, 10 * allowed))
            if said:
                return [Difference("values", f"w{i} after {place}", said)]
        weights = step["w"]
    return []


def _known(gradients: list[np.ndarray | None]) -> list[np.ndarray]:
    return [g for g in gradients if g is not None]


def _repeated(program: Program, outcome: Outcome, number: int) -> str | None:
    """What was drawn anew and is the same as before."""
    if number == 0:
        return None
    before, now = (outcome.steps[k]["values"] for k in (number - 1, number))
    for name, x, y in zip(program.outputs, before, now, strict=False):
        # Few small integers are the same now and then.
        enough = x[0].size >= (1 if x[0].dtype.kind == "f" else 30)
        if name in program.draws() and enough and bytes_of(x) == bytes_of(y):
            return name
    return None


def _summed(gradients: list[list[np.ndarray] | None]) -> list[np.ndarray | None]:
    return [None if g is None else sum(p.astype(np.float64) for p in g) for g in gradients]  # type: ignore[misc]


def _meanings(
    program: Program,
    mode: Mode,
    step: dict[str, Any],
    xs: list[np.ndarray],
    weights: list[np.ndarray],
    known: Known,
) -> list[Meaning]:
    """One for each replica."""
    drawn = {
        name: [_wide(part) for part in parts]
        for name, parts in zip(program.outputs, step["values"], strict=False)
        if name in program.draws()
    }
    types = program.types()
    everyone = (
        _all_wide(xs),
        {
            name: np.concatenate(parts, types[name].axis) if types[name].axis >= 0 else parts[0]
            for name, parts in drawn.items()
        },
    )
    directions = (_all_wide(direction(program, 0)), _all_wide(direction(program, 1)))
    found = []
    for r, (end, n) in enumerate(zip(np.cumsum(mode.shares), mode.shares, strict=True)):
        rows = [_wide(x[end - n : end]) for x in xs]
        given = {name: parts[r if len(parts) > 1 else 0] for name, parts in drawn.items()}

        def at(by: float, apart: bool, r: int = r, rows: Any = rows, given: Any = given) -> Share:
            moved = _moved(program, rows, weights, r, by)
            sizes = sum(mode.shares), len(mode.shares)
            return interpret(program, *moved, directions, *sizes, given, (by, apart), everyone)

        arrays = [*rows, *weights, *(part for parts in drawn.values() for part in parts)]
        key = (r, mode.shares, *(array.tobytes() for array in arrays))
        if key not in known:
            known[key] = Meaning(at, program.dtype)
        found.append(known[key])
    return found


def _step(
    program: Program, step: dict[str, Any], meanings: list[Meaning], place: str
) -> list[Difference]:
    for r, meaning in enumerate(meanings):
        where = f"replica {r}, {place}"
        for name, parts in zip([*program.outputs, "loss"], step["values"], strict=True):
            part = parts[r] if len(parts) > 1 else parts[0]
            said = meaning.refuses(
                lambda share, moved, name=name, part=part: _compare(  # type: ignore[misc]
                    part, share.values[name], _room(program, share, moved, name)
                )
            )
            if said:
                return [Difference("values", f"{name}, {where}", said)]
    return _derivatives(program, step, meanings, place)


def _derivatives(
    program: Program, step: dict[str, Any], meanings: list[Meaning], place: str
) -> list[Difference]:
    """Of each replica's share; of all together where what a replica computes is in others'."""
    groups = [([r], meaning) for r, meaning in enumerate(meanings)]
    if program.gathers():
        groups = [(list(range(len(meanings))), _together(meanings))]
    for replicas, meaning in groups:
        for which in "gh" if program.second else "g":
            said = meaning.refuses(
                lambda share, moved, which=which, replicas=replicas: _derivative(  # type: ignore[misc]
                    program, step, which, replicas, share, moved
                )
            )
            if said:
                where = f"{ORDERS[which]} derivative, replica {replicas}, {place}"
                return [Difference("values", where, said)]
    return []


def _together(meanings: list[Meaning]) -> Meaning:
    def at(by: float, apart: bool) -> Share:
        shares = [meaning.at(by, apart) for meaning in meanings]
        return Share({}, sum(s.first for s in shares), sum(s.second for s in shares))

    return Meaning(at, meanings[0].dtype)


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def _all_wide(xs: list[np.ndarray]) -> list[np.ndarray]:
    return [_wide(x) for x in xs]


def _moved(
    program: Program, rows: list[np.ndarray], weights: list[np.ndarray], replica: int, by: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The same numbers, or slightly other ones."""
    rng = np.random.default_rng([program.seed, replica])

    def move(x: np.ndarray) -> np.ndarray:
        return x * (1 + by * rng.normal(size=x.shape)) if by and x.dtype.kind == "f" else x

    return [move(x) for x in rows], [move(_wide(w)) for w in weights]


def _room(program: Program, share: Share, moved: list[Share], name: str) -> np.ndarray:
    part = ROUNDING[program.dtype][0]
    value = share.values[name]
    size = np.max(np.abs(value[np.isfinite(value)]), initial=0) if value.size else 0.0
    # What other numbers would have no room for may overflow.
    huge = np.where(np.abs(value) > HUGE[program.dtype], np.inf, 0.0)
    room: np.ndarray = part * (size + 1e-2) + huge
    for other in moved:
        room = np.maximum(room, part * (size + 1e-2) + 1000 * np.abs(other.values[name] - value))
    return room


def _compare(found: np.ndarray, expected: np.ndarray, room: np.ndarray) -> str:
    if found.shape != expected.shape:
        return f"has the shape {found.shape}, should have {expected.shape}"
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= room
    wrong = ~(near | (~np.isfinite(room) | ~np.isfinite(expected)))
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} differ, first at {at}: {found[at]!r}, should be "
        f"{expected[at]!r}"
    )


def _derivative(
    program: Program,
    step: dict[str, Any],
    which: str,
    replicas: list[int],
    share: Share,
    moved: list[Share],
) -> str:
    """Along the direction: one number for all elements of all gradients."""
    total, size = _along(program, step, which, replicas)
    if which == "h":  # what it is made of may cancel
        size += _along(program, step, "g", replicas)[1]
    order = ORDERS[which]
    expected = getattr(share, order)
    far = max((abs(getattr(m, order) - expected) for m in moved), default=0.0)
    room = ROUNDING[program.dtype][0] * (size + 1e-2) + 1000 * far
    if not abs(expected) < HUGE[program.dtype] or (not np.isfinite(room) and np.isfinite(total)):
        return ""
    if abs(total - expected) <= room:
        return ""
    none = [f"w{i}" for i, parts in enumerate(step[which]) if parts is None]
    return f"along the direction {total!r}, should be {expected!r}" + (
        f" (None: {none})" if none else ""
    )


def _along(
    program: Program, step: dict[str, Any], which: str, replicas: list[int]
) -> tuple[float, float]:
    """The sum of the terms, and of their sizes."""
    total = size = 0.0
    directions = direction(program, 0 if which == "g" else 1)
    for parts, d in zip(step[which], directions, strict=True):
        if parts is None:
            continue
        for r in replicas:
            terms = (parts[r] if len(parts) > 1 else parts[0]).astype(np.float64) * d
            total += float(terms.sum())
            size += float(np.abs(terms).sum())
    return total, size
