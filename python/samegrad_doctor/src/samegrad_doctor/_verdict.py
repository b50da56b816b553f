"""Explanations of a step: families of hypotheses, the simplest first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from samegrad_doctor import _catalogue as rows
from samegrad_doctor import _hypotheses as unknowns
from samegrad_doctor import _of_batches as wholes
from samegrad_doctor._basis import FLOOR, NO_SUM, SAME, deviations
from samegrad_doctor._catalogue import HIDDEN, FailureMode
from samegrad_doctor._diagnosis import Found
from samegrad_doctor._hypotheses import PROBED, alone_in, explain_own_numbers
from samegrad_doctor._layouts import Groups, Layout, StepError, if_taken, of_parts
from samegrad_doctor._measure import Runs, Sums
from samegrad_doctor._select import Bench, factor_of, factors_alike, residual, simplest
from samegrad_doctor._updates import Vector

_ALIKE = 0.5  # of what is apart, which another example changes little and noise wholly
_WORST = 2  # layouts that are looked at
_BLIND = 0.5  # relative error of weights at which right and wrong look alike
_RIGHT = Found("correct", right=True)
_AS_A_WHOLE = Found("a small part that is scaled looks like noise of the examples")
WRONG = "not the update of one device"
_OTHER_WEIGHTS = (
    "all splits agree, but one device itself does not weight the examples as given: the loss is "
    "another function of the examples"
)
_TERM_IS_SCALED = "another term is scaled with the replicas"
_APART = "a part of the update is scaled by itself"
_TERM = "besides, a term that belongs to no example is counted otherwise than the shares"
_IN_A_PART = "that is so in a part of the loss, and examples are summed in the rest of it"


def explain(seen: Runs) -> Found | None:
    """Return the explanation of the first family of hypotheses that fits, or None.

    None is for updates of sums, too, that must be compared as a whole.

    Raises:
        StepError: The step keeps state, or noise hides the scaling.
    """
    families: tuple[Callable[[Any], Found | None], ...] = _OF_WHOLES
    if isinstance(seen, Sums):
        families = _OF_SUMS + (_BEHIND_A_LIMIT if seen.limited else _OF_SUMS_WITHOUT_LIMIT)
        families = families if seen.is_sum else (_of_no_sum,)
    found = next(filter(None, (family(seen) for family in families)), None)
    return None if found is _AS_A_WHOLE else found


def _right(seen: Sums) -> Found | None:
    """Return "correct" if all updates are that of one device and refute named failure modes.

    Those of a sampler concern a few examples, which noise may hide; a note names them then.

    Raises:
        StepError: Noise also hides other failure modes.
    """
    if not seen.sound:
        return None
    if part := _of_a_hidden_part(seen):
        return part
    unseen = seen.untold(nearly_right=False)
    if not unseen:
        return _RIGHT
    if any(row.remedy != "sampler" for row in unseen) or unknowns.hides_a_term(seen):
        raise _hidden(seen)
    note = (
        f"noise in the updates (relative, {seen.noise.level:.1g}) hides the weights of single "
        f"examples, and so: {', '.join(row.name for row in unseen)}"
    )
    return replace(_RIGHT, notes=(note,))


def _of_a_hidden_part(seen: Sums) -> Found | None:
    """Explain a small part that is not a sum of the examples, and so looks like noise."""
    if not _hides_a_part(seen):
        return None
    return _found(unknowns.explain_term(seen, seen.of_wholes) or [], _TERM_IS_SCALED) or _AS_A_WHOLE


def _hides_a_part(seen: Sums) -> bool:
    """Return True if differences within the noise of the examples are not noise.

    A part that is not a sum of the examples is as small as noise. Where one example is another one,
    it stays much the same; what rounding leaves is new in every number.
    """
    apart = [run.sketch - seen.one for run in seen.runs]
    sizes = [float(np.linalg.norm(own)) for own in apart]
    limit = seen.of_wholes.limit(seen.alive) * seen.fits[0].amount
    t = deviations(max(seen.alive, 2))
    least = max(_ALIKE, t / float(np.hypot(t, np.sqrt(seen.alive))))
    for place in np.argsort(sizes)[: -_WORST - 1 : -1]:
        if sizes[place] <= limit:
            return False
        other = if_taken(partial(_apart, seen, _with_another(seen.layouts[place])), None)
        if other is None:
            return False
        if apart[place] @ other > least * sizes[place] * np.linalg.norm(other):
            return True
    return False


def _apart(seen: Sums, item: Layout) -> Vector:
    """Return the difference of a layout's update from that of one device."""
    return np.asarray(seen.run(item).sketch - seen.alone(item.examples).sketch)


