"""Reduces a failing program to a few lines that fail in the same way."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Iterator

import numpy as np

from fuzz.compare import check
from fuzz.difference import Difference
from fuzz.dual import value_of
from fuzz.ops import OPS
from fuzz.ops.table import Env
from fuzz.processes import Workers
from fuzz.program import Dim, N, Program, Statement, Type, concrete, names_in
from fuzz.worker import Mode

Modes = dict[str, list[Mode]]


def shrink(
    program: Program, wanted: Modes, found: Difference, workers: Workers, seconds: float = 60
) -> tuple[Program, Modes, Difference]:
    """The smallest program found in the time, how to run it, and its difference."""
    end = time.monotonic() + seconds
    key = found.key()

    def fails(candidate: Program, modes: Modes) -> Difference | None:
        if time.monotonic() > end or not retyped(candidate):
            return None
        try:
            differences, _ = check(candidate, workers, modes)
        except Exception:  # it has no meaning for these shares
            return None
        return next((d for d in differences if d.key() == key), None)

    for modes in _fewer_modes(wanted, found):
        if (again := fails(program, modes)) is not None:
            wanted, found = modes, again
            break
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate, modes in _smaller(program, wanted):
            if (again := fails(candidate, modes)) is not None:
                program, wanted, found, progress = candidate, modes, again, True
                break
    return program, wanted, found


def _fewer_modes(wanted: Modes, found: Difference) -> Iterator[Modes]:
    """Only those that the difference names."""
    named = {
        name: kept
        for name, modes in wanted.items()
        if (kept := [m for m in modes if f"{m} ({name})" in found.place])
    }
    if named:
        yield named


def retyped(program: Program) -> bool:
    """Finds the types anew by running the meaning for two numbers of examples; False: it is not
    a program."""
    try:
        few, many = _shapes(program, 5), _shapes(program, 7)
    except Exception:
        return False
    for s in program.body:
        a, b = few[s.out], many[s.out]
        if len(a) != len(b) or 0 in a:
            return False
        dims: list[Dim] = []
        for x, y in zip(a, b, strict=True):
            if x == y:
                dims.append(x)
            elif (x * 7) == (y * 5):
                dims.append(N(x // 5))
            else:
                return False
        if sum(isinstance(d, N) for d in dims) > 1:
            return False
        s.type = dataclasses.replace(s.type, shape=tuple(dims))
    types = program.types()
    for kind, name in program.losses:
        if kind == "average" and types[name].shape[:1] != (N(),):
            return False
    return bool(program.losses) and all(name in types for name in program.outputs)


def _shapes(program: Program, n: int) -> dict[str, tuple[int, ...]]:
    rng = np.random.default_rng(0)
    values = {}
    for i, t in enumerate(program.inputs):
        shape = concrete(t.shape, n)
        values[f"x{i}"] = (
            rng.integers(0, t.high, shape) if t.kind == "i" else rng.normal(size=shape)
        )
    for i, w in enumerate(program.variables):
        values[f"w{i}"] = rng.normal(size=w)
    env = Env(n, values, lambda: 9, whole=lambda name: value_of(values[name]))
    with np.errstate(all="ignore"):
        for s in program.body:
            env.inputs = s.inputs
            values[s.out] = OPS[s.op].meaning([values[name] for name in s.inputs], s.attrs, env)
    return {name: value_of(v).shape for name, v in values.items()}


def _smaller(program: Program, wanted: Modes) -> Iterator[tuple[Program, Modes]]:
    for candidate in simpler(program):
        yield candidate, wanted
    for shares in _fewer_examples(program.shares):
        candidate = copy.deepcopy(program)
        candidate.shares = shares
        modes = _with_shares(wanted, program.shares, shares)
        if modes is not None:
            yield candidate, modes
    for candidate in lower(program):
        yield candidate, wanted


def _fewer_examples(shares: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for i in range(len(shares)):
        if len(shares) > 1:
            yield (*shares[:i], *shares[i + 1 :])
    equal = len(set(shares)) == 1
    for by in (lambda n: 1, lambda n: n // 2, lambda n: n - 1):
        if equal:
            yield tuple(max(by(n), 0) for n in shares)
        else:
            for i, n in enumerate(shares):
                if n > by(n) >= 0 and n:
                    yield (*shares[:i], by(n), *shares[i + 1 :])


def _with_shares(wanted: Modes, old: tuple[int, ...], new: tuple[int, ...]) -> Modes | None:
    if sum(new) == 0 or new == old:
        return None
    changed: Modes = {}
    for name, modes in wanted.items():
        changed[name] = []
        for mode in modes:
            r = len(mode.shares)
            if mode.shares == old:
                shares = new
            elif r == 1:
                shares = (sum(new),)
            elif sum(new) % r == 0:
                shares = (sum(new) // r,) * r
            else:
                return None
            changed[name].append(dataclasses.replace(mode, shares=shares))
    return changed


def simpler(program: Program) -> Iterator[Program]:
    """Without a part of it."""
    for field in ("losses", "outputs", "updates"):
        for i in range(len(getattr(program, field))):
            candidate = copy.deepcopy(program)
            del getattr(candidate, field)[i]
            yield without_unused(candidate)
    if program.second:
        yield dataclasses.replace(copy.deepcopy(program), second=False)
    if program.examples:
        yield dataclasses.replace(copy.deepcopy(program), examples=False)
    if program.steps > 1:
        yield dataclasses.replace(copy.deepcopy(program), steps=program.steps - 1)
    if without_unused(copy.deepcopy(program)) != program:
        yield without_unused(copy.deepcopy(program))
    for s in reversed(program.body):
        yield from _without(program, s)
        for i, chain in enumerate(s.attrs.get("chains", ())):
            for k in range(len(chain)):
                candidate = copy.deepcopy(program)
                del next(t for t in candidate.body if t.out == s.out).attrs["chains"][i][k]
                yield without_unused(candidate)


def _without(program: Program, s: Statement) -> Iterator[Program]:
    """Its operand, or data of the same type, in its place."""
    for name in dict.fromkeys(s.inputs):
        yield without_unused(_replaced(program, s, name))
    if s.type.shape[:1] == (N(),) and s.type.kind in ("f", "i"):
        candidate = _replaced(program, s, f"x{len(program.inputs)}")
        candidate.inputs.append(Type(s.type.shape, s.type.kind, s.type.high))
        yield without_unused(candidate)
    if s.type.axis < 0 and s.type.kind == "f":
        candidate = _replaced(program, s, f"w{len(program.variables)}")
        candidate.variables.append(tuple(d for d in s.type.shape if isinstance(d, int)))
        yield without_unused(candidate)


def _replaced(program: Program, s: Statement, name: str) -> Program:
    candidate = copy.deepcopy(program)
    candidate.body = [t for t in candidate.body if t.out != s.out]
    for t in candidate.body:
        t.inputs = tuple(name if x == s.out else x for x in t.inputs)
    candidate.losses = [(k, name if x == s.out else x) for k, x in candidate.losses]
    candidate.outputs = sorted({name if x == s.out else x for x in candidate.outputs} - {"w"})
    return candidate


def without_unused(program: Program) -> Program:
    """Without statements and variables that nothing reads."""
    needed = {name for _, name in program.losses} | set(program.outputs)
    kept = []
    for s in reversed(program.body):
        if s.out in needed:
            needed |= set(names_in(s))
            kept.append(s)
    program.body = kept[::-1]
    for update in program.updates:
        numbers = [i for i in update[1:] if isinstance(i, int)]
        needed |= {f"w{i}" for i in numbers}
    for prefix, items in (("w", program.variables), ("x", program.inputs)):
        for i in reversed(range(len(items))):
            if f"{prefix}{i}" in needed or len(items) == 1:
                continue
            del items[i]  # type: ignore[attr-defined]
            _renumber(program, prefix, i)
            needed = {_lower_name(name, prefix, i) for name in needed}
    return program


def _lower_name(name: str, prefix: str, gone: int) -> str:
    own = name.startswith(prefix) and name[1:].isdigit() and int(name[1:]) > gone
    return f"{prefix}{int(name[1:]) - 1}" if own else name


def _renumber(program: Program, prefix: str, gone: int) -> None:
    def low(name: str) -> str:
        return _lower_name(name, prefix, gone)

    for s in program.body:
        s.inputs = tuple(map(low, s.inputs))
        for chain in s.attrs.get("chains", ()):
            for k, item in enumerate(chain):
                fn, colon, weight = item.partition(":")
                chain[k] = fn + colon + low(weight)
    program.losses = [(k, low(name)) for k, name in program.losses]
    program.outputs = [low(name) for name in program.outputs]
    if prefix == "w":
        program.updates = [
            (kind, *(i - 1 if isinstance(i, int) and i > gone else i for i in rest))
            for kind, *rest in program.updates
        ]


def lower(program: Program) -> Iterator[Program]:
    """With smaller sizes of data and variables: equal sizes change together."""
    sizes = {d for t in program.inputs for d in t.shape if isinstance(d, int)}
    sizes |= {d for shape in program.variables for d in shape}
    for size in sorted(sizes, reverse=True):
        for less in dict.fromkeys((1, 2, 3, size // 2, size - 1)):
            if not 0 < less < size:
                continue
            candidate = copy.deepcopy(program)
            candidate.inputs = [
                dataclasses.replace(t, shape=tuple(less if d == size else d for d in t.shape))
                for t in candidate.inputs
            ]
            candidate.variables = [
                tuple(less if d == size else d for d in shape) for shape in candidate.variables
            ]
            yield candidate
