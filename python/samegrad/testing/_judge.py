"""The verdict on a step whose update is a sum over examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._batches import StepError
from samegrad.testing._catalogue import (
    CLIPPED_SCALED,
    CONSTANT_FOR_WEIGHTS,
    COPIES_DIFFER,
)
from samegrad.testing._diagnosis import Diagnosis, ShareRow, factors_of_examples, share_rows
from samegrad.testing._layouts import Layout, layout
from samegrad.testing._limits import HIDDEN, explain_clipping, is_limited, is_limited_scaled
from samegrad.testing._mistake import Mistake
from samegrad.testing._noisy import Updates
from samegrad.testing._one_device import NO_SUM
from samegrad.testing._probes import explain_own_numbers, explain_parts
from samegrad.testing._reported import explain_loss
from samegrad.testing._select import UNNAMED, Frame, factors_alike
from samegrad.testing._statistics import explain_statistics
from samegrad.testing._terms import explain_residuals
from samegrad.testing._updates import Recorded, Vector

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence

_SAME = 1e-5  # relative; updates that are equal but for rounding in float32
_BLIND = 0.5  # relative error of weights at which right and wrong look alike
_SEEN = 0.05  # of an example's share of the update, which rounding must not hide
_FIXED = (
    "one device divides by a fixed number (or by nothing): a convention; a short last batch then "
    "counts less"
)
_OTHER_WEIGHTS = (
    "all layouts agree, but one device itself does not weight the examples as given: the loss is "
    "another function of the examples"
)
_UNKNOWN = "no point of the grammar explains it: look at the table"


def judge(evidence: Evidence) -> Diagnosis | None:
    """The verdict, or None where the update of one device is no sum over examples.

    Raises:
        StepError: Noise hides the weights.
    """
    notes = _of_fixed_numbers(evidence)
    if max(run.drift for run in evidence.runs) > 1e-6:
        return wrong(evidence, (COPIES_DIFFER,), notes, "the replicas' copies differ")
    is_sum = evidence.device.is_sum
    right = evidence.error(evidence.right)
    explained = is_sum and all(evidence.explained(fit) for fit in evidence.fits)
    if _same(evidence) and (not evidence.given or right <= evidence.tolerance):
        return _right(evidence, notes)
    unclear = explained and evidence.tolerance < right <= evidence.exact
    if is_sum and (evidence.exact > _BLIND or unclear):
        updates = Updates(evidence)
        if (more := updates.right()) is not None:
            return _right(evidence, [*notes, *more])
        if near := updates.mistakes():
            return wrong(evidence, near, notes, "not the update of one device")
        if is_limited(_lengths(evidence)) and _turn(evidence) > NO_SUM:
            return None  # what looks like noise is the limit's bend
        raise _hidden(evidence)
    agree = explained and _agree(evidence)
    if (explained and right <= evidence.tolerance) or (agree and not evidence.given):
        return _right(evidence, notes)
    if not explained and (found := explain_residuals(evidence)) is not None:
        if not found:
            return _right(evidence, notes)
        return wrong(evidence, found, notes, "another term is scaled with the replicas")
    if not is_sum:
        return None
    return _unequal(evidence, notes, explained)


def _of_fixed_numbers(evidence: Evidence) -> list[str]:
    """What it means that one device divides by a fixed number."""
    if not evidence.fixed:
        return []
    if not _cautions(evidence):
        return [_FIXED]
    least, most = float(evidence.weights.min()), float(evidence.weights.max())
    times = f", by itself up to {most / least:.4g} times" if least > 0 else ""
    return [
        f"{_FIXED}, as does one of few tokens: an example here{times} (weights from {least:.4g} to "
        f"{most:.4g})"
    ]


def _cautions(evidence: Evidence) -> tuple[Mistake, ...]:
    """What one device does as well, where the weights that the user gave say otherwise."""
    differ = evidence.given and float(np.ptp(evidence.weights)) > 0
    found = [CONSTANT_FOR_WEIGHTS] if evidence.fixed and differ else []
    if is_limited_scaled(_lengths(evidence)):
        found.append(CLIPPED_SCALED)
    return tuple(found)


def _unequal(evidence: Evidence, notes: list[str], explained: bool) -> Diagnosis | None:
    """The verdict where updates are not those of one device, and no term is the cause."""
    what = "not the update of one device"
    near = evidence.bench.named()
    if near and explained:
        return wrong(evidence, near, notes, what)
    if is_limited(_lengths(evidence)):
        return None
    if evidence.given and (_same(evidence) or (explained and _agree(evidence))):
        return _right(evidence, [*notes, _OTHER_WEIGHTS])
    if not evidence.given and _same(evidence, 6 * _rounding(evidence)):
        return _right(evidence, notes)
    if evidence.exact > evidence.tolerance:  # unknown mistakes look like noise then
        raise _hidden(evidence)
    if not explained and (part := explain_parts(evidence)):
        # On the second of two replicas a part that is missing is as free as a number of its own.
        other = explain_own_numbers(evidence) if max(evidence.settings.replicas) == 2 else None
        causes = (part,) if other is None else (part, other)
        return wrong(evidence, causes, notes, "a part of the update is scaled by itself")
    if near:
        return wrong(evidence, near, notes, what)
    if not explained and (own := explain_own_numbers(evidence)):
        return wrong(evidence, (own,), notes, "an example's part depends on who has it")
    if (clipped := explain_clipping(evidence)) is not None:
        return wrong(evidence, (clipped,), notes, what)
    if found := _of_the_grammar(evidence):
        return wrong(evidence, found, notes, what)
    return wrong(evidence, (), notes, what) if evidence.additive else None


def _of_the_grammar(evidence: Evidence) -> list[Mistake]:
    """Points without a name, one factor for all examples, or one device that errs as well."""
    found = evidence.bench.explained()
    if found:
        return found
    factors = np.array(
        [float((fit.weights / evidence.right(p)).mean()) for p, fit in enumerate(evidence.fits)]
    )
    errors = [
        float(np.abs(fit.weights / f - evidence.right(p)).max() / np.abs(evidence.right(p)).max())
        for p, (fit, f) in enumerate(zip(evidence.fits, factors, strict=True))
    ]
    if max(errors) <= 4 * evidence.tolerance:
        return factors_alike(evidence, factors, evidence.tolerance + 1e-9)
    if evidence.uneven and not evidence.given:
        plain = replace(evidence, weights=np.ones_like(evidence.weights), fixed=False)
        return plain.bench.explained()
    return []


def _hidden(evidence: Evidence) -> StepError:
    return StepError(
        f"[step] noise in the updates (relative, {evidence.device.noise.level:.1g}) hides the "
        f"weights: they are exact to {evidence.exact:.1g} only; use more parameters, examples "
        "that differ more, a smaller constant term, or float64."
    )


def _lengths(evidence: Evidence) -> list[Vector]:
    return [run.lengths for run in (*evidence.singles, evidence.runs[0])]


def _turn(evidence: Evidence) -> float:
    """How far the directions of single examples' updates are apart."""
    term = evidence.device.term
    rows = np.stack([single.sketch for single in evidence.singles])
    rows = rows if term is None else rows + term.sketch
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.linalg.norm(units - units.mean(axis=0), axis=1).max())


