"""Finds out what a step does to the weights of the examples, and which mistake that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad.testing._batches import StepError, rows_of, take
from samegrad.testing._catalogue import CATALOGUE, Mistake, Situation
from samegrad.testing._diagnosis import Diagnosis
from samegrad.testing._empty import judge_empty
from samegrad.testing._judge import judge
from samegrad.testing._layouts import Layout, layout, layouts_for
from samegrad.testing._updates import Recorded, Recorder, Step, Vector
from samegrad.testing._weights import Basis, Fit, independent
from samegrad.testing._whole import diagnose_whole, lab_for

_ENOUGH = 6  # independent examples tell shares of different sizes apart
_FLOOR = 1e-5  # relative error of weights that float32 leaves at best


@lru_cache(maxsize=1024)
def _alone_weights(mistake: Mistake, weights: tuple[float, ...]) -> Vector:
    """What a mistake makes of each example by itself; 1 where that is nothing."""
    own = [mistake.predict(Situation(layout([1]), np.array([w])))[0] for w in weights]
    return np.array([value if value != 0 else 1.0 for value in own])


@dataclass
class Evidence:
    """All runs of a step, in terms of the weights of the examples."""

    singles: list[Recorded]
    basis: Basis
    weights: Vector  # of the examples, as one device has them
    fixed: bool  # a fixed number divides
    layouts: list[Layout]  # one device first
    runs: list[Recorded]
    fits: list[Fit]
    tolerance: float  # of weights, relative to the largest right one
    examples: npt.NDArray[np.intp]  # which ones of the batch

    @property
    def rows(self) -> list[Mistake]:
        """The rows of the catalogue that can happen here."""
        several = any(item.micro_batches > 1 for item in self.layouts)
        differ = bool(np.ptp(self.weights) > 1e-9)
        empty = any(0 in item.sizes for item in self.layouts)
        return [
            row
            for row in CATALOGUE
            if (row.fixed or not self.fixed)
            and (several or not row.micro)
            and (differ or not row.weighted)
            and (empty or not row.empty)
        ]

    def right(self, place: int) -> Vector:
        """The weights that layout `place` should have, in terms of the single updates."""
        situation = Situation(self.layouts[place], self.weights)
        return np.ones_like(self.weights) if self.fixed else situation.right

    def predicted(self, mistake: Mistake, place: int) -> Vector:
        """The weights that a mistake gives, in terms of the single updates it gives as well."""
        situation = Situation(self.layouts[place], self.weights)
        values = mistake.predict(situation)
        if self.fixed:
            return values / situation.right
        own = _alone_weights(mistake, tuple(self.weights))
        return np.asarray(values / own, dtype=np.float64)

    def error(self, expected: Callable[[int], Vector]) -> float:
        """How far the weights found are from those expected, relative to the right ones."""
        errors = []
        for place, fit in enumerate(self.fits):
            said = expected(place)
            scale = max(np.abs(self.right(place)).max(), np.abs(said).max())
            errors.append(float(np.abs(fit.weights - said).max() / scale))
        return max(errors)


def diagnose(
    step: Step,
    batch: Any,
    *,
    weights: Sequence[float] | None = None,
    replicas: Sequence[int] = (2, 3),
    micro_batches: Sequence[int] = (1,),
    examples: int = 12,
    empty_share: bool | None = None,
    seed: int = 0,
) -> Diagnosis:
    """Recovers the effective weight of every example from the updates of a step, and judges it.

    The step is run on single examples, on the whole batch on one device, and on several splits of
    it over replicas (and micro-batches). Every update is expressed in those of the single examples
    (least squares in float64): that gives the weight of each example, which is compared with the
    right one, the example's share of the global batch.

    The step must start from the same parameters each time, and return a linear function of the
    gradients: the gradients, or the change that plain SGD makes.

    A step that is no sum over examples (batch normalization, a limit on the gradient, a loss over
    pairs, dropout) is judged by whole updates: those of the batch and of each share on one device.

    What cannot be told apart: a term that each replica adds, and one that a factor for the data
    hits; moments and negatives that a replica computes by itself; which one of two parts of a loss
    has the wrong count; losses divided by examples, and examples that are averaged one by one.
    Factors in front of a limit on the gradient do not show. Dropout must draw the same numbers in
    each call; numbers that are independent on each replica hide the scaling, and are an error here.

    Args:
        step: Takes a list with a batch per replica (a list of micro-batches for each, where there
            are several) and returns the update, or an `Outcome`.
        batch: Arrays with examples along axis 0, in any structure.
        weights: What each example counts: sample weights, or its number of tokens. Default: what
            one device makes of them.
        replicas: Numbers of replicas to try.
        micro_batches: Numbers of micro-batches to try.
        examples: How many examples of the batch are used at most; a little fewer where their
            number could be divided by that of the replicas.
        empty_share: Whether a replica without examples is tried as well. Default: it is, but a
            step that cannot do without examples is not accused for that; a step says by an
            attribute `takes_empty_shares = False` that it must not be tried.
        seed: Of the projection of the updates.

    Returns:
        The verdict; it prints as a short table, the cause, the maths and the fix.

    Raises:
        StepError: The step cannot be judged: the message says why, and what to do.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(10, 20))
        >>> def mean_then_sum(shares):
        ...     return sum(share.mean(axis=0) for share in shares)
        >>> diagnose(mean_then_sum, x).cause.name
        'mean per replica, then sum'
        >>> diagnose(lambda shares: sum(s.sum(axis=0) for s in shares) / 10, x).correct
        True
    """
    refused: Exception | None = None
    try:
        evidence, recorder = _gather(step, batch, weights, replicas, micro_batches, examples, seed)
        verdict = judge(evidence, recorder, replicas, micro_batches, weights is not None)
    except _AloneError as error:
        refused, verdict = error.reason, None
    if verdict is None:
        verdict = diagnose_whole(lab_for(step, batch, replicas, micro_batches, seed))
        if verdict is None:
            raise refused or StepError("[step] the update of the batch is 0 or no number.")
        return verdict
    if empty_share is None and not getattr(step, "takes_empty_shares", True):
        empty_share = False
    if empty_share is not False:
        verdict = judge_empty(evidence, recorder, replicas, verdict, bool(empty_share))
    return verdict


def assert_replica_equivalent(step: Step, batch: Any, **options: Any) -> None:
    """Passes if R replicas (times K micro-batches) make the update of one device.

    Args:
        step: As of `diagnose`.
        batch: As of `diagnose`.
        **options: As of `diagnose`.

    Raises:
        AssertionError: They do not; the message is the diagnosis.
        StepError: The step cannot be judged.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(10, 20))
        >>> assert_replica_equivalent(lambda shares: np.concatenate(shares).mean(axis=0), x)
    """
    found = diagnose(step, batch, **options)
    if not found.correct or found.reported:
        raise AssertionError(str(found))


def _gather(
    step: Step,
    batch: Any,
    weights: Sequence[float] | None,
    replicas: Sequence[int],
    micro_batches: Sequence[int],
    examples: int,
    seed: int,
) -> tuple[Evidence, Recorder]:
    rows = rows_of(batch)
    if rows < 3:
        raise StepError(f"[diagnose] at least 3 examples are needed: got {rows}.")
    count = _indivisible(min(rows, examples), replicas)
    chosen = np.linspace(0, rows - 1, count).astype(np.intp)
    recorder = Recorder(step, take(batch, chosen), width=max(256, 8 * count), seed=seed)
    singles = _alone(recorder, count)
    _refuse_adaptive(singles)
    free = _with_room(independent(singles), recorder.parameters, replicas)
    if _ENOUGH <= len(free) < count:  # weights of the others could not be told apart
        chosen, singles = chosen[free], [singles[i] for i in free]
        recorder.use(take(batch, chosen))
        count = len(free)
    again = recorder.run(Layout((((0,),),)))
    difference = np.abs(again.sketch - singles[0].sketch).max()
    if difference > 1e-3 * np.abs(singles[0].sketch).max():
        raise StepError(
            "[step] the same input gave another update: it keeps state between calls, or draws "
            "random numbers; begin with the same parameters, slots and seed in each call."
        )
    basis = _basis(recorder, singles)
    layouts = [layout([count]), *layouts_for(count, replicas, micro_batches)]
    runs = [recorder.run(item) for item in layouts]
    fits = [basis.fit(run) for run in runs]
    given = None if weights is None else np.asarray(weights, dtype=np.float64)[chosen]
    evidence = _with_weights(
        given, singles, basis, layouts, runs, fits, recorder.parameters, chosen
    )
    return evidence, recorder


class _AloneError(Exception):
    """Single examples tell nothing; the reason is raised if the whole batch tells nothing too."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _indivisible(count: int, replicas: Sequence[int]) -> int:
    """A little fewer examples, so that shares cannot be even: that hides mistakes."""
    for fewer in range(count, max(_ENOUGH, count - 4) - 1, -1):
        if all(fewer % r for r in replicas if r > 1):
            return fewer
    return count


