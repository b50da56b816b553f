"""The mistakes of what a step reports besides its update: the loss, and the statistics.

Statistics are moving means, counts, and moments of optimizers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from samegrad_doctor import _catalogue as rows
from samegrad_doctor._basis import BEND, EXACT, TELLING
from samegrad_doctor._catalogue import FailureMode
from samegrad_doctor._diagnosis import Found
from samegrad_doctor._hypotheses import alike_in, alone_in, of_groups, terms, with_term
from samegrad_doctor._layouts import Groups, Layout, of_parts, of_shares, of_windows
from samegrad_doctor._measure import Runs, Sums
from samegrad_doctor._select import Bench, Frame, Hypothesis, factors_alike, residual, simplest
from samegrad_doctor._situation import Mask
from samegrad_doctor._updates import Recorded, Vector

_WHAT = "the statistics are not those of one device"
_TIMES = 6  # that the search for a momentum goes on in a sixteenth of the range


def explain_loss(seen: Runs) -> tuple[str, FailureMode | None] | None:
    """Return the issue of the reported loss in words, and the mistake that explains it.

    Right is what one device reports for the whole batch, on which the layouts must agree; whether
    it is a mean or a sum is seen from the losses of single examples, not from the update.
    """
    if any(run.loss is None for run in seen.runs):
        return None
    found = np.array([run.loss for run in seen.runs], dtype=np.float64)
    right, tolerance, frame = float(found[0]), EXACT, seen.frame
    if _difference(seen, found, right, tolerance) is None:
        return None
    losses = [run.loss for run in seen.singles] if isinstance(seen, Sums) else [None]
    each = None if None in losses else np.array(losses, dtype=np.float64)
    if each is not None:  # else one device's loss against the others
        tolerance = max(min(seen.tolerance, BEND), EXACT)
        limit = tolerance * max(abs(right), 1e-300)
        frame = replace(seen, fixed=bool(abs(right - each.sum()) <= limit))
        right = float(frame.right[0] @ each)
        if abs(right - found[0]) > limit:
            # Another function of the losses: agreement is all that is asked, but for a factor.
            each, right = each * (found[0] / right if right else 1.0), float(found[0])
    if (what := _difference(seen, found, right, tolerance)) is None:
        return None
    row = None if each is None else _of_examples(frame, found, each, tolerance)
    row = row or _of_groups(seen, found)
    if row is None and found[0]:
        row = next(iter(factors_alike(frame, found / found[0], tolerance)), None)
    if row is None:
        return what, None
    return f"{what}: {row.name}{f' ({row.report})' if row.report else ''}", row


def _of_examples(frame: Frame, found: Vector, each: Vector, tolerance: float) -> FailureMode | None:
    """The examples' losses, as often as a row or a point says, or a term beside them."""
    bench = Bench(frame, [np.array([x]) for x in found], [each[None, :]] * len(found), tolerance)
    if named := bench.named():
        return named[0]
    limit = tolerance * max(abs(float(found[0])), 1e-300)
    for row, said in frame.said:
        # Among several replicas it must differ: one number for all of them fits anything.
        made = partial(with_term, row=row)
        one = terms(frame.layouts, (said @ each)[:, None], said.sum(axis=1), made, start=1)
        modes = (near.made() for near in simplest(found[:, None], one, limit))
        if (of_a_term := next(filter(None, modes), None)) is not None:
            return of_a_term
    # One number for each layout is little to tell many points by.
    return next(iter(replace(bench, tolerance=EXACT).explained()), None)


def _of_groups(seen: Runs, found: Vector) -> FailureMode | None:
    """Shares or micro-batches make a root, a power or a ratio each, and these are averaged."""
    for one in alone_in(seen):
        for by_size in (True, False):
            said = []
            for item in seen.layouts:
                own = one.groups(item)
                sizes = np.array([len(group) if by_size else 1.0 for group in own])
                losses = [seen.alone(group).loss for group in own]
                said.append(sizes @ np.array(losses, dtype=np.float64) / sizes.sum())
            if (np.abs(np.array(said) - found) <= EXACT * np.abs(found)).all():
                more = f"each {one.name} makes it by itself, and they are averaged"
                return replace(one.statistics, report=more)
    return None


