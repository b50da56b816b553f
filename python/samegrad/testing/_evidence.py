"""All runs of a step, in terms of the weights of the examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from samegrad.testing._layouts import (
    ENOUGH,
    Layout,
    Settings,
    StepError,
    StepFailedError,
    layout,
    layouts_for,
    of_shares,
    rows_of,
    take,
)
from samegrad.testing._one_device import (
    KEEPS_STATE,
    NO_SUM,
    Basis,
    DependentError,
    Fit,
    OneDevice,
    check_memory,
    finite_run,
    independent,
    one_device,
)
from samegrad.testing._select import LOOSE, Bench, Frame
from samegrad.testing._updates import ROUNDED, Recorded, Recorder, Step, Vector, rounding_of

DRIFT = 1e-6  # relative; what equal copies of parameters may differ by
_SAME = 1e-4  # relative; updates that are equal but for float32
_NEAR = 2e-3  # relative; what a combination of updates may leave over
_DEVIATIONS = 5  # times the noise that is measured
_SINGLES = 8  # single examples that are looked at


@dataclass
class Runs(Frame):
    """Runs of a step on the layouts of a batch, and on shares of it alone.

    Args:
        recorder: Of the step, with the examples.
        settings: Of the diagnosis.
        known: Runs so far.
    """

    recorder: Recorder
    settings: Settings
    known: dict[Layout, Recorded]

    def fresh(self, item: Layout) -> Recorded:
        """The step on a layout, again."""
        return self.recorder.run(item)

    def run(self, item: Layout) -> Recorded:
        """The step on a layout, once."""
        if item not in self.known:
            self.known[item] = self.fresh(item)
        return self.known[item]

    def alone(self, examples: Sequence[int]) -> Recorded:
        """The step on one device."""
        return self.run(Layout(((tuple(examples),),)))

    @property
    def runs(self) -> list[Recorded]:
        """One per layout."""
        return [self.run(item) for item in self.layouts]

    @property
    def examples(self) -> int:
        """How many there are."""
        return len(self.weights)

    by_weights: ClassVar[bool] = False  # whether the weights of single examples are known

    @property
    def tolerance(self) -> float:
        """How far what is found may be from what is said, relative."""
        return self.near

    @property
    def given(self) -> bool:
        """Whether the user gave the weights of the examples."""
        return self.settings.weights is not None

    def gap(self, run: Recorded) -> float:
        """How far an update is from that of one device, relative."""
        one = self.runs[0].sketch
        if not np.isfinite(run.sketch).all():
            return np.inf
        return float(np.linalg.norm(run.sketch - one) / np.linalg.norm(one))

    @cached_property
    def gaps(self) -> float:
        """The largest gap of all layouts."""
        return max(self.gap(run) for run in self.runs)

    @cached_property
    def turned(self) -> float:
        """How much the update of one device changes with the order of the examples."""
        orders = (range(self.examples)[::-1], [*range(1, self.examples), 0])
        return max(self.gap(self.alone(order)) for order in orders)

    @property
    def by_place(self) -> bool:
        """Whether the update depends on the order of the examples, as drawn noise makes it."""
        return self.turned > NO_SUM

    @cached_property
    def repeated(self) -> float:
        """How much the update of one device changes from call to call.

        Raises:
            StepError: It is another one.
        """
        found = self.gap(self.fresh(self.layouts[0]))
        if found > NO_SUM:
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
        runs = [self.runs[0]]
        if self.limited:
            runs += [run for run in self.some_alone if run.norm > 0]
        return max(rounding_of(_below_the_peak(run)) for run in runs)

    @property
    def same(self) -> float:
        """How far updates may be apart that are equal but for noise, relative."""
        # What a limit cuts off makes the rounding of the rest weigh more.
        times = 2 * ROUNDED if self.limited else ROUNDED
        return max(_SAME, _DEVIATIONS * self.noise, times * self.rounded)

    @property
    def near(self) -> float:
        """How much of an update a combination of updates may leave over, relative."""
        return max(_NEAR, _DEVIATIONS * self.noise, self.rounded)

    @property
    def left(self) -> float:
        """How much of an update a hypothesis with unknown updates may leave over, relative."""
        return self.same

    @cached_property
    def some_alone(self) -> list[Recorded]:
        """The updates of some examples by themselves, as far as the step takes them."""
        found = []
        for place in range(min(_SINGLES, self.examples)):
            try:
                found.append(self.alone([place]))
            except StepError:  # a step may refuse a single example
                break
        return found

    @cached_property
    def lengths(self) -> list[Vector]:
        """Of updates of one device."""
        groups = [group for item in self.layouts for group in of_shares(item)]
        return [run.lengths for run in (*map(self.alone, groups), *self.some_alone)]

    @cached_property
    def limited(self) -> bool:
        """Whether several updates of one device have the same length, none being longer."""
        return is_limited(self.lengths)


def _below_the_peak(run: Recorded) -> Vector:
    """Elements that no limit by value has set; all, if there are no others."""
    below = run.samples[np.abs(run.samples) < (1 - 1e-6) * run.lengths[-1]]
    return below if below.any() else run.samples


def _limited_lengths(lengths: Sequence[Vector]) -> list[float]:
    """The lengths that several updates have, none being longer.

    Args:
        lengths: Of updates of one device: the norm, the norms of the arrays, and the peak.
    """
    table = np.stack([row for row in lengths if np.isfinite(row).all()])
    top = table.max(axis=0)
    hits = (table >= top * (1 - 3e-3)).sum(axis=0) >= 3
    arrays = hits[1:-1][top[1:-1] > 0]
    found = [float(top[place]) for place in (0, len(top) - 1) if hits[place]]
    if arrays.size and arrays.all():
        found += top[1:-1][top[1:-1] > 0].tolist()
    return found


def is_limited(lengths: Sequence[Vector]) -> bool:
    """Whether several updates have the same length, and none is longer."""
    return bool(_limited_lengths(lengths))


def is_limited_scaled(lengths: Sequence[Vector]) -> bool:
    """Whether a limit looks like one of scaled gradients: a round number by a power of two.

    Loss scales are powers of two; limits and learning rates are round in decimals.
    """
    return any(
        not _is_round(limit) and any(_is_round(limit * 2.0**j) for j in range(8, 25))
        for limit in _limited_lengths(lengths)
        if 0 < limit < 5e-3
    )


def _is_round(value: float) -> bool:
    """Whether one digit, or 1.5 or 2.5, tells the number."""
    digits = value / 10.0 ** np.floor(np.log10(value) + 1e-9)
    return bool(min(abs(digits - d) for d in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9, 10)) < 2e-4)


_FEWEST = 3  # examples
_LEAST = 1e-5  # relative error of weights that float32 leaves at best


@dataclass
class Evidence(Runs):
    """All runs of a step, in terms of the weights of the examples.

    Args:
        device: One device, with the examples alone.
        fits: Of the runs.
        exact: Error of weights that the noise leaves, relative to the largest right one.
    """

    device: OneDevice
    fits: list[Fit]
    exact: float
    by_weights: ClassVar[bool] = True

    def fresh(self, item: Layout) -> Recorded:
        """The step on a layout, without the term."""
        return self.device.run(item)

    @property
    def singles(self) -> list[Recorded]:
        """One run per example."""
        return self.device.singles

    @property
    def basis(self) -> Basis:
        """Of the singles."""
        return self.device.basis

    @cached_property
    def some_alone(self) -> list[Recorded]:
        """The updates of all examples by themselves."""
        return self.singles

    @cached_property
    def lengths(self) -> list[Vector]:
        """Of updates of one device."""
        return [run.lengths for run in (*self.singles, self.runs[0])]

    @cached_property
    def left(self) -> float:
        """How much of an update a hypothesis with unknown updates may leave over, relative."""
        if not self.device.is_sum:
            return _NEAR
        usual = self.device.noise.usual(self.basis, self.fits[0])
        return min(_SAME + LOOSE * max(self.fits[0].unexplained, usual), NO_SUM)

    @property
    def tolerance(self) -> float:
        """Of weights: what the noise leaves, within limits."""
        return min(self.exact, 0.2)

    @property
    def additive(self) -> bool:
        """Whether a part of the examples weighs on one device as the whole batch says."""
        for part, fit in self.device.halves:
            own = np.asarray(self.weights)[part]
            said = np.ones(len(part)) if self.fixed else own / own.sum()
            if np.abs(fit.weights[part] - said).max() > LOOSE * self.tolerance * said.max() + 1e-3:
                return False
        return True

    def explained(self, fit: Fit) -> bool:
        """Whether weights of examples explain an update, but for noise."""
        return fit.unexplained <= max(self.device.noise.residual(self.basis, fit), 1e-6)

    def held(self, weights: Vector) -> float:
        """How often a term of the singles comes along with such weights."""
        return 1.0 if self.device.term is not None else float(weights.sum())

    @property
    def bench(self) -> Bench:
        """The weights found."""
        image = np.eye(len(self.weights))
        found = [fit.weights for fit in self.fits]
        return Bench(self, found, [image] * len(found), self.tolerance)

    def error(self, expected: Callable[[int], Vector]) -> float:
        """How far the weights found are from those expected, relative to the right ones."""
        errors = []
        for place, fit in enumerate(self.fits):
            said = expected(place)
            scale = max(np.abs(self.right(place)).max(), np.abs(said).max())
            errors.append(float(np.abs(fit.weights - said).max() / scale))
        return max(errors)


class AloneError(Exception):
    """Single examples tell nothing; the reason is raised if the whole batch tells nothing too."""

    def __init__(self, reason: StepError) -> None:
        super().__init__(str(reason))
        self.reason = reason


def gather(step: Step, batch: Any, settings: Settings) -> Evidence:
    """Runs the step on single examples, on all of them, and on splits of them.

    Raises:
        AloneError: Single examples tell nothing.
        StepError: The step cannot be judged.
    """
    rows = rows_of(batch)
    settings.check(rows)
    chosen = np.linspace(0, rows - 1, min(rows, settings.examples)).astype(np.intp)
    chosen = chosen[: settings.usable(chosen)]
    width = max(256, 8 * len(chosen))
    recorder = Recorder(step, take(batch, chosen), width=width, seed=settings.seed)
    singles = _alone(recorder, len(chosen))
    check_memory(recorder, singles[0])
    _refuse_adaptive(singles)

    def keep(free: list[int]) -> None:
        nonlocal chosen, singles
        free = free[: settings.usable(chosen[free])]
        chosen, singles = chosen[free], [singles[i] for i in free]
        recorder.use(take(batch, chosen))

    seen = [i for i, single in enumerate(singles) if single.sketch.any()]
    if _FEWEST <= len(seen) < len(chosen):  # the weight of an example without gradient is any
        keep(seen)
    free = independent(singles, ENOUGH)
    if ENOUGH <= len(free) < len(chosen):  # weights of the others could not be told apart
        keep(free)
    device = _together(recorder, singles)
    free = device.steady()
    if len(free) < len(chosen):
        keep(free)
        device = _together(recorder, singles)
    layouts = layouts_for(len(chosen), settings.replicas, settings.micro_batches, settings.even)
    layouts = [layout([len(chosen)]), *layouts]
    known = {item: device.without_term(finite_run(recorder, item)) for item in layouts[1:]}
    known |= {Layout((((i,),),)): single for i, single in enumerate(device.singles)}
    known[layouts[0]] = device.whole
    fits = [device.basis.fit(known[item]) for item in layouts]
    exact = max(device.noise.tolerance(device.basis, fits), _LEAST)
    given = None if settings.weights is None else np.asarray(settings.weights)[chosen]
    weights, fixed = _device_weights(fits[0].weights, given, exact)
    together = np.sum([single.sketch for single in device.singles], axis=0)
    mean, total = (np.linalg.norm(device.whole.sketch - together / by) for by in (len(chosen), 1))
    fixed = fixed and bool(total <= mean)  # noise may hide all weights, but not these two
    return Evidence(layouts, weights, fixed, recorder, settings, known, device, fits, exact)


def _alone(recorder: Recorder, count: int) -> list[Recorded]:
    """Each example by itself."""
    try:
        return [recorder.run(Layout((((i,),),))) for i in range(count)]
    except StepFailedError as error:  # statistics over one example, for instance
        raise AloneError(error) from error


def _refuse_adaptive(singles: list[Recorded]) -> None:
    """Adam's first update has one size for all elements, whatever the gradient is."""
    several = [np.abs(single.samples) for single in singles if single.samples.size >= 8]
    moved = [values[values > 1e-3 * values.max()] for values in several if values.max() > 0]
    differ = any((single.samples != singles[0].samples).any() for single in singles)
    if moved and differ and all(values.min() > 0.98 * values.max() for values in moved):
        raise StepError(
            "[step] all elements of each update have the same size, as those of an adaptive "
            "optimizer (Adam) or of a sign: that hides the scaling; return the gradients, or use "
            "plain SGD."
        )


