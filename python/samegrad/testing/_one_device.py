"""What one device does with examples, alone and together: all else is measured by it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from samegrad.testing._layouts import ENOUGH, Layout, StepError, layout
from samegrad.testing._updates import ROUNDED, Recorded, Recorder, Vector, rounding_of


@dataclass(frozen=True)
class Term:
    """What belongs to no example.

    Args:
        sketch: Its part of the sketch of an update.
        samples: Its part of the samples.
    """

    sketch: Vector
    samples: Vector

    def removed(self, run: Recorded) -> Recorded:
        """The run without it; its loss, which may be divided otherwise, and its lengths stay."""
        return replace(run, sketch=run.sketch - self.sketch, samples=run.samples - self.samples)


def term_of(singles: list[Recorded], whole: Recorded, half: Recorded, count: int) -> Term | None:
    """The term, where examples are added up and not averaged.

    n examples together then hold it once, alone n times: the sum of the singles less the whole is
    n - 1 times the term. The first `count` examples must say the same.

    Args:
        singles: One run per example, on one device as all of them.
        whole: All examples.
        half: The first `count` examples.
        count: At least 2, fewer than all.
    """
    rows = np.stack([single.sketch for single in singles])
    more = len(rows) - 1
    term = (rows.sum(axis=0) - whole.sketch) / more
    size = float(np.linalg.norm(term))
    if not size > 1e-5 * float(np.linalg.norm(whole.sketch)):
        return None
    data = rows[:count].sum(axis=0) - count * term
    left = float(np.linalg.norm(half.sketch - data - term))
    # Means fail here: they miss by as much as their examples differ.
    if left > 0.25 * min((count - 1) * size, float(np.linalg.norm(data))):
        return None
    samples = np.sum([single.samples for single in singles], axis=0) - whole.samples
    return Term(term, samples / more)


@dataclass(frozen=True)
class Fit:
    """An update as a sum of the examples' own updates.

    Args:
        weights: One per example.
        residual: What no weights explain.
        scale: The norm of the update.
    """

    weights: Vector
    residual: Vector
    scale: float

    @property
    def unexplained(self) -> float:
        """The norm of the residual, relative to the update's."""
        return float(np.linalg.norm(self.residual)) / max(self.scale, 1e-300)


_SPARE = 10  # numbers beyond the weights that tell how noisy an update is


def independent(singles: list[Recorded], enough: int, least: float = 1e-3) -> list[int]:
    """Numbers of examples whose updates do not depend on each other, the most different ones.

    Args:
        singles: One run per example.
        enough: So many are taken where few parameters leave little to see noise by.
        least: How much of an update the others must not explain.
    """
    left = np.stack([single.sketch for single in singles])
    norms = np.linalg.norm(left, axis=1)
    usable = np.isfinite(norms) & (norms > 0)
    left = np.where(usable[:, None], left / np.where(usable, norms, 1.0)[:, None], 0.0)
    chosen: list[int] = []
    alive = int((left != 0).any(axis=0).sum())
    for _ in range(min(len(singles), max(enough, alive - _SPARE))):
        lengths = np.linalg.norm(left, axis=1)
        best = int(np.argmax(lengths))
        if lengths[best] < least:
            break
        chosen.append(best)
        direction = left[best] / lengths[best]
        left = left - np.outer(left @ direction, direction)
    return sorted(chosen)


def checked_rows(singles: list[Recorded]) -> Vector:
    """The updates of single examples.

    Raises:
        StepError: One is not finite, or 0.
    """
    rows = np.stack([single.sketch for single in singles])
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise StepError(
            f"[step] the update of example {bad} alone is not finite; the step must work on one "
            "example (no statistics over a batch), and the data must be finite."
        )
    norms = np.linalg.norm(rows, axis=1)
    if (norms == 0).any():
        bad = int(np.flatnonzero(norms == 0)[0])
        raise StepError(
            f"[step] example {bad} alone changes nothing, so that its weight cannot be seen: "
            "use data with a loss above 0, and parameters that are not at a minimum."
        )
    return rows


class DependentError(StepError):
    """The updates of single examples depend on each other."""


class Basis:
    """The updates of single examples, in which all others are expressed.

    Args:
        singles: One run per example.

    Raises:
        DependentError: The updates of some examples depend on each other, so that their weights
            cannot be told apart.
    """

    def __init__(self, singles: list[Recorded], parameters: int) -> None:
        rows = checked_rows(singles)
        norms = np.linalg.norm(rows, axis=1)
        self.norms = norms
        unit = rows / norms[:, None]
        values = np.linalg.svd(unit, compute_uv=False)
        self.condition = float(values[0] / max(values[-1], 1e-300))
        if self.condition > 1e7:
            raise DependentError(
                f"[step] the updates of {len(singles)} examples depend on each other: got "
                f"{parameters} parameters; use at least {len(singles)} parameters that see the "
                "examples differently, fewer examples, or different ones."
            )
        self._inverse = np.linalg.pinv(unit.T)
        self._unit = unit
        # How much noise in a number of the sketch moves each weight.
        self.gain = np.linalg.norm(self._inverse, axis=1) / norms
        # Numbers of the sketch that are left to show noise.
        self.spare = int((rows != 0).any(axis=0).sum()) - len(rows)

    def fit(self, run: Recorded) -> Fit:
        """The weights of the examples in an update (least squares in float64)."""
        scaled = self._inverse @ run.sketch
        residual = run.sketch - self._unit.T @ scaled
        return Fit(scaled / self.norms, residual, float(np.linalg.norm(run.sketch)))


