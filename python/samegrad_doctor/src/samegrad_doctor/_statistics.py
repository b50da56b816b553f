"""The mistakes of the statistics of an `Outcome`: moving means, counts, moments of optimizers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from samegrad_doctor._basis import TELLING
from samegrad_doctor._catalogue import (
    EQUAL_STATISTICS,
    LOCAL_STATISTICS,
    OWN_MOMENTS,
    STATISTICS_OF_ONE,
    STATISTICS_OF_ONE_PART,
    UPDATED_AGAIN,
    FailureMode,
)
from samegrad_doctor._diagnosis import Found
from samegrad_doctor._hypotheses import of_groups, terms
from samegrad_doctor._layouts import Groups, Layout, of_parts, of_shares, of_windows
from samegrad_doctor._measure import Runs
from samegrad_doctor._select import EQUAL, residual, simplest
from samegrad_doctor._updates import Recorded, Vector

_WHAT = "the statistics are not those of one device"
_ALIKE = "mean of the replicas' means"  # is told as equal weights
_NEAR = 1e-2  # relative; of moments that a bend of the loss changes a little
_TIMES = 6  # that the search for a momentum goes on in a sixteenth of the range


def explain_statistics(seen: Runs) -> Found | None:
    """The mistake in the statistics, if there are any and they are wrong.

    One device shows what an element is: a mean of the examples (with an old value, as moving means
    have), a sum of them (and an old value), or no linear function. How much the shares count in
    the first two is asked of the rows; the others are compared with what shares make of them.
    """
    if any(run.statistics is None for run in seen.runs):
        return None
    found = np.stack([_moments(run) for run in seen.runs])
    wrong = _differ(seen, found, found[0])
    if not wrong.any():
        return None
    means, sums = _means(seen, found[0]), _sums(seen, found[0])
    if (sums & ~means).any():
        means &= ~sums  # constants are both: of a sum they are old values
    cause = _of_one_share(seen, found) or (
        _weighed(seen, found, means, False) or _weighed(seen, found, sums & ~means, True)
    )
    if cause is None and not (wrong & (means | sums)).any():
        cause = _of_own_moments(seen, found, wrong)
    if cause is None:
        return Found(_WHAT, (), (LOCAL_STATISTICS,), beside=True)
    return Found(_WHAT, (cause,), beside=True)


def _moments(run: Recorded) -> Vector:
    assert run.statistics is not None
    return run.statistics


def _differ(seen: Runs, values: Vector, one: Vector) -> npt.NDArray[np.bool_]:
    """Return a mask of the elements (by layout) that differ from one device."""
    scale = np.abs(one) if one.all() else np.full(one.shape, np.abs(one).max() + 1e-300)
    limit = seen.noise.limit(1) * np.maximum(scale, 1e-3 * np.abs(scale).max())
    return np.asarray(np.abs(values - one) > limit)


def _own(seen: Runs, item: Layout, groups: Groups = of_parts) -> Vector:
    """Return the statistics that each group computes by itself."""
    return np.stack([_moments(seen.alone(group)) for group in groups(item) if group])


def _cut(seen: Runs) -> list[Layout]:
    return [item for item in seen.layouts if item.replicas * item.micro_batches > 1]


def _means(seen: Runs, one: Vector) -> npt.NDArray[np.bool_]:
    """Return a mask of the elements that are count-weighted means of the parts' values."""
    found = []
    for item in _cut(seen):
        sizes = np.array([len(part) for part in of_parts(item) if part], dtype=np.float64)
        found.append(_differ(seen, sizes / sizes.sum() @ _own(seen, item), one))
    return np.asarray(~np.any(found, axis=0))


def _sums(seen: Runs, one: Vector) -> npt.NDArray[np.bool_]:
    """Return a mask of the elements that are sums of the parts' values, less repeated old ones."""
    found, old = [], []
    for item in _cut(seen):
        own = _own(seen, item)
        old.append((own.sum(axis=0) - one) / (len(own) - 1))
        found.append(_differ(seen, one + old[-1] - old[0], one))
    return np.asarray(~np.any(found, axis=0))


def _of_one_share(seen: Runs, found: Vector) -> FailureMode | None:
    """Every layout has the statistics of its first or last share, or part."""
    for groups, mistake in ((of_shares, STATISTICS_OF_ONE), (of_parts, STATISTICS_OF_ONE_PART)):
        for place in (0, -1):
            pairs = zip(seen.layouts, found, strict=True)
            if not any(_differ(seen, _own(seen, item, groups)[place], row).any()
                       for item, row in pairs):  # fmt: skip
                return mistake
    return None


