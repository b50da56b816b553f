"""The verdict on a step that is no sum over examples: updates are compared as a whole."""

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
from samegrad.testing._layouts import (
    Layout,
    StepError,
    of_parts,
    of_shares,
)
from samegrad.testing._measure import NO_SUM, Runs
from samegrad.testing._models import (
    PROBED,
    explain_shared_batch,
    explain_shares_and_examples,
    simplest,
    terms,
)
from samegrad.testing._select import UNNAMED, Bench, factors_alike
from samegrad.testing._updates import Vector

_WRONG = "not the update of one device"


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
    for groups, of_limit in ((of_shares, CLIPPED_REPLICAS), (of_parts, CLIPPED_PARTS)):
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
    left = [np.linalg.norm(r.sketch - f * one) for r, f in zip(seen.runs, factors, strict=True)]
    scale = float(np.linalg.norm(one)) * max(1.0, float(np.abs(factors).max()))
    if max(left) > seen.near * scale:
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


_TERM = "besides, a term that belongs to no example is counted otherwise than the shares"
Groups = Callable[[Layout], list[tuple[int, ...]]]


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
    own = [np.stack([seen.alone(group).sketch for group in groups(item)]) for item in seen.layouts]
    updates = np.stack([run.sketch for run in seen.runs])
    limit = seen.near * float(np.linalg.norm(updates))
    for row, each in seen.frame.said:
        for fixed in (False, True) if row is None or not row.weighted else ():
            said = [
                np.array([w[list(g)].mean() * (seen.examples if fixed else len(g)) for g in gs])
                for w, gs in zip(each, map(groups, seen.layouts), strict=True)
            ]
            known = np.stack([w @ u for w, u in zip(said, own, strict=True)])
            held = np.array([w.sum() for w in said])
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
