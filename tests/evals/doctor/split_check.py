"""Check without the doctor that the cases of a set are what their authors say.

A right step makes one update of every split of a batch, an even one of every equal split, and a
wrong one does not (or its report, or its statistics).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from eval_case import Case

from samegrad_doctor import Outcome


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


def contradiction(case: Case) -> str:
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
