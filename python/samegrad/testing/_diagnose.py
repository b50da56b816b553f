"""Finds out what a step does to the weights of the examples, and which mistake that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad.testing._auxiliary import explain_residuals
from samegrad.testing._batches import StepError, rows_of, take
from samegrad.testing._catalogue import CATALOGUE, Mistake, Situation
from samegrad.testing._clipping import explain_clipping
from samegrad.testing._diagnosis import Diagnosis, share_rows
from samegrad.testing._layouts import Layout, layout, layouts_for
from samegrad.testing._one_device import ENOUGH, OneDevice, check_memory, finite_run, one_device
from samegrad.testing._reported import explain_loss
from samegrad.testing._updates import Recorded, Recorder, Step, Vector
from samegrad.testing._weights import Basis, Fit, independent

_BLIND = 0.5  # relative error of weights at which right and wrong look alike
_FLOOR = 1e-5  # relative error of weights that float32 leaves at best


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
    exact: float  # the tolerance without a limit: what the noise leaves
    device: OneDevice

    def held(self, weights: Vector) -> float:
        """How often a term of the singles comes along with such weights."""
        return 1.0 if self.device.term is not None else float(weights.sum())

    @property
    def rows(self) -> list[Mistake]:
        """The rows of the catalogue that can happen here."""
        several = any(item.micro_batches > 1 for item in self.layouts)
        differ = bool(np.ptp(self.weights) > 1e-9)
        return [
            row
            for row in CATALOGUE
            if (row.fixed or not self.fixed)
            and (several or not row.micro)
            and (differ or not row.weighted)
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
        own = np.array(
            [mistake.predict(Situation(layout([1]), self.weights[i : i + 1]))[0]
             for i in range(len(self.weights))]
        )  # fmt: skip
        return values / np.where(own == 0, 1.0, own)

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
    empty_share: bool = False,
    even: bool = False,
    seed: int = 0,
) -> Diagnosis:
    """Recovers the effective weight of every example from the updates of a step, and judges it.

    The step is run on single examples, on the whole batch on one device, and on several splits of
    it over replicas (and micro-batches). Every update is expressed in those of the single examples
    (least squares in float64): that gives the weight of each example, which is compared with the
    right one, the example's share of the global batch.

    The step must start from the same parameters each time, and return a linear function of the
    gradients: the gradients, or the change that plain SGD makes.

    Args:
        step: Takes a list with a batch per replica (a list of micro-batches for each, where there
            are several) and returns the update, or an `Outcome`.
        batch: Arrays with examples along axis 0, in any structure.
        weights: What each example counts: sample weights, or its number of tokens. Default: what
            one device makes of them.
        replicas: Numbers of replicas to try.
        micro_batches: Numbers of micro-batches to try.
        examples: How many examples of the batch are used at most.
        empty_share: Whether a replica without examples is tried as well.
        even: Whether all shares are of one size, for steps that take no others; what can then not
            be told apart is noted.
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
    settings = _Settings(weights, replicas, micro_batches, examples, even, seed)
    evidence = _gather(step, batch, settings)
    verdict = _judge(evidence)
    if verdict.correct and empty_share:
        verdict = _try_empty(step, batch, evidence, verdict)
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


@dataclass(frozen=True)
class _Settings:
    """Arguments of `diagnose`."""

    weights: Sequence[float] | None
    replicas: Sequence[int]
    micro_batches: Sequence[int]
    examples: int
    even: bool
    seed: int

    def check(self, rows: int) -> None:
        """Whether all of this can be tried on so many examples.

        Raises:
            StepError: It cannot.
        """
        for name in ("replicas", "micro_batches"):
            counts = tuple(getattr(self, name))
            if not counts or any(n != int(n) or n < 1 for n in counts):
                raise StepError(f"[diagnose] {name} must be counts of at least 1: got {counts}.")
        if min(rows, self.examples) < 3:
            raise StepError(
                f"[diagnose] at least 3 examples are needed: got a batch of {rows}, and "
                f"examples={self.examples}."
            )
        if self.weights is None:
            return
        weights = np.asarray(self.weights, dtype=np.float64)
        if weights.shape != (rows,) or not (np.isfinite(weights) & (weights > 0)).all():
            raise StepError(
                f"[diagnose] weights must be one positive number for each of the {rows} examples: "
                f"got shape {weights.shape}, from {np.min(weights, initial=np.inf):g}; leave out "
                "examples without weight."
            )

    def usable(self, count: int) -> int:
        """How many of so many examples the layouts can take."""
        if not self.even:
            return count
        whole = math.lcm(*(r * k for r in self.replicas for k in self.micro_batches))
        if count < max(whole, 3):
            raise StepError(
                f"[diagnose] even shares for replicas={tuple(self.replicas)} and micro_batches="
                f"{tuple(self.micro_batches)} take a multiple of {whole} independent examples: got "
                f"{count}; use more examples, or fewer replicas."
            )
        return count // whole * whole


