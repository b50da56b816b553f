"""Whether the cases are what their authors say, found without the doctor.

A right step makes one update of every split of a batch, an even one of every equal split, and a
wrong one does not (or its report, or its statistics). Run as a program it prints what fails.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from samegrad_doctor import Outcome

from .case import Case

MODULES = {
    "torch": (
        "language",
        "language_loops",
        "vision",
        "distributed",
        "representations",
        "terms",
    ),
    "processes": ("processes",),
    "jax": ("jax_programs",),
    "samegrad": ("tensorflow_programs",),
}


def modules_of(trial: str) -> dict[str, tuple[str, ...]]:
    """The modules of each part of a trial, which is a package."""
    return MODULES if trial == __package__ else importlib.import_module(trial).MODULES


def cases(part: str, trial: str = __package__) -> list[Case]:
    """The cases of a part: "torch", "processes", "jax" or "samegrad"."""
    names = modules_of(trial)[part]
    modules = [importlib.import_module(f"{trial}.{name}") for name in names]
    return [case for module in modules for case in module.CASES]


def asked(words: list[str]) -> Iterator[tuple[str, str]]:
    """A program's parts and trials: `--trial=PACKAGE`, and the names of parts, or all."""
    trials = [word.partition("=")[2] for word in words if word.startswith("--trial=")]
    trial = trials[-1] if trials else __package__
    parts = [word for word in words if not word.startswith("--trial=")]
    yield from ((part, trial) for part in parts or modules_of(trial))


def _flat(value: Any) -> np.ndarray:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return np.concatenate([_flat(v) for v in value]) if len(value) else np.zeros(0)
    return np.asarray(value, np.float64).ravel()


def _seen(result: Any, where: str) -> np.ndarray:
    """What is compared: the updates of all copies, or what is reported or kept beside them."""
    if not isinstance(result, Outcome):
        return _flat(result)
    if where == "report":
        return _flat(result.loss)
    return _flat(result.statistics if where == "statistics" else result.update)


def _copies_differ(result: Any) -> bool:
    copies = [_flat(c) for c in (getattr(result, "replicas", None) or [])]
    return any(not np.allclose(copies[0], c, rtol=1e-4, atol=1e-8) for c in copies)


def _cut(batch: Any, sizes: list[int]) -> list[Any]:
    ends = np.cumsum([0, *sizes])
    return [tuple(np.asarray(a)[ends[i] : ends[i + 1]] for a in batch) for i in range(len(sizes))]


def _splits(case: Case) -> Iterator[list[list[int]]]:
    """Sizes of the micro-batches of each replica, of 12 examples (11 where a case says so)."""
    n = case.options.get("max_examples", 12)
    windows = max(case.options.get("micro_batches", (1,))) > 1
    many = max(case.options.get("replicas", (2, 3)))
    if case.kind in ("even", "warned") or case.options.get("equal_shards"):
        yield from ([[6, 6]], [[4, 4, 4]]) if windows else ()
        if many > 1:
            yield from ([[6], [6]], [[4], [4], [4]]) if not windows else ([[3, 3], [3, 3]],)
    elif many == 1:
        yield from ([[2, n - 2]], [[1, 4, n - 5]])
    elif many == 4:
        yield [[2], [3], [4], [3]]
    else:
        yield from ([[3], [n - 3]], [[1], [4], [n - 5]])
        if windows:
            yield [[1, 2], [4, n - 7]]


def _run(step: Any, batch: Any, sizes: list[list[int]]) -> Any:
    parts, start = [], 0
    for window in sizes:
        own = tuple(np.asarray(a)[start : start + sum(window)] for a in batch)
        pieces = _cut(own, window)
        parts.append(pieces if len(window) > 1 else pieces[0])
        start += sum(window)
    return step(parts)


def judged(case: Case) -> str:
    """What contradicts the case, or ""."""
    step, batch = case.make()
    n = case.options.get("max_examples", 12)
    whole = _seen(step(_cut(batch, [n])), case.where)
    far, differ = [], False
    for sizes in _splits(case):
        result = _run(step, batch, sizes)
        got = _seen(result, case.where)
        far.append(float(np.abs(got - whole).max() / np.abs(whole).max()))
        differ |= _copies_differ(result)
    if case.kind == "wrong":
        return "" if max(far) > 1e-2 or differ else f"no split differs: {far}"
    return "" if max(far) < 1e-3 and not differ else f"splits differ: {far}, copies: {differ}"


def main() -> None:
    """Judges the parts that are named, or all."""
    for part, trial in asked(sys.argv[1:]):
        held = cases(part, trial)
        wrong = [(case.name, judged(case)) for case in held]
        print(f"{part}: {len(held)} cases,", *(f"\n  {n}: {w}" for n, w in wrong if w))


if __name__ == "__main__":
    main()