def _together(recorder: Recorder, singles: list[Recorded]) -> OneDevice:
    """One device, if single examples tell what the whole batch does."""
    try:
        return one_device(recorder, singles)
    except StepError as error:
        whole = recorder.run(layout([len(singles)])).sketch
        rows = np.stack([single.sketch for single in singles])
        rows = rows[np.isfinite(rows).all(axis=1)]
        found = np.linalg.lstsq(rows.T, whole, rcond=None)[0] @ rows if len(rows) else 0.0
        left = np.linalg.norm(whole - found)
        bent = isinstance(error, DependentError) and np.ptp(rows, axis=0).any()
        limited = bent and is_limited([single.lengths for single in singles])
        if np.isfinite(whole).all() and (limited or left > NO_SUM * np.linalg.norm(whole)):
            raise AloneError(error) from error
        raise


def _device_weights(alone: Vector, given: Vector | None, tolerance: float) -> tuple[Vector, bool]:
    """The weights of the examples on one device, and whether a fixed number divides."""
    count = len(alone)
    near = tolerance / 2  # so that weights that are rounded here stay within the tolerance
    fixed = bool(np.abs(alone - 1).max() < max(near, 1e-4))
    if given is not None:
        return np.asarray(given, dtype=np.float64), fixed
    even = np.abs(alone - 1.0 / count).max() * count < near
    if fixed or even or (alone <= 0).any():
        return np.ones(count), fixed
    return alone / alone.sum() * count, fixed