def _gather(step: Step, batch: Any, settings: _Settings) -> Evidence:
    rows = rows_of(batch)
    settings.check(rows)
    chosen = np.linspace(0, rows - 1, settings.usable(min(rows, settings.examples))).astype(np.intp)
    width = max(256, 8 * len(chosen))
    recorder = Recorder(step, take(batch, chosen), width=width, seed=settings.seed)
    singles = [recorder.run(Layout((((i,),),))) for i in range(len(chosen))]
    check_memory(recorder, singles[0])

    def keep(free: list[int]) -> None:
        nonlocal chosen, singles
        free = free[: settings.usable(len(free))]
        chosen, singles = chosen[free], [singles[i] for i in free]
        recorder.use(take(batch, chosen))

    free = independent(singles, ENOUGH)
    if ENOUGH <= len(free) < len(chosen):  # weights of the others could not be told apart
        keep(free)
    device = one_device(recorder, singles)
    free = device.steady()
    if len(free) < len(chosen):
        keep(free)
        device = one_device(recorder, singles)
    given = None if settings.weights is None else np.asarray(settings.weights)[chosen]
    layouts = layouts_for(len(chosen), settings.replicas, settings.micro_batches, settings.even)
    runs = [device.whole, *(device.without_term(finite_run(recorder, item)) for item in layouts)]
    fits = [device.basis.fit(run) for run in runs]
    exact = max(device.noise.tolerance(device.basis, fits), _FLOOR)
    weights, fixed = _device_weights(fits[0].weights, given, exact)
    return Evidence(
        device.singles, device.basis, weights, fixed, [layout([len(chosen)]), *layouts], runs,
        fits, min(exact, 0.2), chosen, exact, device,
    )  # fmt: skip


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


def _judge(evidence: Evidence) -> Diagnosis:
    notes = []
    if evidence.fixed:
        notes.append(
            "one device divides by a fixed number (or by nothing): a convention; a short last "
            "batch then counts less"
        )
    drift = max(run.drift for run in evidence.runs)
    if drift > 1e-6:
        return _wrong(evidence, _DRIFT, (), notes, "the replicas' copies differ")
    right = evidence.error(evidence.right)
    explained = all(
        fit.unexplained <= max(evidence.device.noise.residual(evidence.basis, fit), 1e-6)
        for fit in evidence.fits
    )
    if evidence.exact > _BLIND or (evidence.tolerance < right <= evidence.exact and explained):
        raise _hidden(evidence)
    if right <= evidence.tolerance and explained:
        alike = _alike(evidence)
        if alike:
            notes.append(
                "these splits cannot tell it from: " + ", ".join(row.name for row in alike)
            )
        return Diagnosis(
            True, None, notes=tuple(notes), reported=explain_loss(evidence),
            tolerance=evidence.tolerance, summary=_summary(evidence, "correct"),
        )  # fmt: skip
    if not explained:
        found = explain_residuals(evidence)
        if found:
            what = "another term is scaled with the replicas"
            return _wrong(evidence, found[0], tuple(found[1:]), notes, what)
    near = _ranked(evidence)
    if near:
        return _wrong(evidence, near[0], tuple(near[1:]), notes, "not the update of one device")
    if evidence.exact > evidence.tolerance:  # unknown mistakes look like noise then
        raise _hidden(evidence)
    other = explain_clipping(evidence) or _constant(evidence) or _with_factor(evidence)
    return _wrong(evidence, other, (), notes, "not the update of one device")


def _hidden(evidence: Evidence) -> StepError:
    return StepError(
        f"[step] noise in the updates (relative, {evidence.device.noise.level:.1g}) hides the "
        f"weights: they are exact to {evidence.exact:.1g} only; use more parameters, examples "
        "that differ more, a smaller constant term, or float64."
    )


def _alike(evidence: Evidence) -> list[Mistake]:
    """Rows that give the right weights on all layouts that were tried."""
    places = range(len(evidence.layouts))
    return [
        row
        for row in evidence.rows
        if all(np.allclose(evidence.predicted(row, p), evidence.right(p)) for p in places)
    ]