def _weighed(
    seen: Runs, found: Vector, chosen: npt.NDArray[np.bool_], fixed: bool
) -> FailureMode | None:
    """The row that says how much parts count in some elements, which are means or sums of them."""
    values = found[:, chosen]
    limit = seen.noise.limit(1) * float(np.linalg.norm(values))
    if not limit < TELLING * float(np.linalg.norm(values - values[:1])):
        return None

    def own(run: Recorded) -> Vector:
        return np.asarray(_moments(run)[chosen])

    tried = []
    for row, table in seen.frame.said:
        pairs = zip(seen.layouts, table, strict=True)
        if all(np.ptp(w[list(part)]) <= EQUAL for item, w in pairs for part in of_parts(item)):
            known, held = of_groups(seen, seen.layouts, table, of_parts, fixed, own)
            if np.linalg.norm(values - known) <= limit:  # of sums, each part has the old values
                each = "once in every micro-batch of every" if seen.several else "once on every"
                return _with_old(f"{each} replica", None) if row is None else _of_row(row)
            tried.append((row, known, held))
    for row, known, held in tried:
        near = simplest(values, terms(seen.layouts, row, known, held, made=_with_old), limit)
        if near and (made := near[0].made()):
            return made
    return None if fixed else _updated_again(seen, values, own, limit)


def _of_row(row: FailureMode) -> FailureMode:
    if row.name == _ALIKE:
        return EQUAL_STATISTICS
    return replace(row, name=f"in the statistics: {row.name}",
                   sentence=f"in what the statistics are made of, {row.sentence}")  # fmt: skip


def _with_old(count: str, row: FailureMode | None) -> FailureMode | None:
    """Old values that count so, beside examples that a row weighs."""
    if count == "once":
        return None if row is None else _of_row(row)
    more = "" if row is None else f"; and the examples: {row.name}"
    return FailureMode(
        f"in the statistics, old values count {count}{more}",
        "what the statistics were before the step is summed (or divided) with the replicas or "
        "micro-batches, though it belongs to the step once",
        "d h + (1 - d) Σ w_i x_i / W, h being counted otherwise than once", remedy="statistics",
    )  # fmt: skip


def _first_parts(item: Layout) -> list[tuple[int, ...]]:
    return list(item.parts[0])


def _updated_again(
    seen: Runs, values: Vector, own: Callable[[Recorded], Vector], limit: float
) -> FailureMode | None:
    """A moving mean that every micro-batch moves, instead of the step.

    With s_k = d h + (1 - d) m_k of one micro-batch alone, K of them make
    Σ d^(K-1-k) s_k - (1 + d + … + d^(K-2)) d h, of which d and d h are unknown.
    """
    for groups in (of_windows, _first_parts) if seen.several else ():
        alone = [np.stack([own(seen.alone(part)) for part in groups(item)])
                 for item in seen.layouts]  # fmt: skip

        def left(d: float, alone: list[Vector] = alone) -> float:
            powers = [d ** np.arange(len(one))[::-1] for one in alone]
            known = np.stack([by @ one for by, one in zip(powers, alone, strict=True)])
            return residual(values - known, np.array([[by[1:].sum()] for by in powers]))[0]

        low, high = 0.0, 1.0
        for _ in range(_TIMES):
            tried = np.linspace(low, high, 33)
            best = int(np.argmin([left(float(d)) for d in tried]))
            low, high = tried[max(best - 1, 0)], tried[min(best + 1, 32)]
        if left((low + high) / 2) <= limit:
            return UPDATED_AGAIN
    return None


def _of_own_moments(seen: Runs, found: Vector, wrong: npt.NDArray[np.bool_]) -> FailureMode | None:
    """Return the statistics with non-means replaced by the average of the shards' values."""
    for item, row, off in zip(seen.layouts, found, wrong, strict=True):
        own, sizes = _own(seen, item, of_shares), np.array([n for n in item.sizes if n])
        said = (sizes / sizes.sum() @ own, own.mean(axis=0))
        if off.any() and not any((np.abs(x - row) <= _NEAR * np.abs(row))[off].all() for x in said):
            return None
    return OWN_MOMENTS
