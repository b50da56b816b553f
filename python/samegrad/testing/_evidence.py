"""All runs of a step, in terms of the weights of the examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from samegrad.testing._batches import StepError, StepFailedError, rows_of, take
from samegrad.testing._layouts import Layout, layout, layouts_for
from samegrad.testing._limits import is_limited
from samegrad.testing._one_device import (
    ENOUGH,
    NO_SUM,
    OneDevice,
    check_memory,
    finite_run,
    one_device,
)
from samegrad.testing._runs import Runs
from samegrad.testing._select import LOOSE, Bench
from samegrad.testing._settings import Settings
from samegrad.testing._updates import Recorded, Recorder, Step, Vector
from samegrad.testing._weights import Basis, DependentError, Fit, independent

_FEWEST = 3  # examples
_FLOOR = 1e-5  # relative error of weights that float32 leaves at best


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
    chosen = np.linspace(0, rows - 1, settings.usable(min(rows, settings.examples))).astype(np.intp)
    width = max(256, 8 * len(chosen))
    recorder = Recorder(step, take(batch, chosen), width=width, seed=settings.seed)
    singles = _alone(recorder, len(chosen))
    check_memory(recorder, singles[0])
    _refuse_adaptive(singles)

    def keep(free: list[int]) -> None:
        nonlocal chosen, singles
        free = free[: settings.usable(len(free))]
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
    exact = max(device.noise.tolerance(device.basis, fits), _FLOOR)
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


__all__ = ["AloneError", "Evidence", "gather"]
