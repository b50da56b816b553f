"""The verdict on a step: what explains it, in the layout that shows it best, and what is noted."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from samegrad_doctor import _catalogue as rows
from samegrad_doctor._basis import NO_SUM
from samegrad_doctor._diagnosis import SHOWN, Diagnosis, Found, ReplicaWeights
from samegrad_doctor._layouts import Layout, StepFailedError, if_taken, layout, unequal_sizes
from samegrad_doctor._measure import DRIFT, Runs, Sums
from samegrad_doctor._reports import explain_loss, explain_statistics
from samegrad_doctor._select import Frame
from samegrad_doctor._situation import Situation
from samegrad_doctor._updates import Vector, check_finite
from samegrad_doctor._verdict import WRONG, explain, rows_or_points

_TOLD = 2  # rows that a note names of those that would be right as well
_JOIN = (
    "replicas without examples count in the divisor too (divide_by_initial_world_size of PyTorch)"
)
_UNTRIED = "a replica without examples was not judged: its update is not finite"
_FIXED = (
    "one device divides by a fixed number (or by nothing): a convention; a short last batch then "
    "counts less"
)
_AGREE_BUT = "all splits agree, but "
_NOT_AS_GIVEN = "the examples do not count as the given weights say"
_NOT_A_FEW = "splits of a few examples are not the update of one device"
_POWER = (
    "one device makes N^{} times the mean of N examples; what replicas make of that is compared "
    "without the power"
)
_UNKNOWN = "no point of the grammar explains it: look at the table"
_JUDGED_WHOLE = (
    "the update does not decompose into a sum over examples (batch statistics, a limit on the "
    "gradient, a loss over pairs), so that updates are compared as a whole"
)


def judge(seen: Runs) -> Diagnosis | None:
    """Return the diagnosis, or None if these runs allow none: they are not sums, or all zero.

    Raises:
        StepError: Noise hides what is to be judged.
    """
    try:
        one = seen.one
    except StepFailedError:
        return None
    if not np.isfinite(one).all() or not one.any():
        return None
    for run, item in zip(seen.runs, seen.layouts, strict=True):
        check_finite(run, item)
    if max(run.drift for run in seen.runs) > DRIFT:
        return verdict_on(seen, Found("the replicas' copies differ", (rows.COPIES_DIFFER,)))
    found = explain(seen)
    return None if found is None else verdict_on(seen, _with_statistics(seen, found))


def _with_statistics(seen: Runs, found: Found) -> Found:
    """The verdict on the statistics where the update is right; else a note beside its own."""
    statistics = if_taken(lambda: explain_statistics(seen), None)
    if statistics is None:
        return found
    if found.right:
        return replace(statistics, notes=found.notes)
    known = {row.name for row in found.causes}
    named = [row.name for row in statistics.causes if row.name not in known]
    note = f"besides, {statistics.what}" + "".join(f": {name}" for name in named)
    return replace(found, notes=(*found.notes, note))


def verdict_on(seen: Runs, found: Found) -> Diagnosis:
    """The diagnosis with the layout that shows the mistake best; likely causes come first."""
    sums = seen if isinstance(seen, Sums) else None
    notes = [*(_of_fixed_numbers(seen) if sums else [_JUDGED_WHOLE]), *found.notes]
    notes += seen.recorder.notes
    notes += [_POWER.format(seen.recorder.power)] if seen.recorder.power else []
    worst, shares = seen.layouts[-1], tuple[ReplicaWeights, ...]()
    if found.right:
        notes += [rows.HIDDEN] if seen.limited else []
        notes += [alike] if sums and (alike := _alike(sums)) else []
    elif sums and not found.beside:
        place, shares = _worst(sums)
        worst = seen.layouts[place]
        more = _factors_of_examples(worst, seen.right[place], sums.fits[place].weights)
        if more and (not found.causes or found.causes[0].point != rows.RIGHT):
            notes.append(more)
        notes += [] if found.causes else [_UNKNOWN]
    what = found.what
    if what == WRONG and seen.agree:
        what = _AGREE_BUT + (_NOT_AS_GIVEN if seen.given else _NOT_A_FEW)
    elif what == WRONG:
        what += _unless(seen, found)
    (reported, mistake), shown = explain_loss(seen) or (None, None), None if found.right else worst
    return Diagnosis(
        found.right, next(iter(found.causes), None), (*found.causes[1:], *found.candidates), shares,
        shown, tuple(notes), reported, sums.detection_limit if sums else seen.tolerance,
        _summary(seen, what, shown), _warnings(seen), mistake,
    )  # fmt: skip


def _unless(seen: Runs, found: Found) -> str:
    """Return the splits on which a wrong step is correct: equal in examples, or in weights."""
    if seen.right_when_equal:
        return ", unless all shards are equal"
    if not found.causes or found.causes[0].point == rows.RIGHT or not seen.uneven:
        return ""
    k, replicas = max((item.micro_batches, item.replicas) for item in seen.layouts)
    # Parts of 2 or 3 examples that have one weight together.
    item = layout([2 * k + k // 2 + r % 2 for r in range(replicas)], k)
    ramp = np.arange(1, 1 + len(item.examples), dtype=np.float64)
    weights = ramp / Situation(item, ramp).sums(ramp, "part")
    frame = Frame([item], weights, seen.fixed)
    equal = np.allclose(frame.design_matrix(found.causes[0].predict), frame.right)
    return ", unless all shards have equal weights (tokens)" if equal else ""


def _summary(seen: Runs, what: str, worst: Layout | None) -> str:
    """The first line of a diagnosis."""
    where = f" ({worst})" if worst is not None else ""
    how = "compared as a whole"
    if isinstance(seen, Sums):
        how = f"weights exact to {seen.detection_limit:.1g}"
    return f"{what}{where}; {seen.examples} examples in {len(seen.layouts)} splits, {how}"


def _worst(seen: Sums) -> tuple[int, tuple[ReplicaWeights, ...]]:
    """The layout that is wrong most, and its table."""
    tables = list(map(_table, seen.layouts, seen.right, [fit.weights for fit in seen.fits]))
    places = range(1, len(tables)) or [0]
    place = max(places, key=lambda p: max(abs(row.found - row.expected) for row in tables[p]))
    return place, tables[place]


def _table(item: Layout, right: Vector, found: Vector) -> tuple[ReplicaWeights, ...]:
    """Return mean weights of each per-replica batch, or of each micro-batch of one device."""
    groups = item.parts[0] if item.replicas == 1 else [sum(share, ()) for share in item.parts]
    table = []
    for number, part in enumerate(groups):
        mean = [float(values[list(part)].mean()) if part else 0.0 for values in (right, found)]
        replica, micro_batch = (number, None) if item.replicas > 1 else (0, number)
        table.append(ReplicaWeights(replica, len(part), mean[0], mean[1], micro_batch))
    return tuple(table)


def _factors_of_examples(item: Layout, right: Vector, found: Vector) -> str | None:
    """Describe the weights of single examples if they differ within a per-replica batch."""
    ratios = found / right
    shares = [ratios[list(sum(share, ()))] for share in item.parts]
    if all(np.ptp(share) <= NO_SUM * np.abs(share).max() for share in shares if share.size):
        return None
    listed = " | ".join(" ".join(f"{ratio:.3g}" for ratio in share[:8]) for share in shares[:SHOWN])
    return f"found / expected weight of each example, by replica: {listed}"


def _of_fixed_numbers(seen: Runs) -> list[str]:
    """Return notes on a fixed divisor of one device."""
    if not seen.fixed or not seen.given or not seen.uneven:
        return [_FIXED] if seen.fixed else []
    least, most = float(seen.weights.min()), float(seen.weights.max())
    return [
        f"{_FIXED}, as does one of few tokens: an example here, by itself up to {most / least:.4g} "
        f"times (weights from {least:.4g} to {most:.4g})"
    ]


def _warnings(seen: Runs) -> tuple[rows.FailureMode, ...]:
    """Return failure modes that one device shares, judged by the weights that the user gave.

    A limit of a round number by a power of two looks like one of scaled gradients: loss scales are
    powers of two; limits and learning rates are round in decimals.
    """
    differ = seen.fixed and seen.given and seen.uneven
    small = [limit for limit in seen.limits if 0 < limit < 5e-3 and not _is_round(limit)]
    scaled = any(_is_round(limit * 2.0**j) for limit in small for j in range(8, 25))
    found = ((differ, rows.CONSTANT_FOR_WEIGHTS), (scaled, rows.CLIPPED_SCALED))
    return tuple(row for holds, row in found if holds)


def _is_round(value: float) -> bool:
    """Return True for a number of one digit, or 1.5 or 2.5 times a power of ten."""
    digits = value / 10.0 ** np.floor(np.log10(value) + 1e-9)
    return bool(min(abs(digits - d) for d in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10)) < 2e-4)


def _alike(seen: Sums) -> str | None:
    """Rows that give about the right weights on all layouts tried, and how wrong they can be."""
    alike = seen.untold(nearly_right=True)
    if not alike:
        return None
    alike.sort(key=lambda row: row.point.cost)
    names, more = ", ".join(row.name for row in alike[:_TOLD]), len(alike) - _TOLD
    names += f" (and {more} more)" if more > 0 else ""
    item = max(seen.layouts, key=lambda item: (item.micro_batches == 1, item.replicas))
    short = layout([max(item.sizes)] * (item.replicas - 1) + [1])
    frame = Frame([short], np.ones(len(short.examples)), seen.fixed)
    worst = max(
        float(np.abs(frame.design_matrix(row.predict) / frame.right).max()) for row in alike
    )
    told = "correct while all shards are equal; " if seen.settings.equal_shards else ""
    wrong_by = f"; if it is one, an example counts up to {worst:.3g} times in {short}"
    return f"{told}these splits cannot tell it from: {names}{wrong_by if worst > 1 else ''}"


def judge_empty(evidence: Sums, verdict: Diagnosis, asked: bool) -> Diagnosis:
    """The verdict with one more replica that has no examples.

    Args:
        evidence: The runs so far.
        verdict: On shares that all have examples.
        asked: Whether a step that fails without examples is wrong.
    """
    several = [r for r in evidence.settings.replicas[:2] if r > 1]
    # Who divides where a replica is empty refines a mean of means.
    refined = verdict.cause is not None and verdict.cause.name == rows.MEAN_OF_MEANS.name
    if not several or not (verdict.correct or refined):
        return verdict
    sizes = [unequal_sizes(len(evidence.weights), r - 1) for r in several]
    layouts = [layout([first, 0, *others]) for first, *others in sizes]
    longer = replace(evidence, layouts=[*evidence.layouts, *layouts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means of nothing
        taken = if_taken(lambda: all(evidence.run(item) for item in layouts), False)
    if taken and verdict.correct and longer.sound:
        return verdict
    near = rows_or_points(longer) if taken else []
    if not verdict.correct and not (near and asked):
        refined = bool(near) and near[0].empty
        return replace(verdict, notes=(*verdict.notes, _JOIN)) if refined else verdict
    if near:
        what = "not the update of one device, where a replica is empty"
        return verdict_on(longer, Found(what, tuple(near)))
    if not taken and not asked:
        return replace(verdict, notes=(*verdict.notes, _UNTRIED))
    said = _summary(evidence, "an empty shard is not ignored", layouts[0])
    return replace(verdict, correct=False, cause=rows.EMPTY_SHARE, summary=said, layout=layouts[0])
