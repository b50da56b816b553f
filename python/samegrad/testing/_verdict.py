"""What explains a step, whether its update is a sum over examples or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from samegrad.testing._catalogue import (
    CLIPPED_PARTS,
    CLIPPED_REPLICAS,
    CLIPPED_SHARDS,
    EQUAL_STATISTICS,
    HIDDEN,
    LIMITED_OTHERWISE,
    LOCAL_STATISTICS,
    NO_GRADIENT_OF_EXCHANGE,
    SAME_NOISE,
    Mistake,
)
from samegrad.testing._diagnosis import Found
from samegrad.testing._hypotheses import (
    COUNTS,
    PROBED,
    explain_own_numbers,
    explain_parts,
    explain_shared_batch,
    explain_shares_and_examples,
    explain_term,
    of_groups,
    outside,
    simplest,
    terms,
)
from samegrad.testing._layouts import Groups, Layout, StepError, of_parts, of_shares
from samegrad.testing._measure import NO_SUM, Runs, Sums
from samegrad.testing._select import EQUAL, LOOSE, UNNAMED, Bench, factors_alike
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
_TERM = "besides, a term that belongs to no example is counted otherwise than the shares"
# Who makes updates by itself, and what it is called where each of them is limited.
_LIMITS: tuple[tuple[Groups, Mistake], ...] = (
    (of_shares, CLIPPED_REPLICAS), (of_parts, CLIPPED_PARTS),
)  # fmt: skip


def explain_sum(evidence: Sums) -> Found | None:
    """What is found, or None where the update of one device is no sum over examples.

    Raises:
        StepError: Noise hides the weights.
    """
    is_sum = evidence.is_sum
    wrong = evidence.wrong
    explained = is_sum and all(evidence.explained(fit) for fit in evidence.fits)
    if _same(evidence) and (not evidence.given or wrong <= evidence.tolerance):
        return _RIGHT
    unclear = explained and evidence.tolerance < wrong <= evidence.exact
    if is_sum and (evidence.exact > _BLIND or unclear):
        return _in_noise(evidence)
    agree = explained and _agree(evidence)
    if (explained and wrong <= evidence.tolerance) or (agree and not evidence.given):
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
    singles = evidence.sketches
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
    if len(layouts) < 2:  # no two updates to be apart
        return False
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
    for groups, mistake in _LIMITS:
        if _to_one_length(evidence, groups):
            return Found(_WRONG, (mistake,))
    if found := _of_the_grammar(evidence):
        return Found(_WRONG, tuple(found))
    return Found(_WRONG) if evidence.additive else None


def _to_one_length(evidence: Sums, groups: Groups) -> bool:
    """Whether examples of a share (or micro-batch) are scaled alike, to one length."""
    limits, scales = [], []
    for place, fit in enumerate(evidence.fits[1:], start=1):
        right = evidence.right(place)
        for own in map(list, filter(None, groups(evidence.layouts[place]))):
            factors = fit.weights[own] / right[own]
            factor = float(factors.mean())
            if np.abs(factors - factor).max() > LOOSE * evidence.tolerance * max(1.0, abs(factor)):
                return False
            scales.append(factor)
            limits.append(factor * float(np.linalg.norm(right[own] @ evidence.sketches[own])))
    near = max(1e-3, evidence.tolerance)
    clipped = [limit for limit, scale in zip(limits, scales, strict=True) if scale < 1 - near]
    if not clipped or max(scales) > 1 + near:
        return False
    return max(clipped) <= (1 + max(0.05, 2 * near)) * min(clipped)


def _of_the_grammar(evidence: Sums) -> list[Mistake]:
    """Points without a name, one factor for all examples, or one device that errs as well."""
    found = evidence.bench.explained()
    if found:
        return found
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
    rows = evidence.sketches
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


def explain_whole(seen: Runs) -> Found:
    """What is found of a step that is no sum over examples.

    Raises:
        StepError: It keeps state, or noise that it draws hides the scaling.
    """
    if seen.gaps <= seen.same:
        row = _of_few(seen)
        return Found("correct", right=True) if row is None else Found(_WRONG, (row,))
    return _of_factors(seen) or _of_groups(seen) or _of_the_exchange(seen)


def _of_groups(seen: Runs) -> Found | None:
    """Shares or micro-batches make updates by themselves, which are added; or pieces are scaled."""
    for groups, of_limit in _LIMITS:
        weights = _combination(seen, groups)
        if weights is not None:
            more = _how_weighted(seen, weights, groups)
        elif _with_a_term(seen, groups):
            more = (_TERM,)
        else:
            continue
        if seen.by_place:
            return Found(_WRONG, (SAME_NOISE,), (), more)
        limits = seen.limited or _limits_sums(seen)
        return Found(_WRONG, (of_limit if limits else LOCAL_STATISTICS,), (), more)
    if seen.by_place:
        raise StepError(
            "[step] the update depends on the order of the examples: dropout or noise that is "
            "drawn anew for each layout hides the scaling; switch it off (rate 0) to judge the "
            "loss."
        )
    return Found(_WRONG, (CLIPPED_SHARDS,)) if _by_pieces(seen) else None


def _of_factors(seen: Runs) -> Found | None:
    """The update of one device, times a factor that depends on the layout."""
    one = seen.runs[0].sketch
    factors = np.array([run.sketch @ one / (one @ one) for run in seen.runs])
    if _far(seen, np.outer(factors, one)) > seen.near:
        return None
    found = factors_alike(replace(seen.frame, fixed=seen.by_constant), factors, seen.near)
    powers = [row.point.powers for row in found if row.point is not None]
    if seen.limited and (not powers or any(abs(p) == 0.5 for p in powers[0])):
        return Found(_WRONG, (LIMITED_OTHERWISE,), (), (HIDDEN,))
    if found[0].name != UNNAMED:
        limit = (LIMITED_OTHERWISE,) if seen.limited else ()
        return Found(_WRONG, (*found, *limit), (), (HIDDEN,) if limit else ())
    # Factors of 1 are noise that is a little larger than it seemed.
    if (row := _of_few(seen)) is not None:
        return Found(_WRONG, (row,))
    if np.abs(factors - 1).max() <= seen.near:
        return Found("correct", right=True)
    return Found(_WRONG, tuple(found))


def _far(seen: Runs, made: Vector) -> float:
    """How far updates are from what makes them (a row per layout), relative to the largest one."""
    scale = max(run.norm for run in seen.runs)
    return max(
        float(np.linalg.norm(run.sketch - own)) / scale
        for run, own in zip(seen.runs, made, strict=True)
    )


def _of_few(
    seen: Runs, explain: Callable[[Runs], Mistake | None] = explain_shared_batch
) -> Mistake | None:
    """What explains splits of a few examples, which cannot be even."""
    if seen.settings.even or seen.examples < PROBED:
        return None
    try:
        return explain(seen)
    except StepError:  # a step may refuse small shares, which must not hide what is known
        return None


def _of_the_exchange(seen: Runs) -> Found:
    """Replicas exchange what depends on the batch: a row, or the exchange itself is wrong."""
    for explain in (explain_shared_batch, explain_shares_and_examples):
        if (found := _of_few(seen, explain)) is not None:
            return Found(_WRONG, (found,))
    even = [
        seen.gap(run) <= seen.same
        for run, item in zip(seen.runs[1:], seen.layouts[1:], strict=True)
        if len({len(part) for share in item.parts for part in share}) == 1
    ]
    if even and all(even):
        note = "even shares are right, uneven ones are not"
        return Found(_WRONG, (), (EQUAL_STATISTICS,), (note,))
    return Found(_WRONG, (), (NO_GRADIENT_OF_EXCHANGE,), ("no weights of shares fit",))


def _combination(seen: Runs, groups: Groups) -> list[Vector] | None:
    """The weights of the groups' own updates in each layout, if they explain all of them.

    A term that belongs to no example may be left over: one direction in all layouts.
    """
    found, rests = [], []
    for item, run in zip(seen.layouts, seen.runs, strict=True):
        own = np.stack([seen.alone(group).sketch for group in groups(item)])
        if not np.isfinite(own).all():
            return None
        weights, *_ = np.linalg.lstsq(own.T, run.sketch, rcond=None)
        rests.append((run.sketch - weights @ own) / np.linalg.norm(run.sketch))
        found.append(np.asarray(weights, dtype=np.float64))
    strengths = np.linalg.svd(np.stack(rests), compute_uv=False)
    left = strengths[1] if len(strengths) > 3 else strengths[0]
    return found if left <= seen.near * np.sqrt(len(seen.layouts)) else None


def _with_a_term(seen: Runs, groups: Groups) -> bool:
    """Whether a row for the shares leaves one term over in all layouts, as a count says."""
    updates = np.stack([run.sketch for run in seen.runs])
    limit = seen.near * float(np.linalg.norm(updates))
    for row, table in seen.frame.said:
        for fixed in (False, True) if row is None or not row.weighted else ():
            known, held = of_groups(seen, seen.layouts, table, groups, fixed)
            if simplest(updates, terms(seen.layouts, row, known, held), limit):
                return True
    return False


def _how_weighted(seen: Runs, weights: list[Vector], groups: Groups) -> tuple[str, ...]:
    """A note where the shares have other weights than their parts of the examples."""
    if not seen.limited and seen.by_constant:
        return ()  # a fixed number divides; each share counts once
    images = []
    for item in seen.layouts:
        image = np.zeros((len(groups(item)), seen.examples))
        for row, group in zip(image, groups(item), strict=True):
            row[list(group)] = 1.0
        images.append(image)
    bench = Bench(seen.frame, weights, images, NO_SUM)
    if bench.error(bench.frame.said[0][1]) <= bench.tolerance:
        return ()
    if rows := bench.explained():
        return (f"besides, the shares are weighted as in: {rows[0].name}",)
    listed = ", ".join(f"{w:.4g}" for w in weights[-1])
    return (f"besides, the shares have the weights {listed} ({seen.layouts[-1]})",)


def _limits_sums(seen: Runs) -> bool:
    """Whether a few examples together go where they go one by one, and only not as far.

    One direction may be left over: a term that is added behind the limit.
    """
    if seen.examples < 5 or seen.recorder.parameters < 16:
        return False
    groups = [(0, 1), (2, 3), (0, 1, 2), (1, 2, 3, 4), (0, 1, 2, 3, 4)]
    try:
        singles = np.stack([seen.alone([i]).sketch for i in range(5)])
    except StepError:  # a step that refuses a single example is no sum
        return False
    if not np.isfinite(singles).all():
        return False
    updates = np.stack([seen.alone(group).sketch for group in groups])
    rests = updates - np.linalg.lstsq(singles.T, updates.T, rcond=None)[0].T @ singles
    strengths = np.linalg.svd(rests, compute_uv=False) / np.linalg.norm(updates)
    # Without a term the lengths tell a limit; roots and ratios of means keep the direction too.
    return bool(strengths[1] <= seen.near < strengths[0])


def _by_pieces(seen: Runs) -> bool:
    """Whether as many pieces of the parameters as there are replicas are scaled each by itself."""
    one = seen.runs[0].samples
    large = np.abs(one) > 1e-6 * np.abs(one).max()
    several = False
    for item, run in zip(seen.layouts[1:], seen.runs[1:], strict=True):
        ratios = np.sort(run.samples[large] / one[large])
        pieces = 1 + int((np.diff(ratios) > 3 * seen.near * np.abs(ratios).max()).sum())
        if pieces > max(item.replicas, 1):
            return False
        several = several or pieces > 1
    return several
