"""What is measured of a step: updates, what single examples weigh in them, and how noisy all is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from samegrad.testing._basis import Basis, Fit, Noise, noise_of
from samegrad.testing._layouts import ENOUGH, Layout, Settings, StepError, of_shares, one_device
from samegrad.testing._select import LOOSE, Bench, Frame
from samegrad.testing._updates import ROUNDED, Recorded, Recorder, Vector

DRIFT = 1e-6  # relative; what equal copies of parameters may differ by
NO_SUM = 0.02  # of the update of the whole batch, which no weights of examples explain
_SAME = 1e-4  # relative; updates that are equal but for float32
_NEAR = 2e-3  # relative; what a combination of updates may leave over
_DEVIATIONS = 5  # times the noise that is measured
_SINGLES = 8  # single examples that are looked at
_ROUGH = 2.0**-7  # of an update: so much a rounding to bfloat16 leaves, which does not show later
_BENT = 20  # times what noise moves an update: then it is another function of the examples
_READABLE = 0.1  # error of weights, relative, that tells the rows of the catalogue apart
_LEAST = 1e-5  # relative error of weights that float32 leaves at best
KEEPS_STATE = (
    "[step] the same input gave another update: it keeps state between calls, or draws random "
    "numbers; begin with the same parameters, slots and seed in each call."
)


@dataclass
class Runs(Frame):
    """Runs of a step on the layouts of a batch, and on shares of it alone.

    Args:
        recorder: Of the step, with the examples.
        settings: Of the diagnosis.
        known: Runs so far, without the term.
        term: What every run holds once, where examples are added up.
    """

    recorder: Recorder
    settings: Settings
    known: dict[Layout, Recorded]
    term: Recorded | None = None

    def fresh(self, item: Layout) -> Recorded:
        """The step on a layout, again."""
        run = self.recorder.run(item)
        return run if self.term is None else run.without(self.term)

    def run(self, item: Layout) -> Recorded:
        """The step on a layout, once."""
        if item not in self.known:
            self.known[item] = self.fresh(item)
        return self.known[item]

    def alone(self, examples: Sequence[int]) -> Recorded:
        """The step on one device."""
        return self.run(one_device(examples))

    @property
    def runs(self) -> list[Recorded]:
        """One per layout."""
        return [self.run(item) for item in self.layouts]

    @property
    def examples(self) -> int:
        """How many there are."""
        return len(self.weights)

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
        one = self.run(self.layouts[0]).sketch
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

    @cached_property
    def rounded(self) -> float:
        """How far updates are apart by the rounding of their numbers, a limit's own ones left out.

        Behind a limit by value, a division by the examples hides the format of the gradients;
        single examples are not divided.
        """
        runs = [self.runs[0]]
        if self.limited:
            runs += [run for run in self.some_alone if run.norm > 0]
        return max(run.rounding for run in runs)

    @property
    def unsteady(self) -> float:
        """How far updates may be apart by noise that shows in repeated and turned runs."""
        return _DEVIATIONS * max(0.0 if self.by_place else self.turned, self.repeated)

    @property
    def same(self) -> float:
        """How far updates may be apart that are equal but for noise, relative."""
        # What a limit cuts off makes the rounding of the rest weigh more.
        times = 2 * ROUNDED if self.limited else ROUNDED
        return max(_SAME, self.unsteady, times * self.rounded)

    @property
    def near(self) -> float:
        """How much of an update a combination of updates may leave over, relative."""
        return max(_NEAR, self.unsteady, self.rounded)

    @property
    def left(self) -> float:
        """How much of an update a hypothesis with unknown updates may leave over, relative."""
        return self.same

    @cached_property
    def by_constant(self) -> bool:
        """Whether a fixed number divides: twice the examples make twice the update."""
        twice = self.alone([*range(self.examples)] * 2)
        return bool(abs(twice.norm / self.runs[0].norm - 2) < NO_SUM)

    @property
    def frame(self) -> Frame:
        """The layouts, with examples that count alike."""
        return Frame(self.layouts, np.ones(self.examples), False)

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
        return bool(limited_lengths(self.lengths))


def limited_lengths(lengths: Sequence[Vector]) -> list[float]:
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


@dataclass
class Sums(Runs):
    """Runs of a step, in terms of the weights of the examples."""

    def fresh(self, item: Layout) -> Recorded:
        """The step on a layout, again.

        Raises:
            StepError: Its update is not finite.
        """
        run = super().fresh(item)
        if not np.isfinite(run.sketch).all():
            raise StepError(
                f"[step] the update is not finite (NaN or inf) for {item}, though those of single "
                "examples are: look for a division by a count or weight that is 0 there."
            )
        return run

    @cached_property
    def singles(self) -> list[Recorded]:
        """One run per example."""
        return [self.alone([i]) for i in range(self.examples)]

    @cached_property
    def sketches(self) -> Vector:
        """The updates of single examples, a row for each."""
        return np.stack([single.sketch for single in self.singles])

    @cached_property
    def basis(self) -> Basis:
        """Of the single examples."""
        return Basis(self.singles, self.recorder.parameters)

    @cached_property
    def fits(self) -> list[Fit]:
        """The weights of the examples in all layouts."""
        return [self.basis.fit(run.sketch) for run in self.runs]

    @cached_property
    def halves(self) -> list[tuple[list[int], Fit]]:
        """Some of the examples, and what they weigh together on one device."""
        return [(own, self.basis.fit(self.alone(own).sketch)) for own in halves(self.examples)]

    @cached_property
    def noise(self) -> Noise:
        """Of the updates."""
        absent = [[i for i in range(self.examples) if i not in own] for own, _ in self.halves]
        return noise_of(self.basis, [fit for _, fit in self.halves], absent)

    @cached_property
    def is_sum(self) -> bool:
        """Whether weights of examples explain the update of all of them.

        What they leave unexplained is no noise if it stays in another order.
        """
        if self.fits[0].unexplained > NO_SUM:
            return False
        usual = self.noise.usual(self.fits[0])
        if usual <= _ROUGH:
            return True
        return usual <= _BENT * max(self.turned, ROUNDED * self.runs[0].rounding)

    @cached_property
    def exact(self) -> float:
        """Error of weights that the noise leaves, relative to the largest right one."""
        return max(self.noise.tolerance(self.fits), _LEAST)

    @property
    def tolerance(self) -> float:
        """Of weights: what the noise leaves, within limits."""
        return min(self.exact, 0.2)

    @cached_property
    def left(self) -> float:
        """How much of an update a hypothesis with unknown updates may leave over, relative."""
        if not self.is_sum:
            return _NEAR
        usual = self.noise.usual(self.fits[0])
        return min(_SAME + LOOSE * max(self.fits[0].unexplained, usual), NO_SUM)

    @cached_property
    def lengths(self) -> list[Vector]:
        """Of updates of one device."""
        return [run.lengths for run in (*self.singles, self.runs[0])]

    @property
    def additive(self) -> bool:
        """Whether a part of the examples weighs on one device as the whole batch says."""
        for part, fit in self.halves:
            own = np.asarray(self.weights)[part]
            said = np.ones(len(part)) if self.fixed else own / own.sum()
            if np.abs(fit.weights[part] - said).max() > LOOSE * self.tolerance * said.max() + 1e-3:
                return False
        return True

    def explained(self, fit: Fit) -> bool:
        """Whether weights of examples explain an update, but for noise."""
        return fit.unexplained <= max(self.noise.most(fit), 1e-6)

    def held(self, weights: Vector) -> float:
        """How often a term of the singles comes along with such weights."""
        return 1.0 if self.term is not None else float(weights.sum())

    @property
    def bench(self) -> Bench:
        """The weights found."""
        image = np.eye(len(self.weights))
        found = [fit.weights for fit in self.fits]
        return Bench(self, found, [image] * len(found), self.tolerance)

    @property
    def wrong(self) -> float:
        """How far the weights found are from the right ones, relative."""
        return self.bench.error(self.said[0][1])

    def steady(self) -> list[int]:
        """The examples without those whose weights drown in noise."""
        kept = list(range(self.examples))
        while self.is_sum and len(kept) > ENOUGH:
            basis = Basis([self.singles[i] for i in kept], self.recorder.parameters)
            together = basis.fit(self.sketches[kept].sum(axis=0))
            if replace(self.noise, basis=basis).tolerance([together]) <= _READABLE:
                break
            kept.pop(int(np.argmax(basis.gain)))
        return kept

    def weighed(self, given: Vector | None) -> Sums:
        """The same with the weights of the examples on one device."""
        alone, count = self.fits[0].weights, self.examples
        near = self.exact / 2  # so that weights that are rounded here stay within the tolerance
        together, whole = self.sketches.sum(axis=0), self.runs[0].sketch
        mean, total = (np.linalg.norm(whole - together / by) for by in (count, 1))
        # Noise may hide all weights, but not which of these two is nearer.
        fixed = bool(np.abs(alone - 1).max() < max(near, 1e-4) and total <= mean)
        even = fixed or np.abs(alone - 1.0 / count).max() * count < near or (alone <= 0).any()
        own = np.ones(count) if even else alone / alone.sum() * count
        return replace(self, weights=own if given is None else given * 1.0, fixed=fixed)


def halves(count: int) -> list[list[int]]:
    """Two parts of so many examples, which may overlap."""
    some = max(2, count // 2)
    return [list(range(some)), list(range(min(some, count - 2), count))]
