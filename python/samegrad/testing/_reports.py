"""The mistakes of what a step reports besides its update: moments, and the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from samegrad.testing._catalogue import (
    EQUAL_STATISTICS,
    LOCAL_STATISTICS,
    OWN_MOMENTS,
    Mistake,
)
from samegrad.testing._hypotheses import terms
from samegrad.testing._layouts import Layout, of_parts, of_shares, of_windows
from samegrad.testing._measure import Runs, Sums
from samegrad.testing._select import UNNAMED, Bench, Frame, factors_alike, simplest
from samegrad.testing._updates import Recorded, Vector

_EXACT = 1e-4  # relative; losses are often float32, printed, or both


def explain_statistics(seen: Runs) -> Mistake | None:
    """The mistake in the statistics of an `Outcome`, if there are any.

    A moving mean after one step is an affine function of the batch's mean, which is the
    count-weighted mean of those of the shares. Elements for which that holds on one device are
    compared with equal weights, and with the share of one replica alone; the others, such as means
    of squared gradients, with means of what the replicas make of their shares.
    """
    if any(run.statistics is None for run in seen.runs):
        return None
    one, *others = map(_moments, seen.runs)
    scale = np.abs(one) if one.all() else np.full_like(one, np.abs(one).max() + 1e-300)
    limit, top = seen.noise.limit(1), scale.max()

    def differ(values: Vector) -> npt.NDArray[np.bool_]:
        return np.asarray(np.abs(values - one) > limit * np.maximum(scale, 1e-3 * top))

    if not any(differ(found).any() for found in others):
        return None
    equal, own_moments, told = True, False, False
    for item, found in zip(seen.layouts[1:], others, strict=True):
        own = np.stack([_moments(seen.alone(group)) for group in of_shares(item)])
        sizes = np.array(item.sizes, dtype=np.float64)
        weighted, mean = sizes / sizes.sum() @ own, own.mean(axis=0)
        linear, wrong = ~differ(weighted), differ(found)
        if linear.any() and np.ptp(sizes) > 0:
            equal &= bool((np.abs(mean - found) <= limit * top)[linear].all())
            told |= bool((linear & differ(mean)).any())  # a constant says nothing, nor does a sum
        if (rest := wrong & ~linear).any() and not (wrong & linear).any():
            own_moments = any(
                bool((np.abs(said - found) <= 1e-2 * np.abs(found))[rest].all())
                for said in (weighted, mean)
            )
    return OWN_MOMENTS if own_moments else EQUAL_STATISTICS if equal and told else LOCAL_STATISTICS


def _moments(run: Recorded) -> Vector:
    assert run.statistics is not None
    return run.statistics


# What is wrong with a reported loss: in words, and as a mistake if one explains it.
Report = tuple[str, Mistake | None]


def explain_loss(seen: Runs) -> Report | None:
    """What is wrong with the reported loss, or None.

    Right is what one device reports for the whole batch, on which the layouts must agree; whether
    it is a mean or a sum is seen from the losses of single examples, not from the update.
    """
    if any(run.loss is None for run in seen.runs):
        return None
    found = np.array([run.loss for run in seen.runs], dtype=np.float64)
    if (what := _difference(found, float(found[0]), seen.layouts, _EXACT)) is None:
        return None
    losses = [run.loss for run in seen.singles] if isinstance(seen, Sums) else [None]
    if any(loss is None for loss in losses):  # one device's loss against the others
        frame = Frame(seen.layouts, np.ones(seen.examples), False)
        return _of_groups(seen, what, found, _EXACT) or _by_factor(what, found, frame, _EXACT)
    each = np.array(losses, dtype=np.float64)
    tolerance = max(min(seen.tolerance, 1e-2), _EXACT)
    limit = tolerance * max(abs(float(found[0])), 1e-300)
    judge = replace(seen, fixed=bool(abs(found[0] - each.sum()) <= limit))
    right = float(judge.right[0] @ each)
    if abs(right - found[0]) > limit:
        right = float(found[0])  # another function of the losses: agreement is all that is asked
    if (what := _difference(found, right, seen.layouts, tolerance)) is None:
        return None
    bench = Bench(judge, [np.array([x]) for x in found], [each[None, :]] * len(found), tolerance)
    rows = bench.named() or _of_a_term(judge, found, each, limit)
    if not rows:
        bench.tolerance = _EXACT  # one number for each layout is little to tell many points by
        rows = bench.explained()
    if rows:
        return _named(what, rows[0])
    return _of_groups(seen, what, found, _EXACT) or _by_factor(what, found, judge, tolerance)


def _of_a_term(judge: Runs, found: Vector, each: Vector, limit: float) -> list[Mistake]:
    """A term of the loss that belongs to no example, as often as a count says."""
    for row, said in judge.said:
        # Among several replicas it must differ: one number for all of them fits anything.
        one = terms(judge.layouts, row, (said @ each)[:, None], said.sum(axis=1), start=1)
        made = [near.made() for near in simplest(found[:, None], one, limit)]
        if rows := [mistake for mistake in made if mistake is not None]:
            return rows
    return []


def _of_groups(seen: Runs, what: str, found: Vector, tolerance: float) -> Report | None:
    """Shares or micro-batches make a root, a power or a ratio each, and these are averaged."""
    kinds = ((of_shares, "replica"), (of_parts, "micro-batch"), (of_windows, "step's micro-batch"))
    for groups, name in kinds:
        for by_size in (True, False):
            said = []
            for item in seen.layouts:
                own = groups(item)
                sizes = np.array([len(group) if by_size else 1.0 for group in own])
                losses = [seen.alone(group).loss for group in own]
                said.append(sizes @ np.array(losses, dtype=np.float64) / sizes.sum())
            if (np.abs(np.array(said) - found) <= tolerance * np.abs(found)).all():
                more = f"each {name} makes it by itself, and they are averaged"
                return _named(what, replace(LOCAL_STATISTICS, report=more))
    return None


def _by_factor(what: str, found: Vector, frame: Frame, tolerance: float) -> Report:
    """One factor on all of it."""
    row = factors_alike(frame, found / found[0], tolerance)[0] if found[0] else None
    return _named(what, row) if row and row.name != UNNAMED else (what, None)


def _difference(
    found: Vector, right: float, layouts: Sequence[Layout], tolerance: float
) -> str | None:
    errors = np.abs(found - right)
    if errors.max() <= tolerance * max(abs(right), 1e-300):
        return None
    worst = int(np.argmax(errors))
    return f"it reads {found[worst]:.6g} where one device has {right:.6g} ({layouts[worst]})"


def _named(what: str, row: Mistake) -> Report:
    more = f" ({row.report})" if row.report else ""
    return f"{what}: {row.name}{more}", row