def _ranked(evidence: Evidence) -> list[Mistake]:
    """The rows that explain the weights, the best one first; of equal ones the simpler."""
    errors = [
        (evidence.error(lambda place, row=row: evidence.predicted(row, place)), i)  # type: ignore[misc]
        for i, row in enumerate(evidence.rows)
    ]
    near = [(error, i) for error, i in errors if error <= evidence.tolerance]
    best = min(near, default=(0.0, 0))[0]
    alike = [i for error, i in near if error <= best + 0.1 * evidence.tolerance]
    return [evidence.rows[i] for i in alike]


def _with_factor(evidence: Evidence) -> Mistake | None:
    """A row of the catalogue with a factor of its own wherever several replicas run."""
    several = [p for p, item in enumerate(evidence.layouts) if item.replicas > 1]
    for row in evidence.rows:
        said = np.concatenate([evidence.predicted(row, p) for p in several])
        found = np.concatenate([evidence.fits[p].weights for p in several])
        factor = float(said @ found / (said @ said)) if said.any() else 0.0
        scale = max(float(np.abs(said * factor).max()), 1e-300)
        if np.abs(found - factor * said).max() <= 2 * evidence.tolerance * scale:
            return Mistake(
                f"{row.name}, and a factor of {factor:.4g}",
                f"{row.sentence}; besides, all is multiplied by {factor:.4g}, such as by one over "
                "the number of replicas of another run",
                f"{factor:.4g} times: {row.formula}",
                f"{row.fix}; take the sizes of this step, not those at the start",
                row.predict,
            )
    return None


def _constant(evidence: Evidence) -> Mistake | None:
    """One factor on all examples, for each layout."""
    factors = []
    for place, fit in enumerate(evidence.fits):
        ratio = fit.weights / evidence.right(place)
        if np.abs(ratio - ratio.mean()).max() > evidence.tolerance * max(1, abs(ratio.mean())) * 4:
            return None
        factors.append(float(ratio.mean()))
    names = ", ".join(
        f"{factor:.4g} for {item}"
        for factor, item in list(zip(factors, evidence.layouts, strict=True))[:4]
    )
    return Mistake(
        "a factor on the whole update",
        f"all examples are scaled alike: {names}",
        "f w_i / W  instead of  w_i / W",
        "look for a division or multiplication by a size of another run (a world size kept from "
        "before, a number of devices)",
        lambda s: s.right,
    )


_DRIFT = Mistake(
    "the replicas' parameters differ",
    "after the step the copies of the parameters are not equal",
    "θ_r differs with r",
    "reduce the gradients of all parameters before the update, on every replica",
    lambda s: s.right,
)


def _wrong(
    evidence: Evidence,
    cause: Mistake | None,
    others: tuple[Mistake, ...],
    notes: list[str],
    what: str,
) -> Diagnosis:
    errors = [
        float(np.abs(fit.weights - evidence.right(place)).max())
        for place, fit in enumerate(evidence.fits)
    ]
    worst = int(np.argmax(errors[1:])) + 1 if len(errors) > 1 else 0
    rows = share_rows(evidence.layouts[worst], evidence.right(worst), evidence.fits[worst].weights)
    if cause is None:
        notes = [*notes, "no row of the catalogue explains it: look at the table"]
    return Diagnosis(
        False, cause, others, rows, evidence.layouts[worst], tuple(notes), explain_loss(evidence),
        evidence.tolerance, _summary(evidence, what, evidence.layouts[worst]),
    )  # fmt: skip


def _summary(evidence: Evidence, what: str, worst: Layout | None = None) -> str:
    where = f" ({worst})" if worst is not None else ""
    return (
        f"{what}{where}; {len(evidence.weights)} examples on {len(evidence.layouts)} layouts, "
        f"weights exact to {evidence.tolerance:.1g}"
    )


def _try_empty(step: Step, batch: Any, evidence: Evidence, verdict: Diagnosis) -> Diagnosis:
    """The whole batch on the first of two replicas."""
    count = len(evidence.weights)
    part = take(batch, evidence.examples)
    recorder = Recorder(step, part, width=len(evidence.singles[0].sketch))
    recorder.run(Layout((((0,),),)))
    lonely = Layout(((tuple(range(count)),), ((),)))
    run = recorder.run(lonely)
    difference = np.abs(run.sketch - evidence.runs[0].sketch).max()
    if np.isfinite(difference) and difference <= 1e-3 * np.abs(evidence.runs[0].sketch).max():
        return verdict
    cause = Mistake(
        "a replica without examples changes the update",
        "a mean over no examples is no number, or counts as a mean",
        "0 / 0 on the empty replica",
        "add up sums and counts over the replicas, and divide once",
        lambda s: s.right,
    )
    return Diagnosis(
        False, cause, notes=verdict.notes, tolerance=evidence.tolerance,
        summary=_summary(evidence, "an empty share is not ignored", lonely), layout=lonely,
    )  # fmt: skip
