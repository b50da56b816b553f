"""Runs of a step on layouts of a batch, and how far noise may move their updates.

Every tolerance of a verdict comes from here: it is measured by runs of one device, which differ by
noise only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from samegrad.testing._batches import StepError
from samegrad.testing._layouts import Layout
from samegrad.testing._limits import is_limited, of_shares
from samegrad.testing._one_device import KEEPS_STATE, NO_SUM
from samegrad.testing._select import Frame
from samegrad.testing._settings import Settings
from samegrad.testing._updates import ROUNDED, Recorded, Recorder, Vector, rounding_of

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


__all__ = ["DRIFT", "Runs"]
