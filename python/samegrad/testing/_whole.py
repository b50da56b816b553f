"""The verdict on a step that is no sum over examples: updates are compared as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from samegrad.testing._batches import StepError, StepFailedError, rows_of, take
from samegrad.testing._catalogue import (
    CATALOGUE,
    CLIPPED_PARTS,
    CLIPPED_REPLICAS,
    CLIPPED_SCALED,
    CLIPPED_SHARDS,
    COPIES_DIFFER,
    EQUAL_STATISTICS,
    LIMITED_OTHERWISE,
    LOCAL_STATISTICS,
    NO_GRADIENT_OF_EXCHANGE,
    SAME_NOISE,
)
from samegrad.testing._diagnosis import Diagnosis
from samegrad.testing._layouts import Layout, layout, layouts_for
from samegrad.testing._limits import HIDDEN, is_limited, is_limited_scaled, of_parts, of_shares
from samegrad.testing._mistake import RIGHT, Mistake, Predict
from samegrad.testing._one_device import KEEPS_STATE
from samegrad.testing._probes import PROBED, explain_shared_batch, outside
from samegrad.testing._reported import explain_loss_of
from samegrad.testing._select import UNNAMED, Bench, Frame, factors_alike
from samegrad.testing._settings import Settings
from samegrad.testing._statistics import explain_statistics
from samegrad.testing._terms import COUNTS
from samegrad.testing._updates import ROUNDED, Recorded, Recorder, Step, Vector, rounding_of

_SAME = 1e-4  # relative; updates that are equal but for rounding
_NEAR = 2e-3  # relative; what a combination of updates may leave over
_DRAWN = 0.03  # relative; what another order of the examples does not change by rounding
_MAX_EXAMPLES = 24  # examples

_JUDGED_WHOLE = (
    "the update does not decompose into a sum over examples (batch statistics, a limit on the "
    "gradient, a loss over pairs), so that updates are compared as a whole"
)


@dataclass
class WholeBatchRuns:
    """Runs of a step on the layouts of a batch, and on shares of it alone."""

    recorder: Recorder
    examples: int
    settings: Settings
    known: dict[Layout, Recorded] = field(default_factory=dict)

    def run(self, item: Layout) -> Recorded:
        """The step on a layout, once."""
        if item not in self.known:
            self.known[item] = self.recorder.run(item)
        return self.known[item]

    def alone(self, examples: Sequence[int]) -> Recorded:
        """The step on one device."""
        return self.run(Layout(((tuple(examples),),)))

    @property
    def weights(self) -> Vector:
        """Of the examples, as they are given; 1 for each else."""
        given = self.settings.weights
        return np.ones(self.examples) if given is None else np.asarray(given)[: self.examples] * 1.0

    @cached_property
    def fixed(self) -> bool:
        """Whether a fixed number divides: twice the examples make twice the update."""
        twice = self.alone([*range(self.examples)] * 2)
        return bool(abs(twice.norm / self.run(layout([self.examples])).norm - 2) < 0.02)

    @cached_property
    def turned(self) -> float:
        """How much the update of one device changes with the order of the examples."""
        one = self.alone(range(self.examples))
        orders = (range(self.examples)[::-1], [*range(1, self.examples), 0])
        return max(_gap(self.alone(order), one) for order in orders)

    @property
    def by_place(self) -> bool:
        """Whether the update depends on the order of the examples, as drawn noise makes it."""
        return self.turned > _DRAWN

    @cached_property
    def repeated(self) -> float:
        """How much the update of one device changes from call to call.

        Raises:
            StepError: It is another one.
        """
        whole = layout([self.examples])
        found = _gap(self.recorder.run(whole), self.run(whole))
        if found > _DRAWN:
            raise StepError(KEEPS_STATE)
        return found

    @property
    def noise(self) -> float:
        """How far updates are apart by noise, relative."""
        return max(0.0 if self.by_place else self.turned, self.repeated)

    @cached_property
    def rounded(self) -> float:
        """The same by rounding of the update's numbers, a limit's own ones left out.

        Behind a limit by value, a division by the examples hides the format of the gradients;
        single examples are not divided.
        """
        runs = [self.alone(range(self.examples))]
        if _is_limited(self):
            runs += [run for run in _singles(self) if run.norm > 0]
        return max(rounding_of(_below_the_peak(run)) for run in runs)

    @property
    def same(self) -> float:
        """How far updates may be apart that are equal but for rounding."""
        # What a limit cuts off makes the rounding of the rest weigh more.
        times = 2 * ROUNDED if _is_limited(self) else ROUNDED
        return max(_SAME, 5 * self.noise, times * self.rounded)

    @property
    def near(self) -> float:
        """How much of an update a combination may leave over."""
        return max(_NEAR, 5 * self.noise, self.rounded)

    def layouts(self) -> list[Layout]:
        """One device first; then uneven splits, and truly even ones."""
        s = self.settings
        return [
            layout([self.examples]),
            *layouts_for(self.examples, s.replicas, s.micro_batches, s.even),
        ]


def runs_of_whole_batches(step: Step, batch: Any, settings: Settings) -> WholeBatchRuns:
    """A batch that can be split evenly, if it is large enough for that."""
    multiple = math.lcm(*(r * k for r in settings.replicas for k in settings.micro_batches))
    most = min(rows_of(batch), max(_MAX_EXAMPLES, multiple))
    count = most // multiple * multiple or most
    recorder = Recorder(step, take(batch, np.arange(count)), width=512, seed=settings.seed)
    return WholeBatchRuns(recorder, count, settings)


def diagnose_whole(tried: WholeBatchRuns) -> Diagnosis | None:
    """The verdict on a step that is no sum over examples, or None where it gives no update."""
    layouts = tried.layouts()
    try:
        one = tried.run(layouts[0])
    except StepFailedError:
        return None
    if not np.isfinite(one.sketch).all() or one.norm == 0:
        return None
    runs = [tried.run(item) for item in layouts]
    report = explain_loss_of(runs, layouts)
    notes = [_JUDGED_WHOLE]
    cautions = (CLIPPED_SCALED,) if is_limited_scaled(_lengths(tried)) else ()

    def verdict(causes: Sequence[Mistake | None], *more: str, fine: bool = False) -> Diagnosis:
        cause, others = causes[0], tuple(row for row in causes[1:] if row is not None)
        right = fine and cause is None
        return Diagnosis(
            right, cause, others, notes=(*notes, *more), reported=report and report.words,
            tolerance=tried.near, layout=None if right else layouts[-1], cautions=cautions,
            summary=f"{'correct' if right else 'not the update of one device'}; "
            f"{tried.examples} examples on {len(layouts)} layouts, compared as a whole",
            reported_cause=report and report.cause,
        )  # fmt: skip

    if max(run.drift for run in runs) > 1e-6:
        return verdict([COPIES_DIFFER])
    if max(_gap(run, one) for run in runs) <= tried.same:
        mistake = explain_statistics(runs, layouts, tried.alone, tried.same) or _row_of_batch(tried)
        limited = (HIDDEN,) if _is_limited(tried) else ()
        return verdict([mistake], *limited, fine=True)
    causes, more = _causes(tried, layouts, runs, one)
    return verdict(causes, *more, fine=not causes[1:])


def _gap(run: Recorded, one: Recorded) -> float:
    if not np.isfinite(run.sketch).all():
        return np.inf
    return float(np.linalg.norm(run.sketch - one.sketch) / np.linalg.norm(one.sketch))


Causes = tuple[Sequence[Mistake | None], tuple[str, ...]]
_SCALED = "a factor that the ranks divide by may meet the limit, and not the loss"


def _causes(
    tried: WholeBatchRuns, layouts: list[Layout], runs: list[Recorded], one: Recorded
) -> Causes:
    """The mistakes, and notes on them; [None] where nothing is wrong."""
    limited = _is_limited(tried)
    factors = np.array([run.sketch @ one.sketch / (one.sketch @ one.sketch) for run in runs])
    left = [
        np.linalg.norm(run.sketch - f * one.sketch) for run, f in zip(runs, factors, strict=True)
    ]
    if max(left) <= tried.near * float(np.linalg.norm(one.sketch)) * max(
        1.0, np.abs(factors).max()
    ):
        found = _of_factors(tried, layouts, factors, limited)
        return found, (HIDDEN,) if LIMITED_OTHERWISE in found else ()
    for groups, of_limit in ((of_shares, CLIPPED_REPLICAS), (of_parts, CLIPPED_PARTS)):
        weights = _combination(tried, layouts, runs, groups)
        if weights is not None:
            more = _how_weighted(tried, layouts, weights, groups, limited)
        elif _with_a_term(tried, layouts, runs, groups):
            more = (_TERM,)
        else:
            continue
        if tried.by_place:
            return [SAME_NOISE], more
        return [of_limit if limited or _limits_sums(tried) else LOCAL_STATISTICS], more
    if tried.by_place:
        raise StepError(
            "[step] the update depends on the order of the examples: dropout or noise that is "
            "drawn anew for each layout hides the scaling; switch it off (rate 0) to judge the "
            "loss."
        )
    if _by_pieces(layouts, runs, one, 3 * tried.near):
        return [CLIPPED_SHARDS], ()
    return _of_the_exchange(tried, layouts, runs, one)


def _of_factors(
    tried: WholeBatchRuns, layouts: list[Layout], factors: Vector, limited: bool
) -> Sequence[Mistake | None]:
    """The update of one device, times a factor that depends on the layout."""
    frame = Frame(layouts, np.ones(tried.examples), tried.fixed)
    found = factors_alike(frame, factors, tried.near)
    powers = [row.point.powers for row in found if row.point is not None]
    if limited and (not powers or any(abs(p) == 0.5 for p in powers[0])):
        return [LIMITED_OTHERWISE]
    if found[0].name != UNNAMED:
        return [*found, LIMITED_OTHERWISE] if limited else found
    # Factors of 1 are noise that is a little larger than it seemed.
    if (row := _row_of_batch(tried)) is not None:
        return [row]
    return [None] if np.abs(factors - 1).max() <= tried.near else found


def _row_of_batch(tried: WholeBatchRuns) -> Mistake | None:
    """A row, from splits of a few examples that cannot be even."""
    settings = tried.settings
    if settings.even or tried.examples < PROBED:
        return None
    try:
        return explain_shared_batch(
            tried.run, tried.weights, settings.replicas, settings.micro_batches, tried.same
        )
    except StepError:  # a step may refuse small shares, which must not hide what is known
        return None


def _of_the_exchange(
    tried: WholeBatchRuns, layouts: list[Layout], runs: list[Recorded], one: Recorded
) -> Causes:
    """Replicas exchange what depends on the batch: a row, or the exchange itself is wrong."""
    found = _row_of_batch(tried)
    if found is not None:
        return [found], ()
    even = [
        _gap(run, one) <= tried.same
        for run, item in zip(runs[1:], layouts[1:], strict=True)
        if len({len(part) for share in item.parts for part in share}) == 1
    ]
    if even and all(even):
        return [None, EQUAL_STATISTICS], ("even shares are right, uneven ones are not",)
    return [None, NO_GRADIENT_OF_EXCHANGE], ("no weights of shares fit",)


_TERM = "besides, a term that belongs to no example is counted otherwise than the shares"
Groups = Callable[[Layout], list[tuple[int, ...]]]


def _combination(
    tried: WholeBatchRuns, layouts: list[Layout], runs: list[Recorded], groups: Groups
) -> list[Vector] | None:
    """The weights of the groups' own updates in each layout, if they explain all of them.

    A term that belongs to no example may be left over: one direction in all layouts.
    """
    found, rests = [], []
    for item, run in zip(layouts, runs, strict=True):
        own = np.stack([tried.alone(group).sketch for group in groups(item)])
        if not np.isfinite(own).all():
            return None
        weights, *_ = np.linalg.lstsq(own.T, run.sketch, rcond=None)
        rests.append((run.sketch - weights @ own) / np.linalg.norm(run.sketch))
        found.append(np.asarray(weights, dtype=np.float64))
    strengths = np.linalg.svd(np.stack(rests), compute_uv=False)
    left = strengths[1] if len(strengths) > 3 else strengths[0]
    return found if left <= tried.near * np.sqrt(len(layouts)) else None


def _with_a_term(
    tried: WholeBatchRuns, layouts: list[Layout], runs: list[Recorded], groups: Groups
) -> bool:
    """Whether a row for the shares leaves one term over in all layouts, as a count says."""
    ones = np.ones(tried.examples)
    own = [np.stack([tried.alone(group).sketch for group in groups(item)]) for item in layouts]
    updates = np.stack([run.sketch for run in runs])
    limit = tried.near * float(np.linalg.norm(updates))
    predicts: list[Predict] = [RIGHT, *(r.predict for r in CATALOGUE if not r.weighted)]
    for predict in predicts:
        each = [Frame([item], ones, False).said(predict, 0) for item in layouts]
        for fixed in (False, True):
            said = [
                np.array([w[list(g)].mean() * (tried.examples if fixed else len(g)) for g in gs])
                for w, gs in zip(each, map(groups, layouts), strict=True)
            ]
            rest = updates - np.stack([w @ u for w, u in zip(said, own, strict=True)])
            for count in COUNTS.values():
                left = np.array([[count(i) - w.sum()] for i, w in zip(layouts, said, strict=True)])
                if np.abs(left).max() > 1e-9 and outside(rest, left)[0] <= limit:
                    return True
    return False


def _how_weighted(
    tried: WholeBatchRuns,
    layouts: list[Layout],
    weights: list[Vector],
    groups: Groups,
    limited: bool,
) -> tuple[str, ...]:
    """A note where the shares have other weights than their parts of the examples."""
    if not limited and tried.fixed:
        return ()  # a fixed number divides; each share counts once
    frame = Frame(layouts, np.ones(tried.examples), False)
    images = []
    for item in layouts:
        image = np.zeros((len(groups(item)), tried.examples))
        for row, group in zip(image, groups(item), strict=True):
            row[list(group)] = 1.0
        images.append(image)
    bench = Bench(frame, weights, images, 0.02)
    if bench.error(RIGHT) <= bench.tolerance:
        return ()
    if rows := bench.explained():
        return (f"besides, the shares are weighted as in: {rows[0].name}",)
    listed = ", ".join(f"{w:.4g}" for w in weights[-1])
    return (f"besides, the shares have the weights {listed} ({layouts[-1]})",)


def _lengths(tried: WholeBatchRuns) -> list[Vector]:
    groups = [group for item in tried.layouts() for group in of_shares(item)]
    lengths = [tried.alone(group).lengths for group in groups]
    return [*lengths, *(run.lengths for run in _singles(tried))]


def _is_limited(tried: WholeBatchRuns) -> bool:
    """Whether several updates of one device have the same length, none being longer."""
    return is_limited(_lengths(tried))


def _singles(tried: WholeBatchRuns) -> list[Recorded]:
    """The updates of some examples by themselves, as far as the step takes them."""
    found = []
    for place in range(min(8, tried.examples)):
        try:
            found.append(tried.alone([place]))
        except StepError:  # a step may refuse a single example
            break
    return found


def _below_the_peak(run: Recorded) -> Vector:
    """Elements that no limit by value has set; all, if there are no others."""
    below = run.samples[np.abs(run.samples) < (1 - 1e-6) * run.lengths[-1]]
    return below if below.any() else run.samples


def _limits_sums(tried: WholeBatchRuns) -> bool:
    """Whether a few examples together go where they go one by one, and only not as far.

    One direction may be left over: a term that is added behind the limit.
    """
    if tried.examples < 5 or tried.recorder.parameters < 16:
        return False
    groups = [(0, 1), (2, 3), (0, 1, 2), (1, 2, 3, 4), (0, 1, 2, 3, 4)]
    try:
        singles = np.stack([tried.alone([i]).sketch for i in range(5)])
    except StepError:  # a step that refuses a single example is no sum
        return False
    if not np.isfinite(singles).all():
        return False
    updates = np.stack([tried.alone(group).sketch for group in groups])
    rests = updates - np.linalg.lstsq(singles.T, updates.T, rcond=None)[0].T @ singles
    strengths = np.linalg.svd(rests, compute_uv=False) / np.linalg.norm(updates)
    # Without a term the lengths tell a limit; roots and ratios of means keep the direction too.
    return bool(strengths[1] <= tried.near < strengths[0])


def _by_pieces(layouts: list[Layout], runs: list[Recorded], one: Recorded, near: float) -> bool:
    """Whether as many pieces of the parameters as there are replicas are scaled each by itself."""
    seen = np.abs(one.samples) > 1e-6 * np.abs(one.samples).max()
    several = False
    for item, run in zip(layouts[1:], runs[1:], strict=True):
        ratios = np.sort(run.samples[seen] / one.samples[seen])
        pieces = 1 + int((np.diff(ratios) > near * np.abs(ratios).max()).sum())
        if pieces > max(item.replicas, 1):
            return False
        several = several or pieces > 1
    return several
