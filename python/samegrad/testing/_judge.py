"""The verdict on a step whose update is a sum over examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._auxiliary import explain_residuals
from samegrad.testing._catalogue import Mistake
from samegrad.testing._catalogue._other import COPIES_DIFFER
from samegrad.testing._clipping import HIDDEN, explain_clipping, is_limited
from samegrad.testing._diagnosis import Diagnosis, share_rows
from samegrad.testing._factors import UNNAMED, explain_whole, explain_with_factor
from samegrad.testing._layouts import Layout
from samegrad.testing._probes import explain_parts
from samegrad.testing._reported import explain_loss
from samegrad.testing._statistics import explain_statistics
from samegrad.testing._updates import Recorder

if TYPE_CHECKING:
    from samegrad.testing._diagnose import Evidence

_FLOOR = 1e-5  # relative error of weights that float32 leaves at best
_SAME = 1e-5  # relative; updates that are equal but for rounding in float32
_NO_SUM = 0.02  # of the update of one device, which no weights of examples explain
_FIXED = (
    "one device divides by a fixed number (or by nothing): a convention; a short last batch then "
    "counts less"
)


def judge(
    evidence: Evidence,
    recorder: Recorder,
    replicas: Sequence[int],
    micro_batches: Sequence[int],
    given: bool,
) -> Diagnosis | None:
    """The verdict, or None where the update of one device is no sum over examples.

    Args:
        evidence: The runs.
        recorder: Runs the step on more layouts.
        replicas: Numbers to try.
        micro_batches: The same.
        given: Whether the user gave the weights of the examples.
    """
    notes = [_FIXED] if evidence.fixed else []
    if max(run.drift for run in evidence.runs) > 1e-6:
        return wrong(evidence, COPIES_DIFFER, (), notes, "the replicas' copies differ")
    if evidence.fits[0].unexplained > _NO_SUM:
        evidence = _cleaned(evidence, recorder)
    right = evidence.error(evidence.right)
    unexplained = max(fit.unexplained for fit in evidence.fits)
    usual = max(10 * evidence.fits[0].unexplained, 1e-6)
    if _same(evidence) and (not given or right <= evidence.tolerance):
        return _right(evidence, recorder, notes)
    if unexplained > usual or evidence.fits[0].unexplained > _NO_SUM:
        found = explain_residuals(evidence, recorder, given)
        if found is not None and found.mistake is None:
            return _right(evidence, recorder, notes)
        if found is not None:
            return wrong(evidence, found.mistake, (), notes, "another term is scaled with them")
    if evidence.fits[0].unexplained > _NO_SUM:
        return None
    if right <= evidence.tolerance and unexplained <= usual:
        return _right(evidence, recorder, notes)
    near = _ranked(evidence)
    if near and unexplained <= usual:
        return wrong(evidence, near[0], tuple(near[1:]), notes, "not the update of one device")
    if _limited(evidence):
        return None
    if not given and _same(evidence, 6 * _rounding(evidence, recorder)):
        return _right(evidence, recorder, notes)
    if unexplained > usual and (part := explain_parts(evidence, recorder, replicas, micro_batches)):
        return wrong(evidence, part, (), notes, "a part of the update is scaled by itself")
    if near:
        return wrong(evidence, near[0], tuple(near[1:]), notes, "not the update of one device")
    other = explain_clipping(evidence) or _scaled(evidence)
    return wrong(evidence, other, (), notes, "not the update of one device")


def _cleaned(evidence: Evidence, recorder: Recorder) -> Evidence:
    """The tolerance without what one direction leaves over on one device."""
    residuals = np.stack([fit.residual for fit in evidence.fits])
    main = np.linalg.svd(residuals, full_matrices=False)[2][0]
    rest = residuals[0] - (residuals[0] @ main) * main
    count = len(evidence.weights)
    spare = max(min(recorder.parameters, len(rest)) - count - 1, 1)
    noise = float(np.linalg.norm(rest)) / np.sqrt(spare)
    tolerance = 12 * noise * float(evidence.basis.gain.max()) * count
    return replace(evidence, tolerance=min(max(_FLOOR, tolerance), evidence.tolerance))


def _limited(evidence: Evidence) -> bool:
    return is_limited([run.lengths for run in (*evidence.singles, evidence.runs[0])])


def _same(evidence: Evidence, near: float = _SAME) -> bool:
    one = evidence.runs[0].sketch
    scale = float(np.linalg.norm(one))
    return all(np.linalg.norm(run.sketch - one) <= near * scale for run in evidence.runs)


def _rounding(evidence: Evidence, recorder: Recorder) -> float:
    """How far the update of one device moves when the examples come in another order."""
    one = evidence.runs[0].sketch
    order = tuple(range(len(evidence.weights)))[::-1]
    turned = recorder.run(Layout(((order,),))).sketch
    return float(min(np.linalg.norm(turned - one) / np.linalg.norm(one), _NO_SUM / 4))


def _right(evidence: Evidence, recorder: Recorder, notes: list[str]) -> Diagnosis:
    def alone(examples: Sequence[int]):  # type: ignore[no-untyped-def]
        return recorder.run(Layout(((tuple(examples),),)))

    statistics = explain_statistics(evidence.runs, evidence.layouts, alone)
    if statistics is not None:
        return wrong(evidence, statistics, (), notes, "the statistics are not those of one device")
    if _limited(evidence):
        notes = [*notes, HIDDEN]
    return Diagnosis(
        True, None, notes=tuple(notes), reported=explain_loss(evidence),
        tolerance=evidence.tolerance, summary=summary(evidence, "correct"),
    )  # fmt: skip


def _ranked(evidence: Evidence) -> list[Mistake]:
    """The rows that explain the weights, the best one first; of equal ones the simpler."""
    errors = [
        (evidence.error(lambda place, row=row: evidence.predicted(row, place)), i)  # type: ignore[misc]
        for i, row in enumerate(evidence.rows)
    ]
    near = [(error, i) for error, i in errors if error <= evidence.tolerance]
    best = min(near, default=(0.0, 0))[0]
    alike = [i for error, i in near if error <= best + 0.1 * evidence.tolerance]
    return [evidence.rows[i] for i in alike]


def _scaled(evidence: Evidence) -> Mistake | None:
    """One factor on all examples of a layout, or a row with a factor: what fits better."""
    whole, spread = _constant(evidence)
    row, error = explain_with_factor(evidence)
    if whole is not None and whole.name == UNNAMED:
        return row or whole
    return (
        row
        if whole is None or (row is not None and 3 * error < spread > evidence.tolerance)
        else whole
    )


def _constant(evidence: Evidence) -> tuple[Mistake | None, float]:
    """One factor on all examples for each layout, and how far the examples are from it."""
    factors, spread = [], 0.0
    for place, fit in enumerate(evidence.fits):
        ratio = fit.weights / evidence.right(place)
        factors.append(float(ratio.mean()))
        spread = max(spread, float(np.abs(ratio / factors[-1] - 1).max()))
    if spread > 4 * evidence.tolerance:
        return None, spread
    return explain_whole(np.array(factors), evidence.layouts, evidence.tolerance + 1e-9), spread


def wrong(
    evidence: Evidence,
    cause: Mistake | None,
    others: tuple[Mistake, ...],
    notes: list[str],
    what: str,
) -> Diagnosis:
    """The diagnosis with the layout that shows the mistake best."""
    errors = [
        float(np.abs(fit.weights - evidence.right(place)).max())
        for place, fit in enumerate(evidence.fits)
    ]
    worst = int(np.argmax(errors[1:])) + 1 if len(errors) > 1 else 0
    rows = share_rows(evidence.layouts[worst], evidence.right(worst), evidence.fits[worst].weights)
    if cause is None:
        notes = [*notes, "no row of the catalogue explains it: look at the table"]
    return Diagnosis(
        False, cause, others, rows, evidence.layouts[worst], tuple(notes), explain_loss(evidence),
        evidence.tolerance, summary(evidence, what, evidence.layouts[worst]),
    )  # fmt: skip


def summary(evidence: Evidence, what: str, worst: Layout | None = None) -> str:
    """The first line of a diagnosis."""
    where = f" ({worst})" if worst is not None else ""
    return (
        f"{what}{where}; {len(evidence.weights)} examples on {len(evidence.layouts)} layouts, "
        f"weights exact to {evidence.tolerance:.1g}"
    )


def ranked(evidence: Evidence) -> list[Mistake]:
    """As `_ranked`, with factors where no row fits alone."""
    return _ranked(evidence) or [row for row in _constant(evidence)[:1] if row is not None]
