"""The verdict on a step, whether its update is a sum over examples or not."""

from __future__ import annotations

import numpy as np

from samegrad.testing._batches import StepFailedError
from samegrad.testing._catalogue import CLIPPED_SCALED, CONSTANT_FOR_WEIGHTS, COPIES_DIFFER
from samegrad.testing._diagnosis import Diagnosis, Found, ShareRow, factors_of_examples, share_rows
from samegrad.testing._evidence import Evidence
from samegrad.testing._layouts import Layout, layout
from samegrad.testing._limits import HIDDEN, is_limited_scaled
from samegrad.testing._mistake import Mistake
from samegrad.testing._reported import explain_loss
from samegrad.testing._runs import DRIFT, Runs
from samegrad.testing._select import Frame
from samegrad.testing._statistics import explain_statistics
from samegrad.testing._sums import explain_sum
from samegrad.testing._whole import explain_whole

_FIXED = (
    "one device divides by a fixed number (or by nothing): a convention; a short last batch then "
    "counts less"
)
_UNKNOWN = "no point of the grammar explains it: look at the table"
_JUDGED_WHOLE = (
    "the update does not decompose into a sum over examples (batch statistics, a limit on the "
    "gradient, a loss over pairs), so that updates are compared as a whole"
)


def judge(seen: Runs) -> Diagnosis | None:
    """The verdict, or None where these runs tell none: sums that are none, or no update at all.

    Raises:
        StepError: Noise hides what is to be judged.
    """
    try:
        one = seen.run(seen.layouts[0])
    except StepFailedError:
        return None
    if not np.isfinite(one.sketch).all() or one.norm == 0:
        return None
    found = _found(seen)
    return None if found is None else verdict(seen, found)


def _found(seen: Runs) -> Found | None:
    if max(run.drift for run in seen.runs) > DRIFT:
        return Found("the replicas' copies differ", (COPIES_DIFFER,))
    found = explain_sum(seen) if isinstance(seen, Evidence) else explain_whole(seen)
    if found is not None and found.right and (statistics := explain_statistics(seen)):
        return Found("the statistics are not those of one device", (statistics,), (), found.notes)
    return found


def verdict(seen: Runs, found: Found) -> Diagnosis:
    """The diagnosis with the layout that shows the mistake best; likely causes come first."""
    sums = seen if isinstance(seen, Evidence) else None
    notes = [*(_of_fixed_numbers(seen) if sums else [_JUDGED_WHOLE]), *found.notes]
    place, rows = len(seen.layouts) - 1, tuple[ShareRow, ...]()
    if found.right:
        notes += [HIDDEN] if seen.limited else []
        notes += [alike] if sums and (alike := _alike(seen)) else []
    elif sums:
        place = _worst(sums)
        item, right, weights = seen.layouts[place], seen.right(place), sums.fits[place].weights
        rows = share_rows(item, right, weights)
        more = factors_of_examples(item, right, weights)
        if more and (not found.causes or found.causes[0].point is not None):
            notes.append(more)
        notes += [] if found.causes else [_UNKNOWN]
    report = explain_loss(seen)
    worst = None if found.right else seen.layouts[place]
    return Diagnosis(
        found.right, next(iter(found.causes), None), (*found.causes[1:], *found.candidates), rows,
        worst, tuple(notes), report and report.words, seen.tolerance,
        summary(seen, found.what, worst), _cautions(seen), report and report.cause,
    )  # fmt: skip


def summary(seen: Runs, what: str, worst: Layout | None = None) -> str:
    """The first line of a diagnosis."""
    where = f" ({worst})" if worst is not None else ""
    how = f"weights exact to {seen.tolerance:.1g}" if seen.by_weights else "compared as a whole"
    return f"{what}{where}; {seen.examples} examples on {len(seen.layouts)} layouts, {how}"


def _of_fixed_numbers(seen: Runs) -> list[str]:
    """What it means that one device divides by a fixed number."""
    if not seen.fixed:
        return []
    if not _cautions(seen):
        return [_FIXED]
    least, most = float(seen.weights.min()), float(seen.weights.max())
    times = f", by itself up to {most / least:.4g} times" if least > 0 else ""
    return [
        f"{_FIXED}, as does one of few tokens: an example here{times} (weights from {least:.4g} to "
        f"{most:.4g})"
    ]


def _cautions(seen: Runs) -> tuple[Mistake, ...]:
    """What one device does as well, where the weights that the user gave say otherwise."""
    differ = seen.given and float(np.ptp(seen.weights)) > 0
    found = [CONSTANT_FOR_WEIGHTS] if seen.fixed and differ else []
    return (*found, *([CLIPPED_SCALED] if is_limited_scaled(seen.lengths) else []))


def _alike(seen: Runs) -> str | None:
    """Rows that give the right weights on all layouts tried, and how wrong they can be."""
    places = range(len(seen.layouts))
    rows = [
        row
        for row in seen.rows
        if all(np.allclose(seen.predicted(row, p), seen.right(p)) for p in places)
    ]
    if not rows:
        return None
    names = ", ".join(row.name for row in rows)
    item = max(seen.layouts, key=lambda item: (item.micro_batches == 1, item.replicas))
    size = max(item.sizes)
    short = layout([size] * (item.replicas - 1) + [1], 1)
    frame = Frame([short], np.ones(len(short.examples)), seen.fixed)
    worst = max(float(np.abs(frame.predicted(row, 0) / frame.right(0)).max()) for row in rows)
    told = "right while all shares are equal; " if seen.settings.even else ""
    wrong_by = f"; if it is one, an example counts up to {worst:.3g} times in {short}"
    return f"{told}these splits cannot tell it from: {names}{wrong_by if worst > 1 else ''}"


def _worst(evidence: Evidence) -> int:
    """The layout that is wrong most; of equals, the one whose table shows it."""
    errors = [
        float(np.abs(fit.weights - evidence.right(place)).max())
        for place, fit in enumerate(evidence.fits)
    ]
    if len(errors) == 1:
        return 0
    least = (1 - 1e-3) * max(errors[1:])
    near = [place for place in range(1, len(errors)) if errors[place] >= least]

    def shown(place: int) -> float:
        right, found = evidence.right(place), evidence.fits[place].weights
        rows = share_rows(evidence.layouts[place], right, found)
        return max(abs(row.found - row.right) for row in rows)

    return max(near, key=shown)


__all__ = ["judge", "summary", "verdict"]