def _difference(seen: Runs, found: Vector, right: float, tolerance: float) -> str | None:
    """Describe the layout whose loss is wrong most; None if all are right."""
    errors = np.abs(found - right)
    if errors.max() <= tolerance * max(abs(right), 1e-300):
        return None
    worst = int(np.argmax(errors))
    return f"it reads {found[worst]:.6g} where one device has {right:.6g} ({seen.layouts[worst]})"


def explain_statistics(seen: Runs) -> Found | None:
    """The mistake in the statistics, if there are any and they are wrong.

    One device shows what an element is: a mean of the examples (with an old value, as moving means
    have), a sum of them (and an old value), or no linear function. How much the shares count in
    the first two is asked of the rows; the others are compared with what shares make of them.
    """
    if any(run.statistics is None for run in seen.runs):
        return None
    found = np.stack([np.asarray(run.statistics) for run in seen.runs])
    wrong = _differ(seen, found, found[0])
    if not wrong.any():
        return None
    means, sums = _means_and_sums(seen, found[0])
    cause = _of_one_share(seen, found) or (
        _weighed(seen, found, means, False) or _weighed(seen, found, sums & ~means, True)
    )
    if cause is None and not (wrong & (means | sums)).any():
        cause = _of_own_moments(seen, found, wrong)
    if cause is None:
        return Found(_WHAT, (), (rows.LOCAL_STATISTICS,), beside=True)
    return Found(_WHAT, (cause,), beside=True)


def _differ(seen: Runs, values: Vector, one: Vector) -> Mask:
    """Return a mask of the elements (by layout) that differ from one device."""
    scale = np.abs(one) if one.all() else np.full(one.shape, np.abs(one).max() + 1e-300)
    limit = seen.noise.limit(1) * np.maximum(scale, 1e-3 * np.abs(scale).max())
    return np.asarray(np.abs(values - one) > limit)


def _own(seen: Runs, item: Layout, groups: Groups = of_parts) -> Vector:
    """Return the statistics that each group computes by itself."""
    return np.stack([np.asarray(seen.alone(group).statistics) for group in groups(item) if group])


def _means_and_sums(seen: Runs, one: Vector) -> tuple[Mask, Mask]:
    """Return masks of the elements that are means of the parts' values, and that are sums.

    Means are weighted by counts. A sum may hold an old value, which parts repeat.
    """
    old: list[Vector] = []
    means = sums = np.ones(one.shape, dtype=bool)
    for item in seen.layouts:
        if item.replicas * item.micro_batches > 1:
            own = _own(seen, item)
            sizes = np.array([len(part) for part in of_parts(item) if part], dtype=np.float64)
            old.append((own.sum(axis=0) - one) / (len(own) - 1))
            means = means & ~_differ(seen, sizes / sizes.sum() @ own, one)
            sums = sums & ~_differ(seen, one + old[-1] - old[0], one)
    if (sums & ~means).any():
        means = means & ~sums  # constants are both: of a sum they are old values
    return means, sums


def _of_one_share(seen: Runs, found: Vector) -> FailureMode | None:
    """Every layout has the statistics of its first or last share, or part."""
    modes = {of_shares: rows.STATISTICS_OF_ONE, of_parts: rows.STATISTICS_OF_ONE_PART}
    for groups, mode in modes.items():
        own = [_own(seen, item, groups) for item in seen.layouts]
        for place in (0, -1):
            if not _differ(seen, np.stack([values[place] for values in own]), found).any():
                return mode
    return None