def _same(evidence: Evidence, near: float = _SAME) -> bool:
    """Whether all updates are that of one device, in which the examples must show."""
    one = evidence.runs[0].sketch
    limit = near * float(np.linalg.norm(one))
    rows = np.stack([single.sketch for single in evidence.singles])
    shares = np.linalg.norm(rows - rows.mean(axis=0), axis=1) * np.abs(evidence.right(0))
    if evidence.device.is_sum and limit > _SEEN * float(np.median(shares)):
        return False
    return all(np.linalg.norm(run.sketch - one) <= limit for run in evidence.runs)


def _agree(evidence: Evidence) -> bool:
    """Whether the weights of one device are those of all layouts."""
    one = evidence.fits[0].weights
    limit = evidence.tolerance * float(np.abs(one).max())
    return all(np.abs(fit.weights - one).max() <= limit for fit in evidence.fits)


def _rounding(evidence: Evidence) -> float:
    """How far the update of one device moves when the examples come in another order."""
    one = evidence.runs[0].sketch
    order = tuple(range(len(evidence.weights)))[::-1]
    turned = evidence.run(Layout(((order,),))).sketch
    return float(min(np.linalg.norm(turned - one) / np.linalg.norm(one), NO_SUM / 4))


def _right(evidence: Evidence, notes: list[str]) -> Diagnosis:
    def alone(examples: Sequence[int]) -> Recorded:
        return evidence.run(Layout(((tuple(examples),),)))

    statistics = explain_statistics(evidence.runs, evidence.layouts, alone)
    if statistics is not None:
        what = "the statistics are not those of one device"
        return wrong(evidence, (statistics,), notes, what)
    if is_limited(_lengths(evidence)):
        notes = [*notes, HIDDEN]
    if alike := _alike(evidence):
        notes = [*notes, alike]
    report = explain_loss(evidence)
    return Diagnosis(
        True, None, notes=tuple(notes), reported=report and report.words,
        reported_cause=report and report.cause, tolerance=evidence.tolerance,
        summary=summary(evidence, "correct"), cautions=_cautions(evidence),
    )  # fmt: skip


