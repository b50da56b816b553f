"""Holds the engine's results against the interpreter's, and those of equal promises against each
other, bit for bit."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from fuzz import features
from fuzz.interpret import Optimizer, Share, interpret, update
from fuzz.ops import OPS
from fuzz.processes import Workers
from fuzz.program import Program, direction, input_data, names_in, variable_data
from fuzz.worker import Mode, Outcome

PASSES = [
    "inner_loops",
    "defer_products",
    "eliminate_common",
    "fold_constants",
    "sink_masks",
    "fuse_epilogue",
    "fuse_elementwise",
    "eliminate_dead",
    "write_in_place",
]
# By dtype: the part of a size that may be lost to rounding, and how much numbers are moved to
# see how far rounding can carry.
ROUNDING = {"float64": (1e-9, 1e-12), "float32": (2e-4, 1e-6)}
# From which size on what is made of a number need not be finite.
HUGE = {"float64": 1e150, "float32": 1e18}


@dataclasses.dataclass
class Difference:
    """What went wrong, between which two ways.

    Args:
        kind: "error", "values" (against the interpreter) or "bits".
        place: Which result, in which mode.
        said: The numbers, or the message.
    """

    kind: str
    place: str
    said: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}\n    {self.said}"

    def key(self) -> str:
        """Equal for what is probably the same fault, while a program shrinks."""
        if self.kind == "error":
            return "error " + self.said.split(":")[0] + self.said.split("]")[0][:60]
        return self.kind


def plan_modes(program: Program, rng: random.Random) -> dict[str, list[Mode]]:
    """The ways to run it: some always, of the others a few at random."""
    shares, whole = program.shares, (sum(program.shares),)
    # Operations outside run have draws of their own.
    plain = [] if program.draws() else [Mode("eager", whole), Mode("function", whole, cover=True)]
    usual = [
        Mode("run", shares, cover=True),
        *plain,
        Mode("run in function", whole, threads=rng.choice([1, 4])),
        Mode("run", shares, off=rng.choice(PASSES)),
    ]
    if rng.random() < 0.5:
        usual.append(Mode("run in function", shares, threads=rng.choice([1, 2, 4])))
    if _halved(shares) and program.is_local():
        n = whole[0]
        usual += [
            Mode("run", (n // r,) * r, cover=True) for r in (1, 2, 4) if n % r == 0 and n // r >= 3
        ]
    if len(set(shares)) > 1:
        usual.append(Mode("run", shares, per_count=True, cover=True))
    wanted = {"usual": list(dict.fromkeys(usual))}
    forced = rng.sample(["ones", "inner", "deferred"], 2)
    for name in forced:
        wanted[name] = [Mode("run", shares, cover=True, threads=rng.choice([1, 2, 4]))]
    if rng.random() < 0.3:
        wanted["v3"] = [Mode("run", shares)]
    return wanted


def _refusals(environment: str) -> tuple[str, ...]:
    return (*features.REFUSALS, *([features.NOT_BUILT] if environment in ("v3", "v4") else []))


def _halved(shares: tuple[int, ...]) -> bool:
    """Whether the shares are what halving the examples gives."""
    return len(shares) in (1, 2, 4) and len(set(shares)) == 1


def check(
    program: Program, workers: Workers, wanted: dict[str, list[Mode]]
) -> tuple[list[Difference], Any]:
    """All differences of one program, and the outcomes by (environment, mode)."""
    answers = workers.run(program, wanted)
    outcomes = {
        (name, mode): outcome
        for name, modes in wanted.items()
        for mode, outcome in zip(modes, answers[name], strict=True)
    }
    found: list[Difference] = []
    done = {}
    for (name, mode), outcome in outcomes.items():
        if not outcome.error:
            done[name, mode] = outcome
        elif not any(part in outcome.error for part in _refusals(name)):
            found.append(Difference("error", f"{mode} ({name})", outcome.error[:2000]))
    known: Known = {}
    judged: set[tuple[str, tuple[int, ...], bool]] = set()
    for (name, mode), outcome in done.items():
        ways = (mode.kind, mode.shares, mode.per_count)
        if ways not in judged or name != "usual":
            judged.add(ways)
            found += against_interpreter(program, mode, outcome, name, known)
        if found:
            break
    return found or bits(program, done), outcomes


# ---- numbers ----


class Meaning:
    """What a replica's step should give, and what slightly other numbers give.

    Args:
        at: The interpretation with numbers that are moved by so much.
        by: How much rounding moves them.
    """

    def __init__(self, at: Callable[[float], Share], by: float) -> None:
        self.at, self.by = at, by
        self.exact = at(0.0)

    @functools.cached_property
    def moved(self) -> list[Share]:
        # Both ways: of two numbers that are equal, each is the larger one once.
        return [self.at(self.by), self.at(-self.by)]

    def refuses(self, compare: Callable[[Share, list[Share]], str]) -> str:
        """What a comparison says, which is asked how far rounding carries only where it must."""
        said = compare(self.exact, [])
        return said and compare(self.exact, self.moved)


# What was interpreted already, by all that it depends on.
Known = dict[tuple[Any, ...], Meaning]


def against_interpreter(
    program: Program, mode: Mode, outcome: Outcome, name: str, known: Known
) -> list[Difference]:
    """Values, derivatives and variables of each step."""
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
        # Few small whole numbers are the same now and then.
        enough = x[0].size >= (1 if x[0].dtype.kind == "f" else 30)
        if name in program.draws() and enough and _bytes(x) == _bytes(y):
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

        def at(by: float, r: int = r, rows: Any = rows, given: Any = given) -> Share:
            moved = _moved(program, rows, weights, r, by)
            sizes = sum(mode.shares), len(mode.shares)
            return interpret(program, *moved, directions, *sizes, given, by, everyone)

        arrays = [*rows, *weights, *(part for parts in drawn.values() for part in parts)]
        key = (r, mode.shares, *(array.tobytes() for array in arrays))
        if key not in known:
            known[key] = Meaning(at, ROUNDING[program.dtype][1])
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
        for which, order in (("g", "first"), ("h", "second")):
            if which == "h" and not program.second:
                continue
            said = meaning.refuses(
                lambda share, moved, which=which, order=order, replicas=replicas: _derivative(  # type: ignore[misc]
                    program, step[which], replicas, share, moved, order
                )
            )
            if said:
                where = f"{order} derivative, replica {replicas}, {place}"
                return [Difference("values", where, said)]
    return []


def _together(meanings: list[Meaning]) -> Meaning:
    def at(by: float) -> Share:
        shares = [meaning.at(by) for meaning in meanings]
        return Share({}, sum(s.first for s in shares), sum(s.second for s in shares))

    return Meaning(at, meanings[0].by)


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
    found: list[list[np.ndarray] | None],
    replicas: list[int],
    share: Share,
    moved: list[Share],
    order: str,
) -> str:
    """Along the direction: one number for all elements of all gradients."""
    along = direction(program, 0 if order == "first" else 1)
    total = size = 0.0
    for parts, d in zip(found, along, strict=True):
        if parts is None:
            continue
        for r in replicas:
            terms = (parts[r] if len(parts) > 1 else parts[0]).astype(np.float64) * d
            total += float(terms.sum())
            size += float(np.abs(terms).sum())
    expected = getattr(share, order)
    far = max((abs(getattr(m, order) - expected) for m in moved), default=0.0)
    room = ROUNDING[program.dtype][0] * (size + 1e-2) + 1000 * far
    if not abs(expected) < HUGE[program.dtype] or (not np.isfinite(room) and np.isfinite(total)):
        return ""
    if abs(total - expected) <= room:
        return ""
    none = [f"w{i}" for i, parts in enumerate(found) if parts is None]
    return f"along the direction {total!r}, should be {expected!r}" + (
        f" (None: {none})" if none else ""
    )


# ---- bits ----

Key = tuple[str, Mode]


def bits(program: Program, done: dict[Key, Outcome]) -> list[Difference]:
    """Whether ways that promise equal bits keep the promise."""
    found: list[Difference] = []
    keys = list(done)
    for i, a in enumerate(keys):
        for b in keys[i + 1 :]:
            across = _promised(program, a, b, done)
            if across and (said := _unequal(program, done[a], done[b], across)):
                found.append(Difference("bits", f"{a[1]} ({a[0]}) and {b[1]} ({b[0]})", said))
                return found
    return found


def _promised(program: Program, a: Key, b: Key, done: dict[Key, Outcome]) -> str:
    """What must have equal bits: "all", "joined" (over replicas) or nothing."""
    (x, m), (y, k) = a, b
    switches = features.EQUAL_BITS
    if m.per_count != k.per_count:
        return ""  # what comes out of a branch of the step is each replica's own
    if {x, y} & {"v3", "v4"} and x != y and not switches["variants"]:
        return ""
    if not program.examples and m.distributes() != k.distributes():
        return ""  # a plain array is one value, and what is distributed has examples: two programs
    if m.kind != k.kind and "eager" in (m.kind, k.kind) and not _as_eagerly(program):
        return ""
    single = len(m.shares) == 1 and len(k.shares) == 1
    plain = {m.kind, k.kind} & {"eager", "function"}
    if m.shares == k.shares and (m.kind == k.kind or not plain):
        return "all"
    if single and plain == {"eager", "function"} and m.kind != k.kind:
        return "all" if switches["eager_and_function"] else ""
    if plain:
        return "all" if single and switches["function_and_run"] else ""
    if not program.is_local() or not switches["replicas"]:
        return ""
    if not program.examples and not switches["replicas_of_plain_arrays"]:
        return ""
    if any(not _halved(mode.shares) or mode.shares[0] < 3 for mode in (m, k)):
        return ""
    flow = any(s.op in ("cond", "while") for s in program.body)
    if not switches["replicas_without_promise" + ("_of_control_flow" if flow else "")]:
        plans = [done[key].plan for key in (a, b)]
        if any("bits: may differ" in plan or not plan for plan in plans):
            return ""
    return "joined"


def _as_eagerly(program: Program) -> bool:
    """Whether a traced program has the bits of its operations one at a time."""
    switches, drawn = features.EQUAL_BITS, {s.op for s in program.body}
    counted = any(OPS[name].feature == "counts_as_sizes" for name in drawn)
    return (
        (switches["eager_counts_as_sizes"] or not (counted and program.examples))
        and (
            switches["eager_second_of_control_flow"]
            or not (program.second and drawn & {"cond", "while"})
        )
        and (switches["eager_beginnings_of_loops"] or not _begins_with_what_is_used(program))
    )


def _begins_with_what_is_used(program: Program) -> bool:
    used = [name for s in program.body for name in names_in(s)] + [n for _, n in program.losses]
    return any(used.count(s.inputs[0]) > 1 for s in program.body if s.op == "while")


def _unequal(program: Program, a: Outcome, b: Outcome, across: str) -> str:
    types = program.types()
    for number, (one, other) in enumerate(zip(a.steps, b.steps, strict=True)):
        for i, (w, v) in enumerate(zip(one["w"], other["w"], strict=True)):
            if w.tobytes() != v.tobytes():
                return f"w{i} after step {number}: {_first(w, v)}"
        for name, x, y in zip(
            [*program.outputs, "loss"], one["values"], other["values"], strict=True
        ):
            if across == "joined":
                if name == "loss" or types[name].axis < 0:
                    continue
                axis = types[name].axis
                x, y = [np.concatenate(x, axis)], [np.concatenate(y, axis)]
            if _bytes(x) != _bytes(y):
                return f"{name} in step {number}: {_first(x[0], y[0])}"
        if across != "all":
            continue
        for which in ("g", "h"):
            for i, (x, y) in enumerate(zip(one[which], other[which], strict=True)):
                if _bytes(_or_zeros(x, y)) != _bytes(_or_zeros(y, x)):
                    said = _first(x[0], y[0]) if x and y else "None"
                    return f"{which}[{i}] in step {number}: {said}"
    return ""


def _or_zeros(x: list[np.ndarray] | None, y: list[np.ndarray] | None) -> list[np.ndarray] | None:
    """A branch that did not run has no derivative eagerly, and zeros (of any sign) in a trace."""
    if x is None and y is not None:
        return [np.where(p == 0, p, np.zeros_like(p)) for p in y]
    return x


def _bytes(parts: list[np.ndarray] | None) -> list[bytes] | None:
    """-0.0 and NaNs of other bits count as what they are called."""
    if parts is None:
        return None
    found = [np.where(np.isnan(p), np.nan, p) if p.dtype.kind == "f" else p for p in parts]
    # Equal on all replicas: one part says it.
    return [p.tobytes() for p in found]


def _first(x: np.ndarray, y: np.ndarray) -> str:
    if x.shape != y.shape:
        return f"shapes {x.shape} and {y.shape}"
    different = np.argwhere(~((x == y) | (np.isnan(x) & np.isnan(y))))
    if len(different) == 0:
        return "signs of zero or other NaNs, or another replica"
    at = tuple(int(i) for i in different[0])
    return f"{len(different)} of {x.size} differ, first at {at}: {x[at]!r} and {y[at]!r}"
