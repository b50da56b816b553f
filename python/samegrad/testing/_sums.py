"""What explains a step whose update is a sum over examples: their weights tell it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from samegrad.testing._catalogue import CLIPPED_PARTS, CLIPPED_REPLICAS, Mistake
from samegrad.testing._diagnosis import Found
from samegrad.testing._evidence import Evidence
from samegrad.testing._layouts import Groups, StepError, of_parts, of_shares
from samegrad.testing._models import explain_own_numbers, explain_parts, explain_term
from samegrad.testing._one_device import NO_SUM
from samegrad.testing._select import EQUAL, LOOSE, UNNAMED, factors_alike
from samegrad.testing._updates import Vector

_CLEAR = 2  # times its noise: at least 3/4 of what is said is no noise then
_SURE = 15  # standard deviations
_FAR = 4  # times less is left by a mistake than by what is right
_NOT = 0.35  # times what is said: neither 0 nor 3/4, by far


class Updates:
    """What is seen of updates less that of one device, and what a mistake says of it."""

    def __init__(self, evidence: Evidence) -> None:
        one = evidence.runs[0]
        self.evidence = evidence
        self.seen = [run.sketch - one.sketch for run in evidence.runs]
        self.scales = [float(np.hypot(run.norm, one.norm)) for run in evidence.runs]
        self.gap = self.far(self.seen)
        self.singles = np.stack([single.sketch for single in evidence.singles])
        self.norms = np.array([single.norm for single in evidence.singles])
        (_, right), *said = evidence.said
        # Others are right on these layouts, of which a note tells.
        self.rows = [
            (row, own - right)
            for row, own in said
            if row is not None and np.abs(own - right).max() > EQUAL
        ]

    def far(self, apart: list[Vector]) -> float:
        """How large differences are, relative to the updates; the largest one counts."""
        sizes = [float(np.linalg.norm(own)) for own in apart]
        return max(size / scale for size, scale in zip(sizes, self.scales, strict=True))

    def right(self) -> list[str] | None:
        """Notes on a right step, or None where updates do not tell that it is right.

        Mistakes of a sampler concern a few examples, which noise may hide; a note names them then.
        A mistake of any other kind must be told from what is right.
        """
        if self.gap > min(self._usual, NO_SUM) or not self._as_given:
            return None
        hidden = [row for row, moved in self.rows if not self._is_refuted(moved)]
        if any(row.remedy != "sampler" for row in hidden):
            return None
        note = (
            f"noise in the updates (relative, {self.evidence.device.noise.level:.1g}) hides the "
            f"weights of single examples; whole updates agree to {self.gap:.1g}"
        )
        names = ", ".join(row.name for row in hidden)
        return [f"{note}, which hides as well: {names}" if hidden else note]

    def mistakes(self) -> list[Mistake]:
        """The rows that explain the updates, far better than that all is right."""
        if not self._as_given:
            return []
        left = [
            (self.far([d - own @ self.singles for d, own in zip(self.seen, moved, strict=True)]), i)
            for i, (_, moved) in enumerate(self.rows)
        ]
        best = min(left, default=(np.inf, 0))[0]
        if best > min(self._usual, NO_SUM, self.gap / _FAR):
            return []
        return [self.rows[i][0] for error, i in left if error <= _CLEAR * best]

    @property
    def _usual(self) -> float:
        """How far noise may move an update, relative."""
        noise = self.evidence.device.noise
        return float(
            noise.factor * noise.level * np.sqrt(np.count_nonzero(self.singles.any(axis=0)))
        )

    @property
    def _as_given(self) -> bool:
        """Whether one device weights the examples as the user says."""
        if not self.evidence.given:
            return True
        one = self.evidence.runs[0].sketch
        own = one - self.evidence.right(0) @ self.singles
        return bool(np.linalg.norm(own) <= self._usual * np.linalg.norm(one))

    def _is_refuted(self, moved: Vector) -> bool:
        """Whether a difference that a mistake says is not seen, on one layout at least."""
        return any(
            _is_refuted(own @ self.singles, d, self.gap * float(np.linalg.norm(own * self.norms)))
            for own, d in zip(moved, self.seen, strict=True)
        )


def _is_refuted(said: Vector, seen: Vector, noise: float) -> bool:
    """Whether a difference that a mistake says is not seen.

    Args:
        said: Times 1 of it is seen if the mistake is made, and times 0 else.
        seen: The difference of two updates.
        noise: The norm of what is noise in `said`.
    """
    size = float(np.linalg.norm(said))
    spread = float(np.linalg.norm(seen)) / np.sqrt(max(int(np.count_nonzero(said)), 1))
    if size <= _CLEAR * noise or size <= _SURE * spread:
        return False
    return abs(float(said @ seen)) <= _NOT * size**2


_ROUNDED_OFF = 1e-5  # relative; updates that are equal but for rounding in float32
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
    if not explained and (found := explain_term(evidence)) is not None:
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


def _same(evidence: Evidence, near: float = _ROUNDED_OFF) -> bool:
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


def explain_clipping(evidence: Evidence) -> Mistake | None:
    """Examples of one replica (or micro-batch) are scaled alike, to a gradient of one length."""
    for groups, mistake in ((of_shares, CLIPPED_REPLICAS), (of_parts, CLIPPED_PARTS)):
        if _to_one_length(evidence, groups):
            return mistake
    return None


def _to_one_length(evidence: Evidence, groups: Groups) -> bool:
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
