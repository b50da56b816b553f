"""What one device does with examples, alone and together: all else is measured by it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from samegrad.testing._batches import StepError
from samegrad.testing._layouts import Layout, layout
from samegrad.testing._term import Term, term_of
from samegrad.testing._updates import Recorded, Recorder
from samegrad.testing._weights import Basis, Fit, Noise, checked_rows, noise_beside_a_term, noise_of

ENOUGH = 6  # independent examples tell shares of different sizes apart
NO_SUM = 0.02  # of the update of the whole batch, which no weights of examples explain
KEEPS_STATE = (
    "[step] the same input gave another update: it keeps state between calls, or draws random "
    "numbers; begin with the same parameters, slots and seed in each call."
)
_READABLE = 0.1  # error of weights, relative, that tells the rows of the catalogue apart


@dataclass(frozen=True)
class OneDevice:
    """One device's runs.

    Args:
        singles: One per example, without the term.
        whole: All examples, without the term.
        basis: Of the singles.
        noise: Of the updates.
        is_sum: Whether weights of examples explain the update of all of them.
        term: What every run holds once, where examples are added up.
        recorder: For more runs of the same examples.
        halves: Numbers of some examples, and what they weigh together on one device.
    """

    singles: list[Recorded]
    whole: Recorded
    basis: Basis
    noise: Noise
    is_sum: bool
    term: Term | None
    recorder: Recorder
    halves: list[tuple[list[int], Fit]]

    def without_term(self, run: Recorded) -> Recorded:
        """The run less the term."""
        return run if self.term is None else self.term.removed(run)

    def run(self, item: Layout) -> Recorded:
        """The step on one more layout, without the term."""
        return self.without_term(self.recorder.run(item))

    def steady(self) -> list[int]:
        """The examples without those whose weights drown in noise."""
        kept = list(range(len(self.singles)))
        while self.is_sum and len(kept) > ENOUGH:
            singles = [self.singles[i] for i in kept]
            basis = Basis(singles, 0)
            scale = float(np.linalg.norm(np.sum([single.sketch for single in singles], axis=0)))
            together = Fit(np.ones(len(kept)), np.zeros(1), scale)
            if self.noise.tolerance(basis, [together]) <= _READABLE:
                break
            kept.pop(int(np.argmax(basis.gain)))
        return kept


def one_device(recorder: Recorder, singles: list[Recorded]) -> OneDevice:
    """Runs the examples together.

    Args:
        recorder: Of the step, with the same examples.
        singles: One run per example.

    Raises:
        StepError: Weights cannot be found in these updates.
    """
    count = len(singles)
    checked_rows(singles)
    whole = finite_run(recorder, layout([count]))
    some = max(2, count // 2)
    parts = [list(range(some)), list(range(min(some, count - 2), count))]
    halves = [finite_run(recorder, Layout(((tuple(part),),))) for part in parts]
    term = term_of(singles, whole, halves[0], some)
    if term is not None:
        singles = [term.removed(single) for single in singles]
        if not all(single.sketch.any() for single in singles):
            raise StepError(
                "[step] rounding hides the weights: beside a term that belongs to no example "
                "(regularisation) an example changes nothing; make that term smaller, or use "
                "float64."
            )
        halves = [term.removed(half) for half in halves]
        whole = term.removed(whole)
    basis = Basis(singles, recorder.parameters)
    fits = [basis.fit(run) for run in (whole, *halves)]
    is_sum = fits[0].unexplained <= NO_SUM
    absent = [[i for i in range(count) if i not in part] for part in parts]
    noise = noise_of(basis, fits[1:], absent) if is_sum else noise_beside_a_term(basis, fits)
    of_parts = list(zip(parts, fits[1:], strict=True))
    return OneDevice(singles, whole, basis, noise, is_sum, term, recorder, of_parts)


def finite_run(recorder: Recorder, item: Layout) -> Recorded:
    """A run of several examples.

    Raises:
        StepError: Its update is not finite.
    """
    run = recorder.run(item)
    if not np.isfinite(run.sketch).all():
        raise StepError(
            f"[step] the update is not finite (NaN or inf) for {item}, though those of single "
            "examples are: look for a division by a count or weight that is 0 there."
        )
    return run


def check_memory(recorder: Recorder, first: Recorded) -> None:
    """Runs the first example again; noise differs at random, a memory goes on from run to run.

    Raises:
        StepError: The step keeps state.
    """
    again = recorder.run(Layout((((0,),),)))
    size = float(np.linalg.norm(first.sketch))
    difference = float(np.linalg.norm(again.sketch - first.sketch))
    if not difference > 1e-4 * size:  # also where it is NaN, which others report
        return
    # What goes on has moved over all runs until now, but little from one run to the next.
    others = [again, *(recorder.run(Layout((((0,),),))) for _ in range(12))]
    steps = [np.linalg.norm(b.sketch - a.sketch) for a, b in itertools.pairwise(others)]
    if difference <= 1e-2 * size and max(steps) >= 0.4 * difference:
        return
    raise StepError(KEEPS_STATE)


__all__ = [
    "ENOUGH",
    "KEEPS_STATE",
    "NO_SUM",
    "OneDevice",
    "check_memory",
    "finite_run",
    "one_device",
]