def _with_another(item: Layout) -> Layout:
    """The layout with an example of another part in place of the last one of the largest part."""
    largest = max(of_parts(item)[::-1], key=len)
    other = next((i for i in item.examples if i not in largest), largest[0])
    changed = {largest: (*largest[:-1], other)}
    return Layout(tuple(tuple(changed.get(part, part) for part in share) for share in item.parts))


def _of_rows(seen: Sums) -> Found | None:
    """Return the rows or points by which the examples count; they go before unknown vectors."""
    if not seen.explained:
        return None
    return _found(seen.bench.named() if seen.limited else rows_or_points(seen))


def _of_a_term(seen: Sums) -> Found | None:
    """A term is scaled with the replicas; right if one device scales it alike."""
    if (found := unknowns.explain_term(seen)) is None:
        return None
    return _found(found, _TERM_IS_SCALED) or _of_a_hidden_part(seen) or _RIGHT


def _of_directions(seen: Sums) -> Found | None:
    """Behind a limit of what was joined weights show, but for one factor on each layout."""
    own = seen.fits[0].weights
    if not seen.explained or (own <= 0).any():
        return None
    plain = seen if seen.given else replace(seen, weights=np.ones(seen.examples), fixed=False)
    unlimited = seen.sketches * (own / plain.right[0])[:, None]  # but for one factor of all
    images = [seen.basis.directions @ unlimited.T] * len(seen.layouts)
    bench = replace(seen.bench, frame=plain, images=images)
    near = () if bench.fits(plain.right, free=True) else tuple(bench.named(free=True))
    if near and any(seen.limit_powers or ()):
        near = (rows.LIMITED_OTHERWISE, *near)
    return Found(WRONG, near, (), (HIDDEN,)) if near else None


def _of_no_sum(seen: Sums) -> Found | None:
    """A term that one device has in a batch as often as in an example is the least of these."""
    return None if seen.agree and not seen.given else _of_a_term(seen)


def _of_other_weights(seen: Sums) -> Found | None:
    """One device weights the examples otherwise than the user does, and all layouts do as well."""
    return replace(_RIGHT, notes=(_OTHER_WEIGHTS,)) if seen.agree else None


def _hidden(seen: Sums) -> StepError:
    """Return an error with the remedy for noise that hides the weights."""
    return StepError(
        f"[step] noise in the updates (relative, {seen.noise.level:.1g}) hides the "
        f"weights: they are exact to {seen.detection_limit:.1g} only; use more parameters, "
        "examples that differ more, a smaller constant term, or float64."
    )


def _of_noise(seen: Sums) -> Found | None:
    """Raise StepError if noise hides the weights: unnamed failure modes look like noise."""
    if seen.detection_limit <= _BLIND:
        return None
    if part := _of_a_hidden_part(seen):
        return part
    raise _hidden(seen)


def _of_parts(seen: Sums) -> Found | None:
    """A part of the loss or of the parameters is scaled by itself."""
    if seen.explained:
        return None
    if one := unknowns.explain_parameters(seen) or wholes.explain_even_parts(seen):
        return _found([one], _APART)
    part = unknowns.explain_parts(seen)
    # On the second of two replicas a part that is missing is as free as a number of its own.
    other = explain_own_numbers(seen) if part and max(seen.settings.replicas) == 2 else None
    return _found([part, other], _APART)


def _of_own_numbers(seen: Sums) -> Found | None:
    """Rows that fit what examples span, or else what an example does depends on who has it."""
    if near := seen.bench.named():
        return _found(near)
    own = None if seen.explained else explain_own_numbers(seen)
    return _found([own], "an example's part depends on who has it")


def _of_one_length(seen: Sums) -> Found | None:
    """Shares (or micro-batches) are each scaled, and all that are have one length."""
    near = 1 + max(50 * SAME, 2 * seen.detection_limit)
    for one in alone_in(seen):
        if (clipped := _shortened(seen, one.groups)) and max(clipped) <= near * min(clipped):
            return Found(WRONG, (one.limit,))
    return None


def _shortened(seen: Sums, groups: Groups) -> list[float] | None:
    """Return the norm of each group that is scaled down, if none is scaled up."""
    scales, lengths = [], []
    for run, item, right in zip(seen.runs, seen.layouts, seen.right, strict=True):
        made = members(groups(item), seen.examples) * right @ seen.sketches
        factors = np.linalg.lstsq(made.T, run.sketch, rcond=None)[0]
        if seen.off(run, factors @ made) > 1:
            return None
        scales += factors.tolist()
        lengths += (factors * np.linalg.norm(made, axis=1)).tolist()
    near = max(SAME, seen.detection_limit)
    if max(scales) > 1 + near:
        return None
    return [own for own, scale in zip(lengths, scales, strict=True) if scale < 1 - near]


