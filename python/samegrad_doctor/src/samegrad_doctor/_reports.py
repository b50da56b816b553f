"""The mistakes of the loss that a step reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from samegrad_doctor._basis import BEND, EXACT
from samegrad_doctor._catalogue import FailureMode
from samegrad_doctor._hypotheses import alone_in, terms
from samegrad_doctor._layouts import Layout
from samegrad_doctor._measure import Runs, Sums
from samegrad_doctor._select import UNNAMED, Bench, Frame, factors_alike, simplest
from samegrad_doctor._updates import Vector

# What is wrong with a reported loss: in words, and as a mistake if one explains it.
Report = tuple[str, FailureMode | None]


def explain_loss(seen: Runs) -> Report | None:
    """Return the issue of the reported loss, or None.

    Right is what one device reports for the whole batch, on which the layouts must agree; whether
    it is a mean or a sum is seen from the losses of single examples, not from the update.
    """
    if any(run.loss is None for run in seen.runs):
        return None
    found = np.array([run.loss for run in seen.runs], dtype=np.float64)
    right, tolerance, frame = float(found[0]), EXACT, seen.frame
    if _difference(found, right, seen.layouts, tolerance) is None:
        return None
    losses = [run.loss for run in seen.singles] if isinstance(seen, Sums) else [None]
    each = None if None in losses else np.array(losses, dtype=np.float64)
    if each is not None:  # else one device's loss against the others
        tolerance = max(min(seen.tolerance, BEND), EXACT)
        limit = tolerance * max(abs(right), 1e-300)
        frame = replace(seen, fixed=bool(abs(right - each.sum()) <= limit))
        right = float(frame.right[0] @ each)
        if abs(right - found[0]) > limit:
            # Another function of the losses: agreement is all that is asked, but for a factor.
            each, right = each * (found[0] / right if right else 1.0), float(found[0])
    if (what := _difference(found, right, seen.layouts, tolerance)) is None:
        return None
    row = None if each is None else _of_examples(frame, found, each, tolerance)
    row = row or _of_groups(seen, found) or _of_a_factor(frame, found, tolerance)
    if row is None:
        return what, None
    return f"{what}: {row.name}{f' ({row.report})' if row.report else ''}", row


def _of_examples(frame: Frame, found: Vector, each: Vector, tolerance: float) -> FailureMode | None:
    """The examples' losses, as often as a row or a point says, or a term beside them."""
    bench = Bench(frame, [np.array([x]) for x in found], [each[None, :]] * len(found), tolerance)
    if rows := bench.named():
        return rows[0]
    limit = tolerance * max(abs(float(found[0])), 1e-300)
    for row, said in frame.said:
        # Among several replicas it must differ: one number for all of them fits anything.
        one = terms(frame.layouts, row, (said @ each)[:, None], said.sum(axis=1), start=1)
        made = (near.made() for near in simplest(found[:, None], one, limit))
        if (of_a_term := next(filter(None, made), None)) is not None:
            return of_a_term
    # One number for each layout is little to tell many points by.
    return next(iter(replace(bench, tolerance=EXACT).explained()), None)


def _of_groups(seen: Runs, found: Vector) -> FailureMode | None:
    """Shares or micro-batches make a root, a power or a ratio each, and these are averaged."""
    for one in alone_in(seen):
        for by_size in (True, False):
            said = []
            for item in seen.layouts:
                own = one.groups(item)
                sizes = np.array([len(group) if by_size else 1.0 for group in own])
                losses = [seen.alone(group).loss for group in own]
                said.append(sizes @ np.array(losses, dtype=np.float64) / sizes.sum())
            if (np.abs(np.array(said) - found) <= EXACT * np.abs(found)).all():
                more = f"each {one.name} makes it by itself, and they are averaged"
                return replace(one.statistics, report=more)
    return None


def _of_a_factor(frame: Frame, found: Vector, tolerance: float) -> FailureMode | None:
    """One factor on all of it."""
    row = factors_alike(frame, found / found[0], tolerance)[0] if found[0] else None
    return row if row and row.name != UNNAMED else None


def _difference(
    found: Vector, right: float, layouts: Sequence[Layout], tolerance: float
) -> str | None:
    errors = np.abs(found - right)
    if errors.max() <= tolerance * max(abs(right), 1e-300):
        return None
    worst = int(np.argmax(errors))
    return f"it reads {found[worst]:.6g} where one device has {right:.6g} ({layouts[worst]})"
