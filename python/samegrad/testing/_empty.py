"""Replicas without examples: at the end of an epoch, or where inputs are uneven."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from samegrad.testing._catalogue import EMPTY_SHARE
from samegrad.testing._diagnosis import Diagnosis, Found
from samegrad.testing._judge import summary
from samegrad.testing._judge import verdict as told
from samegrad.testing._layouts import Layout, StepError, layout, uneven_sizes
from samegrad.testing._sums import ranked
from samegrad.testing._updates import ROUNDED, Recorded, rounding_of

if TYPE_CHECKING:
    from samegrad.testing._evidence import Evidence

_MEANS = "mean of the replicas' means"  # is refined by who divides where a replica is empty
_JOIN = "replicas without examples count in the divisor too: join with the initial world size"
_NOISE_HIDES = "a replica without examples was not judged: noise hides what it changes"
_UNTRIED = "a replica without examples was not judged: the step gives no number for it"


def judge_empty(evidence: Evidence, verdict: Diagnosis, asked: bool) -> Diagnosis:
    """The verdict with one more replica that has no examples.

    Args:
        evidence: The runs so far.
        verdict: On shares that all have examples.
        asked: Whether a step that fails without examples is wrong.
    """
    if not verdict.correct and (verdict.cause is None or verdict.cause.name != _MEANS):
        return verdict
    if verdict.correct and evidence.exact > evidence.tolerance:
        return replace(verdict, notes=(*verdict.notes, _NOISE_HIDES))  # by noise
    count = len(evidence.weights)
    layouts = [
        layout([*uneven_sizes(count, r - 1)[:-1], 0, uneven_sizes(count, r - 1)[-1]])
        if r > 2
        else layout([count, 0])
        for r in evidence.settings.replicas[:2]
        if r > 1
    ]
    if not layouts:  # one replica only
        return verdict
    runs = [_tried(evidence, item) for item in layouts]
    kept = [(run, item) for run, item in zip(runs, layouts, strict=True) if run is not None]
    if len(kept) < len(layouts):
        if asked and verdict.correct:
            return _fails(evidence, verdict, layouts[0])
        return replace(verdict, notes=(*verdict.notes, _UNTRIED)) if verdict.correct else verdict
    longer = replace(
        evidence,
        layouts=[*evidence.layouts, *(item for _, item in kept)],
        fits=[*evidence.fits, *(evidence.basis.fit(run) for run, _ in kept)],
    )
    if verdict.correct and (
        max(evidence.gap(run) for run, _ in kept) <= _usually_apart(evidence)
        or longer.error(longer.right) <= evidence.tolerance
    ):
        return verdict
    near = ranked(longer)
    if near and not verdict.correct and not asked:
        return replace(verdict, notes=(*verdict.notes, _JOIN)) if near[0].empty else verdict
    if near:
        what = "not the update of one device, where a replica is empty"
        return told(longer, Found(what, tuple(near)))
    return _fails(evidence, verdict, layouts[0]) if verdict.correct else verdict


def _usually_apart(evidence: Evidence) -> float:
    """How far right updates may be from that of one device, relative: by rounding and by noise."""
    rounded = ROUNDED * rounding_of(evidence.runs[0].samples)
    noise = min(evidence.device.noise.residual(evidence.basis, evidence.fits[0]), 0.1)
    return max(1e-3, 3 * evidence.gaps, rounded, noise)


def _tried(evidence: Evidence, item: Layout) -> Recorded | None:
    """None if the step fails or gives no number."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # means of nothing
            run = evidence.run(item)
    except StepError:  # whatever a step does about no examples
        return None
    return run if np.isfinite(run.sketch).all() else None


def _fails(evidence: Evidence, verdict: Diagnosis, item: Layout) -> Diagnosis:
    return Diagnosis(
        False, EMPTY_SHARE, notes=verdict.notes, tolerance=evidence.tolerance,
        cautions=verdict.cautions,
        summary=summary(evidence, "an empty share is not ignored", item), layout=item,
    )  # fmt: skip
