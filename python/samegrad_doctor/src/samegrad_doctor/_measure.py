"""Measurements of a step: updates, weights of single examples, and noise."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from samegrad_doctor._basis import BEND, FLOOR, NO_SUM, SAME, Basis, Fit, Noise, checked_rows
from samegrad_doctor._catalogue import FailureMode
from samegrad_doctor._grammar import POWERS
from samegrad_doctor._layouts import Layout, Settings, StepError, if_taken, layout, one_device
from samegrad_doctor._select import Bench, Frame
from samegrad_doctor._updates import Recorded, Recorder, Vector, check_finite, limited_lengths

DRIFT = 1e-6  # relative; what equal copies of parameters may differ by
_SINGLES = 8  # single examples that are looked at
_INSIDE = 2 * FLOOR  # of an update: so much float32 leaves inside of a function that is not a sum
_ROUGH = 2.0**-7  # of an update: so much a rounding to bfloat16 leaves, which does not show later
_LITTLE = 0.1  # of the largest weight, by which splits that are nearly even make rows differ
_PAIRED = 0.3  # of what two examples change in each other's places; noise makes 0, pairs make 1
_MOST_SWAPS = 24  # of neighbors that are looked at: a whole batch may have thousands
_BENT = 20  # times what noise moves an update: then it is another function of the examples
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
        term: What every run holds once, where examples are summed.
        known_noise: Level that other runs of the step have, at least.
    """

    recorder: Recorder
    settings: Settings
    known: dict[Layout, Recorded]
    term: Recorded | None = None
    known_noise: float = 0.0

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
    def one(self) -> Vector:
        """The update of one device."""
        return self.run(self.layouts[0]).sketch

    @property
    def examples(self) -> int:
        """Return the number of examples."""
        return len(self.weights)

    @property
    def given(self) -> bool:
        """Return True if the user gave example weights."""
        return self.settings.weights is not None

    @property
    def alive(self) -> int:
        """Numbers of the sketch that a step changes."""
        return int(np.count_nonzero(self.one))

    @cached_property
    def turned(self) -> float:
        """Return the relative change of one device's update with the order of the examples."""
        return self._turned(self.examples)

    def _turned(self, count: int) -> float:
        one = self.alone(range(count)).sketch
        orders = (range(count)[::-1], [*range(1, count), 0])
        return max(_gap(self.alone(order), one) for order in orders)

    @cached_property
    def by_place(self) -> bool:
        """Return True if the update depends on the order of the examples, as with random ops.

        Pieces that a step cuts may be equal for all examples, and are not for one less.
        """
        if self.turned > NO_SUM:
            return True
        least = _BENT * max(_INSIDE, self.rounded)
        # Few pairs of neighbors make the change, unlike noise.
        if self.turned > least and self.can_be_swapped(NO_SUM * self.turned):
            return True
        fewer = self.examples - self.settings.multiple
        return if_taken(lambda: self._turned(fewer) > NO_SUM, False)

    def can_be_swapped(self, limit: float) -> bool:
        """Return True if a third of the swaps of two neighbors, or of some, change no more.

        Per-example random ops exclude that.
        """
        gaps = []
        for place in np.unique(np.linspace(0, self.examples - 2, _MOST_SWAPS).astype(int)):
            order = np.arange(self.examples)
            order[place : place + 2] = place + 1, place
            gaps.append(_gap(self.alone(order.tolist()), self.one))
        return 3 * sum(gap <= limit for gap in gaps) >= len(gaps)

    @property
    def paired(self) -> bool:
        """Return True if the effect of swapping two examples depends on the order of the others.

        Noise that is drawn for a row knows no other row.
        """
        rest = range(2, self.examples)
        changes = [
            self.alone([0, 1, *order]).sketch - self.alone([1, 0, *order]).sketch
            for order in (rest, rest[::-1])
        ]
        most = max(float(np.linalg.norm(change)) for change in changes)
        least = max(_PAIRED * most, self.tolerance * self.runs[0].norm)
        return bool(np.linalg.norm(changes[0] - changes[1]) > least)

    @cached_property
    def moves(self) -> bool:
        """Return True if reordered micro-batches make another update."""
        for item in [own for own in self.layouts if own.micro_batches > 1][:1]:
            other = Layout(tuple((share[1], share[0], *share[2:]) for share in item.parts))
            return self.off(self.run(other), self.run(item).sketch) > 1
        return False

    @cached_property
    def repeated(self) -> float:
        """Return the relative change of one device's update from call to call."""
        return _gap(self.fresh(self.layouts[0]), self.one)

    @cached_property
    def rounded(self) -> float:
        """Return the relative rounding error of updates, without values set by a clipping limit.

        Behind a limit by value, a division by the examples hides the format of the gradients;
        single examples are not divided.
        """
        runs = [self.runs[0]]
        if self.limits:
            runs += [run for run in self.some_alone if run.norm > 0]
        return float(max(run.rounding for run in runs) / np.sqrt(12))  # as even within one distance

    @cached_property
    def of_repeats(self) -> Noise:
        """The noise of one device's update in repeated and turned runs, and of its format."""
        turned = 0.0 if self.by_place else self.turned
        size = max(turned, self.repeated, self.rounded, _INSIDE)
        return Noise(max(size / float(np.sqrt(self.alive)), self.known_noise), self.alive)

    @property
    def noise(self) -> Noise:
        """Return the noise of the updates.

        Raises:
            StepError: It is not noise: the step keeps state.
        """
        if self.repeated > NO_SUM:
            raise StepError(KEEPS_STATE)
        return self.of_repeats

    @property
    def tolerance(self) -> float:
        """Return the relative residual that noise may leave."""
        return self.noise.limit(self.alive)

    def off(self, run: Recorded, made: Vector) -> float:
        """Return the distance of an update from its prediction; up to 1 it may be noise."""
        amount = np.hypot(np.linalg.norm(run.sketch), np.linalg.norm(made))
        apart = float(np.linalg.norm(run.sketch - made) / amount)
        least = Noise(_INSIDE / float(np.sqrt(self.alive)), self.alive).limit(self.alive)
        return apart / (least if apart <= least else self.tolerance)

    @cached_property
    def agree(self) -> bool:
        """Return True if the updates of all layouts are that of one device, up to noise."""
        return all(self.off(run, self.one) <= 1 for run in self.runs[1:])

    @cached_property
    def right_when_equal(self) -> bool:
        """Return True if equal shards, as from a sampler, make the update of one device."""
        pairs = itertools.product(self.settings.replicas, self.settings.micro_batches)
        items = [layout([self.examples // (r * k) * k] * r, k) for r, k in pairs if r * k > 1]
        equal = [item for item in items if item.examples]

        def agrees(item: Layout) -> bool:
            return self.off(self.run(item), self.alone(item.examples).sketch) <= 1

        return bool(equal) and if_taken(lambda: all(map(agrees, equal)), False)

    @cached_property
    def by_constant(self) -> bool:
        """Return True for a fixed divisor: twice the examples make twice the update."""
        twice = if_taken(lambda: self.alone([*range(self.examples)] * 2).norm, 0.0)
        return abs(twice / self.runs[0].norm - 2) < NO_SUM

    @property
    def frame(self) -> Frame:
        """The layouts, with examples that count alike."""
        return Frame(self.layouts, np.ones(self.examples), False)

    @cached_property
    def some_alone(self) -> list[Recorded]:
        """The updates of some examples by themselves, as far as the step takes them."""
        found = (if_taken(partial(self.alone, [i]), None) for i in range(self.examples)[:_SINGLES])
        return [run for run in found if run is not None]

    @cached_property
    def lengths(self) -> list[Vector]:
        """Return the distinct norms of one device's updates."""
        runs: list[Recorded] = []
        for run in (*self.shares_alone, *self.some_alone):
            if not any(np.allclose(run.sketch, own.sketch, atol=1e-6 * own.norm) for own in runs):
                runs.append(run)
        return [run.lengths for run in runs]

    @cached_property
    def limits(self) -> list[float]:
        """Lengths that several of them have, none being longer."""
        return limited_lengths(self.lengths)

    @property
    def shares_alone(self) -> list[Recorded]:
        """The updates of all shares by themselves."""
        return [self.alone(sum(share, ())) for item in self.layouts for share in item.parts]

    @cached_property
    def limited(self) -> bool:
        """Return True if shards also reach such a norm; single examples may without clipping."""
        return any(run.has_length(self.limits) for run in self.shares_alone)

    @cached_property
    def limit_powers(self) -> tuple[float, float] | None:
        """Powers of R and K by which the lengths of all updates are one: a limit of all of them."""
        norms = np.array([run.norm for run in self.runs])
        for a, b in POWERS if self.limited else ():
            own = norms * [item.replicas**a * item.micro_batches**b for item in self.layouts]
            if np.ptp(own) <= SAME * own.max():
                return a, b
        return None


def _gap(run: Recorded, one: Vector) -> float:
    apart = float(np.linalg.norm(run.sketch - one))
    found = apart / max(float(np.linalg.norm(one)), 1e-300) if apart else 0.0
    return found if np.isfinite(found) else np.inf


@dataclass
class Sums(Runs):
    """Runs of a step, in terms of the weights of the examples."""

    def fresh(self, item: Layout) -> Recorded:
        """The step on a layout, again; StepError if its update is not finite."""
        run = super().fresh(item)
        check_finite(run, item)
        return run

    @cached_property
    def singles(self) -> list[Recorded]:
        """One run per example."""
        return [self.alone([i]) for i in range(self.examples)]

    def without_term(self) -> Sums:
        """The same without a term that belongs to no example, if examples are summed.

        n examples together then hold it once, alone n times: the sum of the singles less the whole
        is n - 1 times the term. Some of the examples must say the same.

        Raises:
            StepError: An example alone changes nothing, or nothing then; or it is not finite.
        """
        rows, count = checked_rows(self.singles), max(2, self.examples // 2)
        whole, half = self.runs[0], self.alone(range(count)).sketch
        term = (rows.sum(axis=0) - whole.sketch) / (self.examples - 1)
        size, data = float(np.linalg.norm(term)), rows[:count].sum(axis=0) - count * term
        left = float(np.linalg.norm(half - data - term))
        # Means fail here: they miss by as much as their examples differ.
        fails = left > 0.25 * min((count - 1) * size, float(np.linalg.norm(data)))
        if fails or not size > FLOOR * float(np.linalg.norm(whole.sketch)):
            return self
        samples = np.sum([single.samples for single in self.singles], axis=0) - whole.samples
        own = replace(whole, sketch=term, samples=samples / (self.examples - 1))
        known = {item: run.without(own) for item, run in self.known.items()}
        if not all(run.sketch.any() for run in known.values()):
            raise StepError(
                "[step] rounding hides the weights: beside a term that belongs to no example "
                "(regularisation) an example changes nothing; make that term smaller, or use "
                "float64."
            )
        return replace(self, known=known, term=own)

    @cached_property
    def sketches(self) -> Vector:
        """The updates of single examples, a row for each."""
        return np.stack([single.sketch for single in self.singles])

    @cached_property
    def basis(self) -> Basis:
        """Return the basis of the single examples' updates."""
        return Basis(self.singles, self.recorder.parameters)

    @cached_property
    def fits(self) -> list[Fit]:
        """The weights of the examples in all layouts."""
        return [Fit(self.basis, run.sketch) for run in self.runs]

    @cached_property
    def halves(self) -> list[tuple[list[int], Fit]]:
        """Two parts of the examples, which may overlap, and what they weigh on one device."""
        count, some = self.examples, max(2, self.examples // 2)
        parts = (list(range(some)), list(range(min(some, count - 2), count)))
        return [(own, Fit(self.basis, self.alone(own).sketch)) for own in parts]

    @cached_property
    def of_halves(self) -> Noise:
        """The noise that some of the examples on one device show, if their sum explains them.

        Whatever no weights explain is noise, and so are the weights of examples that a run has not
        seen; the larger of both counts.
        """
        left, unseen = [], []
        for own, fit in self.halves:
            left.append(float(np.linalg.norm(fit.residual)) / fit.amount)
            unseen += np.delete(fit.weights / self.basis.gain / fit.amount, own).tolist()
        numbers = self.basis.spare * len(left)
        both = ((left, max(numbers, 1)), (unseen, len(unseen)))
        return Noise(max(float(np.linalg.norm(x) / np.sqrt(n)) for x, n in both), numbers + 2)

    @cached_property
    def of_format(self) -> float:
        """The level of what rounding leaves, which is alike in runs that are nearly alike.

        Beside a large term, kept apart here or not, it is all that tells the examples.
        """
        whole = self.one if self.term is None else self.one + self.term.sketch
        size = self.rounded * float(np.linalg.norm(whole))
        return size / self.fits[0].amount / float(np.sqrt(self.alive))

    @property
    def of_wholes(self) -> Noise:
        """The noise of whole updates, whatever examples explain."""
        return replace(self.of_repeats, level=max(self.of_repeats.level, self.of_format))

    @property
    def noise(self) -> Noise:
        """Return the noise of the updates."""
        if not self.is_sum:
            return self.of_wholes
        return replace(self.of_halves, level=max(self.of_halves.level, self.of_format))

    @cached_property
    def is_sum(self) -> bool:
        """Return True if example weights explain the update of the whole batch.

        What they leave unexplained is not noise if it stays in another order.
        """
        fit = self.fits[0]
        usual = self.of_halves.level * np.sqrt(self.basis.spare) * fit.amount / fit.scale
        left = float(np.linalg.norm(fit.residual)) / fit.scale
        if left > NO_SUM or usual <= _ROUGH:
            return left <= NO_SUM
        return bool(usual <= _BENT * max(self.turned, 2 * self.runs[0].rounding))

    @cached_property
    def detection_limit(self) -> float:
        """Return the detection limit: the error of weights that noise leaves, by the largest."""
        amount = max(fit.amount / max(np.abs(fit.weights).max(), 1e-300) for fit in self.fits)
        # Twice: the weights they are compared with are found too, and every replica rounds.
        noise = 2 * self.noise.factor * self.noise.level * self.basis.gain.max() * amount
        return float(max(noise, FLOOR))

    @cached_property
    def lengths(self) -> list[Vector]:
        """Return the norms of one device's updates."""
        return [run.lengths for run in (*self.singles, self.runs[0])]

    @cached_property
    def limited(self) -> bool:
        """Return True if updates reach such a norm."""
        return bool(self.limits)

    @property
    def additive(self) -> bool:
        """Return True if a part of the examples has the weights of the whole batch."""
        for part, _ in self.halves:
            own = np.zeros(self.examples)
            own[part] = self.weights[part]
            said = np.sign(own) if self.fixed else own / own.sum()
            if self.off(self.alone(part), said @ self.sketches) > 1:
                return False
        return True

    def off(self, run: Recorded, made: Vector) -> float:
        """Return the distance of an update from its prediction; up to 1 it may be noise.

        What the examples span and what they do not are judged each by themselves, so that the few
        numbers that tell their weights do not drown in the many others.
        """
        amount = max(Fit(self.basis, own).amount for own in (run.sketch, made))
        apart = run.sketch - made
        inside = self.basis.directions @ apart
        outside = apart - inside @ self.basis.directions
        parts = ((inside, self.examples), (outside, self.basis.spare))
        norms = [float(np.linalg.norm(part)) / self.noise.limit(count) for part, count in parts]
        return max(norms) / amount

    @property
    def sound(self) -> bool:
        """Return True if all layouts match one device, and that matches the user's weights."""
        said = self.right[0] @ self.sketches
        return self.agree and (not self.given or self.off(self.runs[0], said) <= 1)

    def untold(self, nearly_right: bool) -> list[FailureMode]:
        """Return the entries that the updates do not refute, if they are nearly correct or not."""
        near = _LITTLE * self.right.max()
        alike = [
            (row, table) for row, table in self.said
            if row and (np.abs(table - self.right).max() <= near) == nearly_right
        ]  # fmt: skip
        return [row for row, table in alike if not self.tells(table)]

    def tells(self, table: Vector) -> bool:
        """Return True if the updates, which are those of one device, refute a table of weights.

        One number tells on a layout: how far the update goes where the table says. What updates are
        apart shows the noise of that as well, without what is bent on one device.
        """
        apart = np.stack([run.sketch for run in self.runs]) - self.one
        ways = (table - self.right) @ self.sketches
        sizes = np.linalg.norm(ways, axis=1)
        amounts = np.array([fit.amount for fit in self.fits])
        spread = np.linalg.norm(apart, axis=1).max() / np.sqrt(self.alive)
        seen = FLOOR * amounts + self.noise.factor * spread
        limits = np.minimum(self.noise.limit(1) * amounts, seen)
        found = np.abs(((ways - apart) * ways).sum(axis=1))
        return bool((found > limits * sizes).any())

    @cached_property
    def explained(self) -> bool:
        """Return True if example weights explain all updates, up to noise."""
        limit = self.noise.limit(self.basis.spare)
        return all(float(np.linalg.norm(fit.residual)) <= limit * fit.amount for fit in self.fits)

    @property
    def bench(self) -> Bench:
        """Return a bench of the updates in the span of the examples."""
        ways = self.basis.directions
        seen = [ways @ run.sketch for run in self.runs]
        images = [ways @ self.sketches.T] * len(seen)
        return Bench(self, seen, images, self.noise.limit(self.examples))

    @property
    def power(self) -> int:
        """Return the power of the number of examples that multiplies the mean of one device."""
        alone = self.fits[0].weights
        if self.term is not None or (alone <= FLOOR * alone.max()).any():
            return 0
        totals = [(self.examples, alone.sum())]
        totals += [(len(own), fit.weights.sum()) for own, fit in self.halves]
        powers = [np.log(max(total, 1e-300)) / np.log(count) for count, total in totals]
        power = round(powers[0])
        if power == 1 and np.ptp(alone) <= NO_SUM:
            return 0
        return power if abs(power) <= 2 and np.ptp([power, *powers]) <= SAME else 0

    def per_mean(self) -> Sums:
        """The same without that power."""
        self.recorder.power = power = self.power
        known = {item: run.times(len(item.examples) ** -power) for item, run in self.known.items()}
        given = self.weights if self.given else None
        return replace(self, known=known).weighed(given)

    def weighed(self, given: npt.ArrayLike | None) -> Sums:
        """The same with the weights of the examples on one device."""
        alone, count = self.fits[0].weights, self.examples
        together = self.sketches.sum(axis=0)
        fixed, mean = (self.off(self.runs[0], together / by) for by in (1, count))
        even = min(fixed, mean) <= 1 or (alone <= FLOOR * alone.max()).any()
        even = even or np.ptp(alone) <= BEND * alone.max()
        own = np.ones(count) if even else alone / alone.sum() * count
        weights = own if given is None else np.asarray(given, dtype=np.float64)
        return replace(self, weights=weights, fixed=fixed <= min(1, mean))