def _weighed(seen: Runs, found: Vector, chosen: Mask, fixed: bool) -> FailureMode | None:
    """The row that says how much parts count in some elements, which are means or sums of them."""
    values = found[:, chosen]
    limit = seen.noise.limit(1) * float(np.linalg.norm(values))
    if not limit < TELLING * float(np.linalg.norm(values - values[:1])):
        return None

    def own(run: Recorded) -> Vector:
        return np.asarray(run.statistics)[chosen]

    alike: list[Hypothesis] = []
    each = f"once {'in every micro-batch of' if seen.several else 'on'} every replica"
    for row, table in seen.frame.said:
        if alike_in(seen.layouts, table, of_parts):
            known, held = of_groups(seen, seen.layouts, table, of_parts, fixed, own)
            # Of sums, each part has the old values.
            made = partial(_of_row, row) if row else partial(_with_old, each, None)
            alike.append(Hypothesis(made, known, np.zeros((len(known), 0)), rank=-1))
            alike += terms(seen.layouts, known, held, partial(_with_old, row=row))
    modes = (one.made() for one in simplest(values, alike, limit))
    mode = next(filter(None, modes), None)
    return mode or (None if fixed else _updated_again(seen, values, chosen, limit))


def _of_row(row: FailureMode) -> FailureMode:
    if row.name == rows.MEAN_OF_MEANS.name:
        return rows.EQUAL_STATISTICS
    return replace(row, name=f"in the statistics: {row.name}",
                   sentence=f"in what the statistics are made of, {row.sentence}")  # fmt: skip


def _with_old(count: str, row: FailureMode | None) -> FailureMode | None:
    """Old values that count so, beside examples that a row weighs."""
    if count == "once":
        return None if row is None else _of_row(row)
    more = "" if row is None else f"; and the examples: {row.name}"
    return FailureMode(
        f"in the statistics, old values count {count}{more}",
        "what the statistics were before the step is summed (or divided) with the replicas or "
        "micro-batches, though it belongs to the step once",
        "d h + (1 - d) Σ w_i x_i / W, h being counted otherwise than once", remedy="statistics",
    )  # fmt: skip


def _updated_again(seen: Runs, values: Vector, chosen: Mask, limit: float) -> FailureMode | None:
    """A moving mean that every micro-batch moves, instead of the step.

    With s_k = d h + (1 - d) m_k of one micro-batch alone, K of them make
    Σ d^(K-1-k) s_k - (1 + d + … + d^(K-2)) d h, of which d and d h are unknown.
    """
    for parts_of in (of_windows, lambda item: item.parts[0]) if seen.several else ():
        alone = [_own(seen, item, parts_of)[:, chosen] for item in seen.layouts]

        def left(d: float, alone: list[Vector] = alone) -> float:
            powers = [d ** np.arange(len(one))[::-1] for one in alone]
            known = np.stack([by @ one for by, one in zip(powers, alone, strict=True)])
            return residual(values - known, np.array([[by[1:].sum()] for by in powers]))[0]

        low, high = 0.0, 1.0
        for _ in range(_TIMES):
            tried = np.linspace(low, high, 33)
            best = int(np.argmin([left(float(d)) for d in tried]))
            low, high = tried[max(best - 1, 0)], tried[min(best + 1, 32)]
        if left((low + high) / 2) <= limit:
            return rows.UPDATED_AGAIN
    return None


def _of_own_moments(seen: Runs, found: Vector, wrong: Mask) -> FailureMode | None:
    """Return the statistics with non-means replaced by the average of the shards' values."""
    for item, row, off in zip(seen.layouts, found, wrong, strict=True):
        own, sizes = _own(seen, item, of_shares), np.array([n for n in item.sizes if n])
        said = (sizes / sizes.sum() @ own, own.mean(axis=0))
        if off.any() and not any((np.abs(x - row) <= BEND * np.abs(row))[off].all() for x in said):
            return None
    return rows.OWN_MOMENTS