def members(groups: list[tuple[int, ...]], examples: int) -> Vector:
    """1 where a group (a row) has the example, else 0."""
    return np.array([[float(i in group) for i in range(examples)] for group in groups])


def _of_steps(seen: Sums) -> Found | None:
    """Gradients of later micro-batches are those of other parameters."""
    moved = seen.several and not seen.explained and seen.moves
    return Found(WRONG, (rows.STEPS_INSIDE,)) if moved else None


def _of_the_grammar(seen: Sums) -> Found | None:
    """Points for what examples span, or nothing that is known; a limit may scale shares."""
    if not seen.explained and (found := _found(rows_or_points(seen))):
        return found
    limits = [one.limit for one in alone_in(seen) if _shortened(seen, one.groups) is not None]
    return Found(WRONG, (), tuple(limits[:1])) if seen.additive else None


def rows_or_points(seen: Sums) -> list[FailureMode]:
    """Rows, or else points of the grammar."""
    found = seen.bench.explained()
    if not found and seen.uneven and not seen.given:  # one device may err as well
        plain = replace(seen, weights=np.ones_like(seen.weights), fixed=False)
        found = plain.bench.explained()
    return found


def _found(causes: Sequence[FailureMode | None], what: str = WRONG) -> Found | None:
    named = tuple(cause for cause in causes if cause is not None)
    return Found(what, named) if named else None


def _of_one_update(seen: Runs) -> Found | None:
    """All updates are that of one device, and splits of a few examples are right as well."""
    return (_of_few(seen) or _RIGHT) if seen.agree else None


_Explain = Callable[[Runs], FailureMode | None]


def _of_few(seen: Runs, explain: _Explain = wholes.explain_shared_batch) -> Found | None:
    """Return the explanation of splits of a few examples."""
    return _found([if_taken(lambda: explain(seen), None)]) if seen.examples >= PROBED else None


def _of_factors(seen: Runs) -> Found | None:
    """The update of one device, times a factor that depends on the layout."""
    one = seen.one
    factors = np.array([run.sketch @ one / (one @ one) for run in seen.runs])
    if any(seen.off(run, by * one) > 1 for run, by in zip(seen.runs, factors, strict=True)):
        return None
    found = factors_alike(replace(seen.frame, fixed=seen.by_constant), factors, seen.tolerance)
    if seen.limited:
        rooted = found and any(abs(power) == 0.5 for power in found[0].point.powers)
        named = () if rooted else tuple(found)
        return Found(WRONG, (*named, rows.LIMITED_OTHERWISE), (), (HIDDEN,))
    return _found(found) or _of_few(seen) or _found([factor_of(seen.layouts, factors)])


def _of_two_parts(seen: Runs) -> Found | None:
    """Two parts of the loss have a count each, and a row each."""
    if seen.limited or seen.by_place:
        return None
    return _of_few(seen, wholes.explain_two_parts) or _of_few(seen, wholes.explain_even_parts)


def _of_groups(seen: Runs) -> Found | None:
    """Shares or micro-batches make updates by themselves, which are added; or pieces are scaled."""
    for one in alone_in(seen):
        weights = _combination(seen, one.groups)
        if weights is not None:
            more = _how_weighted(seen, weights, one.groups)
        elif _with_a_term(seen, one.groups):
            more = (_TERM,)
        else:
            continue
        if seen.by_place:
            return Found(WRONG, (_of_places(seen),), (), more)
        if (powers := seen.limit_powers) and any(powers):
            return Found(WRONG, (rows.LIMITED_OTHERWISE,), (), more)
        cause = one.limit if _of_a_limit(seen) else one.statistics
        return Found(WRONG, (cause,), (), more)
    if seen.by_place:
        if _of_few(seen, wholes.explain_shares_and_examples):
            return Found(WRONG, (_of_places(seen),), (), (_IN_A_PART,))
        raise StepError(
            "[step] the update depends on the order of the examples: dropout or noise that is "
            "drawn anew for each split hides the scaling; switch it off (rate 0) to judge the "
            "loss."
        )
    return Found(WRONG, (rows.CLIPPED_SHARDS,)) if _by_pieces(seen) else None


def _of_places(seen: Runs) -> FailureMode:
    """Return the failure mode that makes the position of an example in its shard matter."""
    if seen.can_be_swapped(seen.tolerance):
        return rows.OWN_PIECES
    return rows.OWN_PAIRS if seen.paired else rows.SAME_NOISE


