"""What explains a step whose update is a sum over examples: their weights tell it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from samegrad.testing._catalogue import CLIPPED_PARTS, CLIPPED_REPLICAS, Mistake
from samegrad.testing._diagnosis import Found
from samegrad.testing._layouts import Groups, Layout, StepError, of_parts, of_shares
from samegrad.testing._measure import NO_SUM, Sums
from samegrad.testing._models import (
    COUNTS,
    explain_own_numbers,
    explain_parts,
    explain_term,
    outside,
)
from samegrad.testing._select import EQUAL, LOOSE, UNNAMED, factors_alike
from samegrad.testing._updates import Vector

_CLEAR = 2  # times its noise: at least 3/4 of what is said is no noise then
_SURE = 15  # standard deviations
_FAR = 4  # times less is left by a mistake than by what is right
_NOT = 0.35  # times what is said: neither 0 nor 3/4, by far


_ROUNDED_OFF = 1e-5  # relative; updates that are equal but for rounding in float32
_BLIND = 0.5  # relative error of weights at which right and wrong look alike
_SEEN = 0.05  # of an example's share of the update, which rounding must not hide
_OTHER_WEIGHTS = (
    "all layouts agree, but one device itself does not weight the examples as given: the loss is "
    "another function of the examples"
)
_WRONG = "not the update of one device"
_RIGHT = Found("correct", right=True)


def explain_sum(evidence: Sums) -> Found | None:
    """What is found, or None where the update of one device is no sum over examples.

    Raises:
        StepError: Noise hides the weights.
    """
    is_sum = evidence.is_sum
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
    # A bend of the loss leaves nothing over here; a term that one device miscounts does.
    may_hold = is_sum or evidence.fits[0].unexplained > NO_SUM
    if may_hold and not explained and (found := explain_term(evidence)) is not None:
        what = "another term is scaled with the replicas"
        return Found(what, tuple(found)) if found else _RIGHT
    return _unequal(evidence, explained) if is_sum else None


def _in_noise(evidence: Sums) -> Found:
    """What whole updates tell, where noise hides the weights.

    A mistake of any kind must be told from what is right. Those of a sampler concern a few
    examples, which noise may hide; a note names them then.

    Raises:
        StepError: They tell nothing.
    """
    one, (_, right), *said = evidence.runs[0], *evidence.said
    seen = np.stack([run.sketch - one.sketch for run in evidence.runs])
    scales = np.array([np.hypot(run.norm, one.norm) for run in evidence.runs])
    singles = np.stack([single.sketch for single in evidence.singles])
    # Others are right on these layouts, of which a note tells.
    rows = [(row, w - right) for row, w in said if row and np.abs(w - right).max() > EQUAL]
    noise = evidence.noise
    usual = float(noise.factor * noise.level * np.sqrt(np.count_nonzero(singles.any(axis=0))))

    def far(apart: Vector) -> float:
        return float((np.linalg.norm(apart, axis=1) / scales).max())

    gap, own = far(seen), one.sketch - evidence.right(0) @ singles
    if evidence.given and np.linalg.norm(own) > usual * np.linalg.norm(one.sketch):
        raise _hidden(evidence)  # one device does not weight the examples as the user says
    if gap <= min(usual, NO_SUM):
        rough = gap * np.array([single.norm for single in evidence.singles])
        hidden = [row for row, moved in rows if not _is_refuted(moved, singles, seen, rough)]
        few = all(row.remedy == "sampler" for row in hidden)
        if few and not _hides_a_term(seen, evidence.layouts):
            note = (
                f"noise in the updates (relative, {noise.level:.1g}) hides the weights of single "
                f"examples; whole updates agree to {gap:.1g}"
            )
            names = ", ".join(row.name for row in hidden)
            return replace(
                _RIGHT, notes=(f"{note}, which hides as well: {names}" if hidden else note,)
            )
    left = [(far(seen - moved @ singles), row) for row, moved in rows]
    best = min((error for error, _ in left), default=np.inf)
    if best > min(usual, NO_SUM, gap / _FAR):
        raise _hidden(evidence)
    return Found(_WRONG, tuple(row for error, row in left if error <= _CLEAR * best))


def _hides_a_term(updates: Vector, layouts: list[Layout]) -> bool:
    """Whether most of what updates are apart goes with a count that a term may have."""
    ones = np.ones((len(layouts), 1))
    apart, _ = outside(updates, ones)
    chance = 1 / (len(layouts) - 1)  # of the squares one column explains so much of any noise
    for count in COUNTS.values():
        often = np.array([[count(item)] for item in layouts])
        left, rank = outside(updates, np.hstack([ones, often]))
        if rank > 1 and left**2 < (1 - chance) / 2 * apart**2:
            return True
    return False


def _is_refuted(moved: Vector, singles: Vector, seen: Vector, rough: Vector) -> bool:
    """Whether differences of updates that a mistake says are not seen, on one layout at least.

    Args:
        moved: The weights of the mistake less the right ones, a row per layout.
        singles: Updates of single examples.
        seen: Differences of updates: times 1 of what is said if the mistake is made, else times 0.
        rough: The norm of the noise in each single update.
    """
    for weights, found in zip(moved, seen, strict=True):
        said, noise = weights @ singles, float(np.linalg.norm(weights * rough))
        size = float(np.linalg.norm(said))
        spread = float(np.linalg.norm(found)) / np.sqrt(max(int(np.count_nonzero(said)), 1))
        clear = size > _CLEAR * noise and size > _SURE * spread
        if clear and abs(float(said @ found)) <= _NOT * size**2:
            return True
    return False


def _unequal(evidence: Sums, explained: bool) -> Found | None:
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


def _of_the_grammar(evidence: Sums) -> list[Mistake]:
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


def ranked(evidence: Sums) -> list[Mistake]:
    """Rows, or else one factor for all examples."""
    if near := evidence.bench.named():
        return near
    return [row for row in _of_the_grammar(evidence)[:1] if row.name != UNNAMED]


def _hidden(evidence: Sums) -> StepError:
    return StepError(
        f"[step] noise in the updates (relative, {evidence.noise.level:.1g}) hides the "
        f"weights: they are exact to {evidence.exact:.1g} only; use more parameters, examples "
        "that differ more, a smaller constant term, or float64."
    )


def _same(evidence: Sums, near: float = _ROUNDED_OFF) -> bool:
    """Whether all updates are that of one device, in which the examples must show."""
    rows = np.stack([single.sketch for single in evidence.singles])
    shares = np.linalg.norm(rows - rows.mean(axis=0), axis=1) * np.abs(evidence.right(0))
    limit = near * float(np.linalg.norm(evidence.runs[0].sketch))
    if evidence.is_sum and limit > _SEEN * float(np.median(shares)):
        return False
    return evidence.gaps <= near


def _agree(evidence: Sums) -> bool:
    """Whether the weights of one device are those of all layouts."""
    one = evidence.fits[0].weights
    limit = evidence.tolerance * float(np.abs(one).max())
    return all(np.abs(fit.weights - one).max() <= limit for fit in evidence.fits)


def explain_clipping(evidence: Sums) -> Mistake | None:
    """Examples of one replica (or micro-batch) are scaled alike, to a gradient of one length."""
    for groups, mistake in ((of_shares, CLIPPED_REPLICAS), (of_parts, CLIPPED_PARTS)):
        if _to_one_length(evidence, groups):
            return mistake
    return None


def _to_one_length(evidence: Sums, groups: Groups) -> bool:
    limits, scales = [], []
    for place, fit in enumerate(evidence.fits[1:], start=1):
        right = evidence.right(place)
        for own in map(list, filter(None, groups(evidence.layouts[place]))):
            factors = fit.weights[own] / right[own]
            factor = float(factors.mean())
            if np.abs(factors - factor).max() > LOOSE * evidence.tolerance * max(1.0, abs(factor)):
                return False
            gradient = sum(right[i] * evidence.singles[i].sketch for i in own)
            scales.append(factor)
            limits.append(factor * float(np.linalg.norm(gradient)))
    near = max(1e-3, evidence.tolerance)
    clipped = [limit for limit, scale in zip(limits, scales, strict=True) if scale < 1 - near]
    if not clipped or max(scales) > 1 + near:
        return False
    return max(clipped) <= (1 + max(0.05, 2 * near)) * min(clipped)
