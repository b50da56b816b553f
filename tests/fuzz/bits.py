"""Holds results of ways that promise equal bits against each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz import features
from fuzz.difference import Difference
from fuzz.ops import OPS
from fuzz.program import Program, names_in
from fuzz.worker import Mode, Outcome

Key = tuple[str, Mode]


def halved(shares: tuple[int, ...]) -> bool:
    """Whether the shares are what halving the examples gives."""
    return len(shares) in (1, 2, 4) and len(set(shares)) == 1


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
    mapped = [mode.kind.startswith("mapped") for mode in (m, k)]
    if any(mapped):
        return "all" if all(mapped) else ""
    if m.hides != k.hides and "eager" in (m.kind, k.kind):
        return ""  # whether an optimizer passed over a variable eagerly shows in its gradient
    if m.hides != k.hides and any(s.op in ("cond", "while") for s in program.body):
        return ""  # a part of a sum that leaves a branch or loop, and the step, is summed as it is
    if m.per_count != k.per_count:
        return ""  # what comes out of a branch of the step is each replica's own
    if {x, y} & {"v3", "v4"} and x != y and not switches["variants"]:
        return ""
    if not program.examples and m.open_sizes != k.open_sizes:
        return ""  # the first axis of an open signature counts examples
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
    if any(not halved(mode.shares) or mode.shares[0] < 3 for mode in (m, k)):
        return ""
    kinds = ["replicas_without_promise"]
    if any(s.op in ("cond", "while") for s in program.body):
        kinds.append("replicas_without_promise_of_control_flow")
    if program.dtype == "bfloat16":
        kinds.append("replicas_without_promise_of_bfloat16")
    if not all(switches[kind] for kind in kinds):
        plans = [done[key].plan for key in (a, b)]
        if any("bitwise identical to one replica: no" in plan or not plan for plan in plans):
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
    optimizes = any(u[0] == "apply" for u in program.updates)
    for number, (one, other) in enumerate(zip(a.steps, b.steps, strict=True)):
        both = bool(one["g"] and other["g"])  # neither hides them
        if both and optimizes and any(map(_skipped, one["g"], other["g"])):
            return ""
        for i, (w, v) in enumerate(zip(one["w"], other["w"], strict=True)):
            if w.tobytes() != v.tobytes():
                return f"w{i} after step {number}: {first_difference(w, v)}"
        for name, x, y in zip(
            [*program.outputs, "loss"], one["values"], other["values"], strict=True
        ):
            if across == "joined":
                if name == "loss" or types[name].axis < 0:
                    continue
                axis = types[name].axis
                x, y = [np.concatenate(x, axis)], [np.concatenate(y, axis)]
            if bytes_of(x) != bytes_of(y):
                return f"{name} in step {number}: {first_difference(x[0], y[0])}"
        if across != "all" or not both:
            continue
        for which in ("g", "h"):
            for i, (x, y) in enumerate(zip(one[which], other[which], strict=True)):
                if bytes_of(_or_zeros(x, y)) != bytes_of(_or_zeros(y, x)):
                    said = first_difference(x[0], y[0]) if x and y else "None"
                    return f"{which}[{i}] in step {number}: {said}"
    return ""


def _skipped(x: Any, y: Any) -> bool:
    """Whether an optimizer passes over a variable in one of the two: its branch did not run."""
    return (x is None) != (y is None)


def _or_zeros(x: list[np.ndarray] | None, y: list[np.ndarray] | None) -> list[np.ndarray] | None:
    """A branch that did not run has no derivative eagerly, and zeros (of any sign) in a trace."""
    if x is None and y is not None:
        return [np.where(p == 0, p, np.zeros_like(p)) for p in y]
    return x


def bytes_of(parts: list[np.ndarray] | None) -> list[bytes] | None:
    """-0.0 and NaNs of other bits count as what they are called."""
    if parts is None:
        return None
    found = [np.where(np.isnan(p), np.nan, p) if p.dtype.kind == "f" else p for p in parts]
    # Equal on all replicas: one part says it.
    return [p.tobytes() for p in found]


def first_difference(x: np.ndarray, y: np.ndarray) -> str:
    if x.shape != y.shape:
        return f"shapes {x.shape} and {y.shape}"
    different = np.argwhere(~((x == y) | (np.isnan(x) & np.isnan(y))))
    if len(different) == 0:
        return "signs of zero or other NaNs, or another replica"
    at = tuple(int(i) for i in different[0])
    return f"{len(different)} of {x.size} differ, first at {at}: {x[at]!r} and {y[at]!r}"