def _with_room(free: list[int], parameters: int, replicas: Sequence[int]) -> list[int]:
    """So few examples that their updates do not fill the space: terms show in what is left."""
    room = max(_ENOUGH + 1, parameters - 3)
    if len(free) <= room:
        return free
    return free[: _indivisible(room, replicas)]


def _alone(recorder: Recorder, count: int) -> list[Recorded]:
    """Each example by itself."""
    try:
        return [recorder.run(Layout((((i,),),))) for i in range(count)]
    except StepError:
        raise
    except Exception as error:  # statistics over one example, for instance
        raise _AloneError(error) from error


def _refuse_adaptive(singles: list[Recorded]) -> None:
    """Adam's first update has one size for all elements, whatever the gradient is."""
    several = [np.abs(single.samples) for single in singles if single.samples.size >= 8]
    moved = [values[values > 1e-3 * values.max()] for values in several if values.max() > 0]
    if moved and all(values.min() > 0.98 * values.max() for values in moved):
        raise StepError(
            "[step] all elements of each update have the same size, as those of an adaptive "
            "optimizer (Adam) or of a sign: that hides the scaling; return the gradients, or use "
            "plain SGD."
        )


def _basis(recorder: Recorder, singles: list[Recorded]) -> Basis:
    """That of single examples, if they tell what the whole batch does."""
    try:
        return Basis(singles, recorder.parameters)
    except StepError as error:
        whole = recorder.run(layout([len(singles)])).sketch
        rows = np.stack([single.sketch for single in singles])
        rows = rows[np.isfinite(rows).all(axis=1)]
        found = np.linalg.lstsq(rows.T, whole, rcond=None)[0] @ rows if len(rows) else 0.0
        if np.isfinite(whole).all() and np.linalg.norm(whole - found) > 0.02 * np.linalg.norm(
            whole
        ):
            raise _AloneError(error) from error
        raise


def _with_weights(
    given: Vector | None,
    singles: list[Recorded],
    basis: Basis,
    layouts: list[Layout],
    runs: list[Recorded],
    fits: list[Fit],
    parameters: int,
    chosen: npt.NDArray[np.intp],
) -> Evidence:
    """What one device takes as weights, and how exact all this is."""
    count = len(singles)
    alone = fits[0].weights
    width = len(singles[0].sketch)
    spare = max(min(parameters, width) - count, 1)
    noise = float(np.linalg.norm(fits[0].residual)) / np.sqrt(spare)
    even = np.full(count, 1.0 / count)
    # Six deviations of a weight, twice as the singles are noisy too, relative to a right weight.
    tolerance = float(max(_FLOOR, 12 * noise * basis.gain.max() * count))
    fixed = bool(np.abs(alone - 1).max() < max(tolerance, 1e-4))
    if given is not None:
        weights = given
    elif fixed or np.abs(alone - even).max() * count < tolerance or (alone <= 0).any():
        weights = np.ones(count)
    else:
        weights = alone / alone.sum() * count
    return Evidence(
        singles, basis, weights, fixed, layouts, runs, fits, min(tolerance, 0.2), chosen
    )
