"""The loss that a step reports, judged by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from samegrad.testing._layouts import Layout
from samegrad.testing._mistake import Mistake
from samegrad.testing._runs import Runs
from samegrad.testing._select import EQUAL, UNNAMED, Bench, Frame, factors_alike
from samegrad.testing._terms import COUNTS
from samegrad.testing._updates import Vector

_EXACT = 1e-4  # relative; losses are often float32, printed, or both


class Report(NamedTuple):
    """What is wrong with a reported loss: in words, and as a mistake if one explains it."""

    words: str
    cause: Mistake | None = None


def explain_loss(seen: Runs) -> Report | None:
    """What is wrong with the reported loss, or None.

    Right is what one device reports for the whole batch, on which the layouts must agree; whether
    it is a mean or a sum is seen from the losses of single examples, not from the update.
    """
    losses = [run.loss for run in seen.runs]
    if any(loss is None for loss in losses):
        return None
    own = [single.loss for single in seen.some_alone] if seen.by_weights else [None]
    if any(loss is None for loss in own):
        return _explain_loss_of_batches(seen)
    each = np.array(own, dtype=np.float64)
    found = np.array(losses, dtype=np.float64)
    tolerance = max(min(seen.tolerance, 1e-2), _EXACT)
    if _difference(found, float(found[0]), seen.layouts, _EXACT) is None:
        return None
    scale = max(float(np.abs(found[0]).max()), 1e-300)
    judge = replace(seen, fixed=bool(abs(found[0] - each.sum()) <= tolerance * scale))
    right = float(judge.right(0) @ each)
    if abs(right - found[0]) > tolerance * scale:
        right = float(found[0])  # another function of the losses: agreement is all that is asked
    what = _difference(found, right, seen.layouts, tolerance)
    if what is None:
        return None
    bench = Bench(judge, [np.array([x]) for x in found], [each[None, :]] * len(found), tolerance)
    if rows := bench.named():
        return _named(what, rows[0])
    term = _term(judge, found, each, tolerance * scale)
    if term is not None:
        return Report(f"{what}: {term}")
    bench.tolerance = _EXACT  # one number for each layout is little to tell many points apart by
    if rows := bench.explained():
        return _named(what, rows[0])
    return _factor_named(what, found / right, judge, tolerance) if right else Report(what)


def _term(judge: Runs, found: Vector, each: Vector, limit: float) -> str | None:
    """A term of the loss that belongs to no example, as often as a count says."""
    for row in (None, *judge.rows):
        said = [
            judge.right(p) if row is None else judge.predicted(row, p) for p in range(len(found))
        ]
        rest = found - np.array([float(weights @ each) for weights in said])
        for name, count in COUNTS.items():
            left = np.array(
                [count(item) - w.sum() for item, w in zip(judge.layouts, said, strict=True)]
            )
            if np.ptp(left[1:]) < EQUAL:
                continue
            size = float(left @ rest / (left @ left))
            if np.abs(rest - size * left).max() <= limit:
                data = "" if row is None else f"; and the data: {row.name}"
                return f"regularisation counts {name}{data}"
    return None


def _explain_loss_of_batches(seen: Runs) -> Report | None:
    """The same without losses of single examples: one device's loss against the others."""
    found = np.array([run.loss for run in seen.runs], dtype=np.float64)
    what = _difference(found, float(found[0]), seen.layouts, _EXACT)
    if what is None or not found[0]:
        return None if what is None else Report(what)
    frame = Frame(seen.layouts, np.ones(seen.examples), False)
    return _factor_named(what, found / found[0], frame, _EXACT)


def _factor_named(what: str, ratios: Vector, frame: Frame, tolerance: float) -> Report:
    row = factors_alike(frame, ratios, tolerance)[0]
    return Report(what) if row.name == UNNAMED else _named(what, row)


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
    return Report(f"{what}: {row.name}{more}", row)