def _alike(evidence: Evidence) -> str | None:
    """Rows that give the right weights on all layouts tried, and how wrong they can be."""
    places = range(len(evidence.layouts))
    rows = [
        row
        for row in evidence.rows
        if all(np.allclose(evidence.predicted(row, p), evidence.right(p)) for p in places)
    ]
    if not rows:
        return None
    names = ", ".join(row.name for row in rows)
    item = max(evidence.layouts, key=lambda item: (item.micro_batches == 1, item.replicas))
    size = max(item.sizes)
    short = layout([size] * (item.replicas - 1) + [1], 1)
    frame = Frame([short], np.ones(len(short.examples)), evidence.fixed)
    worst = max(
        float(np.abs(frame.predicted(row, 0) / frame.right(0)).max()) for row in rows
    )  # fmt: skip
    told = "right while all shares are equal; " if evidence.settings.even else ""
    wrong_by = f"; if it is one, an example counts up to {worst:.3g} times in {short}"
    return f"{told}these splits cannot tell it from: {names}{wrong_by if worst > 1 else ''}"


def wrong(evidence: Evidence, causes: Sequence[Mistake], notes: list[str], what: str) -> Diagnosis:
    """The diagnosis with the layout that shows the mistake best; likely causes come first."""
    worst = _worst(evidence)
    notes = list(notes)
    more = factors_of_examples(
        evidence.layouts[worst], evidence.right(worst), evidence.fits[worst].weights
    )
    if more and (not causes or causes[0].point is not None):
        notes.append(more)
    if not causes:
        notes.append(_UNKNOWN)
    report = explain_loss(evidence)
    return Diagnosis(
        False, next(iter(causes), None), tuple(causes[1:]), _rows(evidence, worst),
        evidence.layouts[worst], tuple(notes), report and report.words, evidence.tolerance,
        summary(evidence, what, evidence.layouts[worst]), _cautions(evidence),
        report and report.cause,
    )  # fmt: skip


def _rows(evidence: Evidence, place: int) -> tuple[ShareRow, ...]:
    """The table of a layout."""
    return share_rows(evidence.layouts[place], evidence.right(place), evidence.fits[place].weights)


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
    shown = {p: max(abs(row.found - row.right) for row in _rows(evidence, p)) for p in near}
    return max(near, key=lambda place: shown[place])


def summary(evidence: Evidence, what: str, worst: Layout | None = None) -> str:
    """The first line of a diagnosis."""
    where = f" ({worst})" if worst is not None else ""
    return (
        f"{what}{where}; {len(evidence.weights)} examples on {len(evidence.layouts)} layouts, "
        f"weights exact to {evidence.tolerance:.1g}"
    )


def ranked(evidence: Evidence) -> list[Mistake]:
    """Rows, or else one factor for all examples."""
    if near := evidence.bench.named():
        return near
    return [row for row in _of_the_grammar(evidence)[:1] if row.name != UNNAMED]
