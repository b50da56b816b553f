"""Runs a program in many ways and compares what they give."""

from __future__ import annotations

import random
from typing import Any

from fuzz import features
from fuzz.bits import bits, halved
from fuzz.difference import Difference
from fuzz.processes import Workers
from fuzz.program import Program
from fuzz.values import Known, against_interpreter
from fuzz.worker import Mode
from samegrad import _core

PASSES = [name for name, option in vars(_core.PlanOptions).items() if isinstance(option, property)]


def plan_modes(program: Program, rng: random.Random) -> dict[str, list[Mode]]:
    """The ways to run it: some always, of the others a few at random."""
    shares, whole = program.shares, (sum(program.shares),)
    # Operations outside run have draws of their own.
    plain = [] if program.draws() else [Mode("eager", whole), Mode("function", whole, cover=True)]
    usual = [
        Mode("run", shares, cover=True),
        Mode("run", shares, cover=True, hides=True),
        *plain,
        Mode("run in function", whole, threads=rng.choice([1, 4])),
        Mode("run", shares, off=rng.choice(PASSES)),
    ]
    if rng.random() < 0.5:
        usual.append(Mode("run in function", shares, threads=rng.choice([1, 2, 4])))
    if halved(shares) and program.is_local():
        n = whole[0]
        usual += [
            Mode("run", (n // r,) * r, cover=True) for r in (1, 2, 4) if n % r == 0 and n // r >= 3
        ]
    if len(set(shares)) > 1:
        usual.append(Mode("run", shares, per_count=True, cover=True))
    wanted = {"usual": list(dict.fromkeys(usual))}
    forced = rng.sample(["ones", "inner", "deferred"], 2)
    for name in forced:
        threads = rng.choice([1, 2, 4])
        wanted[name] = [
            Mode("run", shares, cover=True, threads=threads, hides=hides) for hides in (False, True)
        ]
    if plain and rng.random() < 0.5:
        wanted["usual"].append(Mode("function", whole, open_sizes=True, cover=True))
    if not program.draws() and rng.random() < 0.5:
        kind, parts = rng.choice(
            [("function", whole), ("run", shares), ("run in function", shares)]
        )
        wanted["usual"].append(Mode(kind, parts, resized=True, cover=True))
    if rng.random() < 0.4:
        wanted["usual"] += [Mode("mapped", whole), Mode("mapped by Python", whole)]
    if rng.random() < 0.3:
        wanted["v3"] = [Mode("run", shares)]
    return wanted


def _refusals(environment: str) -> tuple[str, ...]:
    return (*features.REFUSALS, *([features.NOT_BUILT] if environment in ("v3", "v4") else []))


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
    judged: set[tuple[str, tuple[int, ...], bool, bool]] = set()
    for (name, mode), outcome in done.items():
        if mode.hides or mode.kind.startswith("mapped"):  # its bits are compared
            continue
        ways = (mode.kind, mode.shares, mode.per_count, mode.open_sizes)
        if ways not in judged or name != "usual":
            judged.add(ways)
            found += against_interpreter(program, mode, outcome, name, known)
        if found:
            break
    return found or bits(program, done), outcomes
