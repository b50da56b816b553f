"""What explains a step whose update is a sum over examples: their weights tell it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from samegrad.testing._batches import StepError
from samegrad.testing._diagnosis import Found
from samegrad.testing._evidence import Evidence
from samegrad.testing._limits import explain_clipping
from samegrad.testing._mistake import Mistake
from samegrad.testing._noisy import Updates
from samegrad.testing._one_device import NO_SUM
from samegrad.testing._probes import explain_own_numbers, explain_parts
from samegrad.testing._select import LOOSE, UNNAMED, factors_alike
from samegrad.testing._terms import explain_residuals

_SAME = 1e-5  # relative; updates that are equal but for rounding in float32
_BLIND = 0.5  # relative error of weights at which right and wrong look alike
_SEEN = 0.05  # of an example's share of the update, which rounding must not hide
_OTHER_WEIGHTS = (
    "all layouts agree, but one device itself does not weight the examples as given: the loss is "
    "another function of the examples"
)
_WRONG = "not the update of one device"
_RIGHT = Found("correct", right=True)


def explain_sum(evidence: Evidence) -> Found | None:
    """What is found, or None where the update of one device is no sum over examples.

    Raises:
        StepError: Noise hides the weights.
    """
    is_sum = evidence.device.is_sum
    right = evidence.error(evidence.right)
    explained = is_sum and all(evidence.explained(fit) for fit in evidence.fits)
    if _same(evidence) and (not evidence.given or right <= evidence.tolerance):
        return _RIGHT
    unclear = explained and evidence.tolerance < right <= evidence.exact
    if is_sum and (evidence.exact > _BLIND or unclear):
        return _in_noise(evidence)
    agree = explained and _agree(evidence)
    if (explained and right <= evidence.tolerance) or (agree and not evidence.given):
        return _RIGHT
    if not explained and (found := explain_residuals(evidence)) is not None:
        what = "another term is scaled with the replicas"
        return Found(what, tuple(found)) if found else _RIGHT
    return _unequal(evidence, explained) if is_sum else None


def _in_noise(evidence: Evidence) -> Found | None:
    """What whole updates tell, where noise hides the weights."""
    updates = Updates(evidence)
    if (notes := updates.right()) is not None:
        return replace(_RIGHT, notes=tuple(notes))
    if near := updates.mistakes():
        return Found(_WRONG, tuple(near))
    if evidence.limited and _turn(evidence) > NO_SUM:  # what looks like noise is the limit's bend
        return None
    raise _hidden(evidence)


def _unequal(evidence: Evidence, explained: bool) -> Found | None:
    """What is found where updates are not those of one device, and no term is the cause."""
    near = evidence.bench.named()
    if near and explained:
        return Found(_WRONG, tuple(near))
    if evidence.limited:
        return None
    if evidence.given and (_same(evidence) or (explained and _agree(evidence))):
        return replace(_RIGHT, notes=(_OTHER_WEIGHTS,))
    if not evidence.given and _same(evidence, evidence.same):
        return _RIGHT
    if evidence.exact > evidence.tolerance:  # unknown mistakes look like noise then
        raise _hidden(evidence)
    if not explained and (part := explain_parts(evidence)):
        # On the second of two replicas a part that is missing is as free as a number of its own.
        other = explain_own_numbers(evidence) if max(evidence.settings.replicas) == 2 else None
        causes = (part,) if other is None else (part, other)
        return Found("a part of the update is scaled by itself", causes)
    if near:
        return Found(_WRONG, tuple(near))
    if not explained and (own := explain_own_numbers(evidence)):
        return Found("an example's part depends on who has it", (own,))
    if (clipped := explain_clipping(evidence)) is not None:
        return Found(_WRONG, (clipped,))
    if found := _of_the_grammar(evidence):
        return Found(_WRONG, tuple(found))
    return Found(_WRONG) if evidence.additive else None


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
    if max(errors) <= LOOSE * evidence.tolerance:
        return factors_alike(evidence, factors, evidence.tolerance)
    if evidence.uneven and not evidence.given:
        plain = replace(evidence, weights=np.ones_like(evidence.weights), fixed=False)
        return plain.bench.explained()
    return []


def ranked(evidence: Evidence) -> list[Mistake]:
    """Rows, or else one factor for all examples."""
    if near := evidence.bench.named():
        return near
    return [row for row in _of_the_grammar(evidence)[:1] if row.name != UNNAMED]


def _hidden(evidence: Evidence) -> StepError:
    return StepError(
        f"[step] noise in the updates (relative, {evidence.device.noise.level:.1g}) hides the "
        f"weights: they are exact to {evidence.exact:.1g} only; use more parameters, examples "
        "that differ more, a smaller constant term, or float64."
    )


def _turn(evidence: Evidence) -> float:
    """How far the directions of single examples' updates are apart."""
    term = evidence.device.term
    rows = np.stack([single.sketch for single in evidence.singles])
    rows = rows if term is None else rows + term.sketch
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.linalg.norm(units - units.mean(axis=0), axis=1).max())


def _same(evidence: Evidence, near: float = _SAME) -> bool:
    """Whether all updates are that of one device, in which the examples must show."""
    rows = np.stack([single.sketch for single in evidence.singles])
    shares = np.linalg.norm(rows - rows.mean(axis=0), axis=1) * np.abs(evidence.right(0))
    limit = near * float(np.linalg.norm(evidence.runs[0].sketch))
    if evidence.device.is_sum and limit > _SEEN * float(np.median(shares)):
        return False
    return evidence.gaps <= near


def _agree(evidence: Evidence) -> bool:
    """Whether the weights of one device are those of all layouts."""
    one = evidence.fits[0].weights
    limit = evidence.tolerance * float(np.abs(one).max())
    return all(np.abs(fit.weights - one).max() <= limit for fit in evidence.fits)


__all__ = ["explain_sum", "ranked"]
