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
from samegrad.testing._layouts import Groups, StepError, of_parts, of_shares
from samegrad.testing._measure import NO_SUM, Runs, Sums
from samegrad.testing._select import UNNAMED, Bench, factors_alike
from samegrad.testing._updates import Vector

_BLIND = 0.5  # relative error of weights at which right and wrong look alike
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
    if not evidence.is_sum:  # a bend of the loss leaves little over; a term that is miscounted much
        agree = evidence.agree and not evidence.given
        may_hold = not agree and evidence.fits[0].unexplained > NO_SUM
        return _of_a_term(evidence) if may_hold else None
    if evidence.agree and (not evidence.given or _weighs_as_given(evidence)):
        return _not_hidden(evidence)
    near = evidence.bench.named()
    if near and evidence.explained:
        return Found(_WRONG, tuple(near))
    if (found := _of_a_term(evidence)) is not None:
        return found
    if evidence.limited:
        return None
    if evidence.agree:
        return replace(_RIGHT, notes=(_OTHER_WEIGHTS,))
    if evidence.exact > _BLIND:  # unknown mistakes look like noise then
        raise _hidden(evidence)
    return _unknown(evidence, near)


def _weighs_as_given(evidence: Sums) -> bool:
    """Whether one device weights the examples as the user says."""
    return evidence.off(evidence.runs[0], evidence.made(evidence.said[0][1])[0]) <= 1


def _not_hidden(evidence: Sums) -> Found:
    """Right, if updates tell that from the mistakes that have a name.

    Those of a sampler concern a few examples, which noise may hide; a note names them then.

    Raises:
        StepError: They do not tell.
    """
    hidden = [row for row, table in evidence.said if row and evidence.hides(table)]
    if not hidden:
        return _RIGHT
    if any(row.remedy != "sampler" for row in hidden) or _hides_a_term(evidence):
        raise _hidden(evidence)
    names = ", ".join(row.name for row in hidden)
    note = (
        f"noise in the updates (relative, {evidence.noise.level:.1g}) hides the weights of single "
        f"examples, and so: {names}"
    )
    return replace(_RIGHT, notes=(note,))


def _hides_a_term(evidence: Sums) -> bool:
    """Whether most of what updates are apart goes with a count that a term may have."""
    layouts = evidence.layouts
    ones = np.ones((len(layouts), 1))
    updates = np.stack([run.sketch for run in evidence.runs])
    apart, _ = outside(updates, ones)
    chance = 1 / (len(layouts) - 1)  # of the squares one column explains so much of any noise
    for count in COUNTS.values():
        left, rank = outside(updates, np.hstack([ones, [[count(item)] for item in layouts]]))
        if rank > 1 and left**2 < (1 - chance) / 2 * apart**2:
            return True
    return False


def _of_a_term(evidence: Sums) -> Found | None:
    """A term that is scaled with the replicas; right if one device scales it alike."""
    if (found := explain_term(evidence)) is None:
        return None
    what = "another term is scaled with the replicas"
    return Found(what, tuple(found)) if found else _RIGHT


def _unknown(evidence: Sums, near: list[Mistake]) -> Found | None:
    """What is found of a sum that neither rows nor terms explain."""
    explained = evidence.explained
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
    right = evidence.said[0][1]
    for run, item, table in zip(evidence.runs, evidence.layouts, right, strict=True):
        own = np.zeros((len(groups(item)), evidence.examples))
        for row, group in zip(own, groups(item), strict=True):
            row[list(group)] = table[list(group)]
        made = evidence.made(own)
        factors = np.linalg.lstsq(made.T, run.sketch, rcond=None)[0]
        if evidence.off(run, factors @ made) > 1:
            return False
        scales += factors.tolist()
        limits += (factors * np.linalg.norm(made, axis=1)).tolist()
    near = max(1e-3, evidence.exact)
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


def explain_whole(seen: Runs) -> Found:
    """What is found of a step that is no sum over examples.

    Raises:
        StepError: It keeps state, or noise that it draws hides the scaling.
    """
    if seen.agree:
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
    if _far(seen, np.outer(factors, one)) > seen.tolerance:
        return None
    found = factors_alike(replace(seen.frame, fixed=seen.by_constant), factors, seen.tolerance)
    powers = [row.point.powers for row in found if row.point is not None]
    if seen.limited and (not powers or any(abs(p) == 0.5 for p in powers[0])):
        return Found(_WRONG, (LIMITED_OTHERWISE,), (), (HIDDEN,))
    if found[0].name != UNNAMED:
        limit = (LIMITED_OTHERWISE,) if seen.limited else ()
        return Found(_WRONG, (*found, *limit), (), (HIDDEN,) if limit else ())
    # Factors of 1 are noise that is a little larger than it seemed.
    if (row := _of_few(seen)) is not None:
        return Found(_WRONG, (row,))
    if np.abs(factors - 1).max() <= seen.tolerance:
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
        seen.off(run, seen.runs[0].sketch) <= 1
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
    return found if left <= seen.tolerance * np.sqrt(len(seen.layouts)) else None


def _with_a_term(seen: Runs, groups: Groups) -> bool:
    """Whether a row for the shares leaves one term over in all layouts, as a count says."""
    updates = np.stack([run.sketch for run in seen.runs])
    limit = seen.tolerance * float(np.linalg.norm(updates))
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
    return bool(strengths[1] <= seen.tolerance < strengths[0])


def _by_pieces(seen: Runs) -> bool:
    """Whether as many pieces of the parameters as there are replicas are scaled each by itself."""
    one = seen.runs[0].samples
    large = np.abs(one) > 1e-6 * np.abs(one).max()
    several = False
    for item, run in zip(seen.layouts[1:], seen.runs[1:], strict=True):
        ratios = np.sort(run.samples[large] / one[large])
        pieces = 1 + int((np.diff(ratios) > 3 * seen.tolerance * np.abs(ratios).max()).sum())
        if pieces > max(item.replicas, 1):
            return False
        several = several or pieces > 1
    return several