def _of_the_exchange(seen: Runs) -> Found:
    """Replicas exchange what depends on the batch: a row, or the exchange itself is wrong."""
    found = _of_few(seen) or _of_few(seen, wholes.explain_shares_and_examples)
    if found:
        return found
    if seen.right_when_equal:  # and no weights of examples explain the others
        return Found(WRONG, (rows.EQUAL_STATISTICS,))
    if found := _of_few(seen, wholes.explain_pairs):
        return found
    if seen.moves:
        return Found(WRONG, (rows.STEPS_INSIDE,))
    return Found(WRONG, (), (rows.NO_GRADIENT_OF_EXCHANGE,), ("no weights of shares fit",))


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
    """Return True if an entry for the shards leaves one term with a known count."""
    updates = np.stack([run.sketch for run in seen.runs])
    limit = seen.tolerance * float(np.linalg.norm(updates))
    for row, table in seen.frame.said:
        made = partial(unknowns.with_term, row=row)
        for fixed in (False, True) if row is None or not row.weighted else ():
            known, held = unknowns.of_groups(seen, seen.layouts, table, groups, fixed)
            if simplest(updates, unknowns.terms(seen.layouts, known, held, made), limit):
                return True
    return False


def _how_weighted(seen: Runs, weights: list[Vector], groups: Groups) -> tuple[str, ...]:
    """A note where the shares have other weights than their parts of the examples."""
    if not seen.limited and seen.by_constant:
        return ()  # a fixed number divides; each share counts once
    images = [members(groups(item), seen.examples) for item in seen.layouts]
    bench = Bench(seen.frame, weights, images, NO_SUM)
    if bench.fits(bench.frame.right):
        return ()
    if found := bench.explained():
        return (f"besides, the shares are weighted as in: {found[0].name}",)
    listed = ", ".join(f"{w:.4g}" for w in weights[-1])
    return (f"besides, the shares have the weights {listed} ({seen.layouts[-1]})",)


def _of_a_limit(seen: Runs) -> bool:
    """Return True if groups are clipped separately, and are not functions of their batches.

    What single examples leave of some together may be one direction: a term behind a limit.
    """
    some = if_taken(lambda: _some_of_one_device(seen), None)
    if some is not None and np.isfinite(some[0]).all():
        singles, updates = some
        rests = updates - np.linalg.lstsq(singles.T, updates.T, rcond=None)[0].T @ singles
        _, sizes, directions = np.linalg.svd(rests, full_matrices=False)
        left = sizes / np.linalg.norm(updates)
        if left[1] <= seen.tolerance:
            # Without a term the lengths tell a limit; roots and ratios of means keep the direction.
            one_length = left[0] > seen.tolerance and _have_one_length(*some, directions[:1])
            return seen.limited or one_length
    # All updates have one length where what was joined is limited.
    return seen.limited and seen.limit_powers is None


_SOME = ((0, 1), (2, 3), (0, 1, 2), (1, 2, 3, 4), (0, 1, 2, 3, 4))  # examples of one device


def _some_of_one_device(seen: Runs) -> tuple[Vector, Vector] | None:
    """Return the updates of five single examples, and of some of them together."""
    if seen.examples < 5 or seen.recorder.parameters < 16:
        return None
    every = np.stack([seen.alone(own).sketch for own in (*((i,) for i in range(5)), *_SOME)])
    return every[:5], every[5:]


def _have_one_length(singles: Vector, updates: Vector, direction: Vector) -> bool:
    """Return True if updates have one norm but for a term, in the span of examples and it.

    With |u - t| = c for all of them, |u|² is a linear function of what u has of these.
    """
    every = np.concatenate([singles, updates])
    columns = np.hstack([np.ones((len(every), 1)), every @ np.concatenate([singles, direction]).T])
    squares = (every**2).sum(axis=1)
    left, _ = residual(squares[:, None], columns)
    return left <= FLOOR * float(np.linalg.norm(squares))


def _by_pieces(seen: Runs) -> bool:
    """Return True if as many parts of the parameters as replicas are scaled separately."""
    one = seen.runs[0].samples
    large = np.abs(one) > 1e-6 * np.abs(one).max()
    ratios = [np.sort(run.samples[large] / one[large]) for run in seen.runs[1:]]
    steps = [np.diff(own) > 3 * seen.tolerance * np.abs(own).max() for own in ratios]
    pieces = [1 + int(own.sum()) for own in steps]
    fit = all(n <= item.replicas for n, item in zip(pieces, seen.layouts[1:], strict=True))
    return fit and max(pieces, default=1) > 1


_OF_SUMS = (_right, _of_rows)
_BEHIND_A_LIMIT = (_of_a_term, _of_directions)  # which hides what follows
_OF_SUMS_WITHOUT_LIMIT = (
    _of_a_term, _of_other_weights, _of_noise, _of_parts, _of_own_numbers, _of_one_length, _of_steps,
    _of_the_grammar,
)  # fmt: skip
_OF_WHOLES = (_of_one_update, _of_factors, _of_two_parts, _of_groups, _of_the_exchange)