@dataclass(frozen=True)
class Noise:
    """How noisy the updates are.

    A run's noise is taken to grow with its update and with those of the single examples, in which
    it is expressed, and to be alike in all numbers of the sketch.

    Args:
        level: Standard deviation of a number of the sketch, relative to the updates.
        factor: Deviations that a weight may be off: many where few numbers tell the level.
        spare: How many numbers of a sketch the weights leave to noise.
    """

    level: float
    factor: float
    spare: int

    def usual(self, basis: Basis, fit: Fit) -> float:
        """How much of an update noise leaves unexplained, relative to the update."""
        found = self.level * np.sqrt(max(self.spare, 1)) * _amount(basis, fit)
        return float(found) / max(fit.scale, 1e-300)

    def residual(self, basis: Basis, fit: Fit) -> float:
        """How much of it may be left unexplained at most."""
        return max(10.0, self.factor) * self.usual(basis, fit)

    def tolerance(self, basis: Basis, fits: list[Fit]) -> float:
        """How far weights may be off, relative to the largest weight of their run."""
        parts = [_amount(basis, fit) / max(np.abs(fit.weights).max(), 1e-300) for fit in fits]
        # Twice: the weights they are compared with are found too, and every replica rounds.
        return float(2 * self.factor * self.level * basis.gain.max() * max(parts))


def noise_of(basis: Basis, fits: list[Fit], absent: list[list[int]]) -> Noise:
    """The noise of runs of one device on some of the examples.

    Whatever no weights explain is noise, and so are the weights of examples that a run has not
    seen; the larger of both counts.

    Args:
        basis: In which the runs are expressed.
        fits: Of the runs.
        absent: For each run, the examples that it has not seen.
    """
    spare = max(basis.spare, 0)
    left = [float(np.linalg.norm(fit.residual)) / _amount(basis, fit) for fit in fits]
    unseen = np.concatenate(
        [fit.weights[own] / basis.gain[own] / _amount(basis, fit)
         for fit, own in zip(fits, absent, strict=True)]
    )  # fmt: skip
    level = max(
        float(np.linalg.norm(left)) / np.sqrt(max(spare * len(fits), 1)),
        float(np.linalg.norm(unseen)) / np.sqrt(len(unseen)),
    )
    return Noise(level, _deviations(spare * len(fits) + 2), spare)


def _amount(basis: Basis, fit: Fit) -> float:
    """The norm of all updates that a run is compared with, as independent noise adds up."""
    return max(float(np.hypot(fit.scale, np.linalg.norm(fit.weights * basis.norms))), 1e-300)


def _deviations(spare: int, chance: float = 1e-7) -> float:
    """The two-sided quantile of Student's t, for a level that so many numbers tell.

    With t = √n cot φ its tail is ∫₀^φ sin^(n-1) / ∫₀^(π/2) sin^(n-1).

    Example:
        >>> [round(_deviations(n), 1) for n in (1000, 10)]
        [5.4, 13.4]
    """
    angles = np.geomspace(1e-9, np.pi / 2, 20_000)
    density = np.sin(angles) ** (spare - 1)
    areas = np.concatenate([[angles[0] * density[0] / spare], np.diff(angles)])
    areas[1:] *= (density[1:] + density[:-1]) / 2
    tail = np.cumsum(areas)
    return float(np.sqrt(spare) / np.tan(np.interp(chance, tail / tail[-1], angles)))


NO_SUM = 0.02  # of the update of the whole batch, which no weights of examples explain
KEEPS_STATE = (
    "[step] the same input gave another update: it keeps state between calls, or draws random "
    "numbers; begin with the same parameters, slots and seed in each call."
)
_ROUGH = 2.0**-7  # of an update: so much a rounding to bfloat16 leaves, which does not show later
_BENT = 20  # times what noise moves an update: then it is another function of the examples
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
    absent = [[i for i in range(count) if i not in part] for part in parts]
    noise = noise_of(basis, fits[1:], absent)
    is_sum = fits[0].unexplained <= NO_SUM and not _is_bent(
        recorder, whole, noise.usual(basis, fits[0])
    )
    of_parts = list(zip(parts, fits[1:], strict=True))
    return OneDevice(singles, whole, basis, noise, is_sum, term, recorder, of_parts)


def _is_bent(recorder: Recorder, whole: Recorded, unexplained: float) -> bool:
    """Whether what examples leave unexplained is no noise: it stays in the opposite order."""
    if unexplained <= _ROUGH:
        return False
    order = tuple(range(recorder.examples))[::-1]
    turned = recorder.run(Layout(((order,),)))
    size = float(np.linalg.norm(whole.sketch))
    moved = float(np.linalg.norm(turned.sketch - recorder.run(Layout(((order[::-1],),))).sketch))
    rounded = ROUNDED * rounding_of(turned.samples)
    return _BENT * max(moved / size, rounded) < unexplained


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
