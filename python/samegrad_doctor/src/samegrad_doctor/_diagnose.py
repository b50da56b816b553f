"""`diagnose` and `assert_replica_equivalent`, and the examples that they choose."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from samegrad_doctor._basis import BEND, EXACT, NO_SUM, SAME, DependentError, independent
from samegrad_doctor._diagnosis import Diagnosis, on_one_device
from samegrad_doctor._judge import judge, judge_empty
from samegrad_doctor._layouts import ENOUGH, Settings, StepError, StepFailedError, check, one_device
from samegrad_doctor._measure import KEEPS_STATE, Runs, Sums
from samegrad_doctor._over_processes import StepOfAll, check_batch, current_job, spread
from samegrad_doctor._patch import suggest
from samegrad_doctor._tracebacks import user_frames_only
from samegrad_doctor._updates import Recorded, Recorder, Step, Vector, limited_lengths
from samegrad_doctor._words import FRAMEWORKS

_COMPARED = "with them, the updates of the whole batch are those of one device on all splits"
_NOT_COMPARED = "with them, whole updates cannot be compared: use a batch without such examples"
# The framework of fixes, by the module that the step's function imports.
_MODULES = {"samegrad": "samegrad", "torch": "pytorch", "jax": "jax", "tensorflow": "tensorflow"}
_FEWEST = 3  # examples
_LISTS = (
    "Is one micro-batch taken for a list? A replica is given a list of micro-batches where there "
    "are several, and the batch itself where there is one."
)
_MOST_WHOLE = 24  # of a batch that is judged as a whole


@user_frames_only
def diagnose(
    step: Step,
    batch: Any,
    *,
    weights: Sequence[float] | None = None,
    replicas: Sequence[int] = (2, 3),
    micro_batches: Sequence[int] = (1,),
    max_examples: int = 12,
    empty_shard: bool | None = None,
    equal_shards: bool = False,
    seed: int = 0,
    framework: str | None = None,
) -> Diagnosis:
    """Diagnose a training step: find the weight of every example in its update, and judge them.

    The step runs on single examples, on the whole batch on one device, and on several splits over
    replicas (and micro-batches). Least squares in float64 express every update in those of the
    single examples. This gives the weight of each example, which is compared with its weight in
    single-device training.

    The step must start from the same parameters in each call, and return a linear function of the
    gradients: the gradients, or the change that plain SGD makes. Random ops must draw the same
    samples in each call.

    A step that is not a sum over examples (batch normalization, gradient clipping, a loss over
    pairs, dropout) is judged by whole updates: those of the batch and of each shard on one device.

    These cannot be distinguished, and are reported as alternatives or notes: a term that each
    replica adds, and one that a factor for the data multiplies; moments and negatives that a
    replica computes by itself; which of two parts of a loss has the wrong count. Factors before
    gradient clipping are invisible. Samples that are independent on each replica hide the weights,
    and raise StepError.

    In an MPI job of samegrad (`mpirun -n 2 samegrad doctor ...`, or a program that imports
    `samegrad.testing`), all processes call `diagnose` with the same
    batch, and get the same diagnosis. Layouts with fewer replicas than processes are left out, and
    a note says so.

    Args:
        step: A function of a list with one batch per replica (a list of micro-batches for each, if
            there are several). It returns the update, or an `Outcome`.
        batch: Arrays of shape [examples, ...] in any structure.
        weights: The weight of each example: sample weights, or numbers of tokens. Default: those
            of one device.
        replicas: The numbers of replicas to try.
        micro_batches: The numbers of micro-batches to try.
        max_examples: The largest number of examples that run alone. Slightly fewer do where the
            replicas divide their number. The whole batch confirms a verdict of "correct".
        empty_shard: Also try a replica without examples. None (default) tries it, but a step that
            cannot run without examples stays correct. A step with the attribute
            `takes_empty_shards = False` is not tried.
        equal_shards: Split the batch into per-replica batches of equal size only, for steps that
            accept no others. A note lists what such splits cannot distinguish.
        seed: The seed of the random projection of the updates.
        framework: The framework whose API the fixes name: "samegrad", "pytorch", "jax" or
            "tensorflow". Default: the attribute `framework` of the step, which adapters set; else
            the framework that the step's module imports; else samegrad.

    Returns:
        The diagnosis. It prints as a short table, the cause, the maths and the fix.

    Raises:
        StepError: The step cannot be judged; the message has the reason and a remedy.

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
    job, note = current_job(), ""
    words = framework or getattr(step, "framework", None) or _framework_of(step)
    check(words in FRAMEWORKS, "framework", f"one of {', '.join(FRAMEWORKS)}", repr(words))
    tried = empty_shard is None or isinstance(empty_shard, bool)
    check(tried, "empty_shard", "True, False or None", f"{empty_shard!r:.80}")
    batch = tuple(batch) if isinstance(batch, list) else batch  # a list is of micro-batches
    if job.size > 1:
        check_batch(batch, job)
        replicas, note = spread(replicas, job.size)
        step = StepOfAll(step, job)
    settings = Settings(
        step, batch, weights, replicas, micro_batches, max_examples, equal_shards, seed
    )
    found = _judged(settings, empty_shard)
    if max(replicas) == 1:
        found = on_one_device(found)
    patch = suggest(step, found.cause.name, words) if found.cause else ""
    notes = (*found.notes, note) if note else found.notes
    return replace(found, framework=words, notes=notes, patch=patch)


@user_frames_only
def assert_replica_equivalent(step: Step, batch: Any, **options: Any) -> None:
    """Assert that R replicas (times K micro-batches) make the update of one device.

    Args:
        step: The step, as for `diagnose`.
        batch: The batch, as for `diagnose`.
        **options: The options of `diagnose`.

    Raises:
        AssertionError: They do not; the message is the diagnosis.
        StepError: The step cannot be judged.

    Example:
        >>> import numpy as np
        >>> x = np.random.default_rng(0).normal(size=(10, 20))
        >>> assert_replica_equivalent(lambda shares: np.concatenate(shares).mean(axis=0), x)
    """
    found = diagnose(step, batch, **options)
    if not found.correct or found.reported_loss_issue:
        raise AssertionError(str(found))


def _framework_of(step: Step) -> str:
    """Return the framework that the step's module imports; samegrad if none."""
    names = getattr(inspect.unwrap(step), "__globals__", {}).values()
    modules = {value.__name__ for value in names if inspect.ismodule(value)}
    return next((words for module, words in _MODULES.items() if module in modules), "samegrad")


def _judged(settings: Settings, empty_shard: bool | None) -> Diagnosis:
    """Return the diagnosis by single examples, or else by whole updates."""
    try:
        evidence = gather(settings)
    except AloneError as error:
        return _judged_whole(settings, error.__cause__ or error)
    found = judge(evidence)
    if (found is None or not (found.correct or found.cause)) and evidence.power:
        evidence = evidence.per_mean()
        found = judge(evidence)
    if found is None:
        return _judged_whole(settings, StepError("[step] the update of the batch is 0 or NaN."))
    if found.correct:
        found = _confirmed(settings, found, evidence.recorder.norms, evidence.noise.level)
    taken = not settings.equal_shards and getattr(settings.step, "takes_empty_shards", True)
    tried = taken if empty_shard is None else empty_shard
    return judge_empty(evidence, found, bool(empty_shard)) if tried else found


def _judged_whole(settings: Settings, reason: BaseException) -> Diagnosis:
    """Return the diagnosis by whole updates of some examples, or else of all.

    Raises:
        StepError: They allow none; the reason is why single examples do not either.
    """
    for every in (False, True):
        runs = whole_batches(settings, every)
        if (found := judge(runs)) is not None:
            if not found.correct or runs.examples == settings.rows:
                return found
            return _confirmed(settings, found, np.ones(settings.rows), runs.noise.level)
    raise reason


def _confirmed(settings: Settings, found: Diagnosis, norms: Vector, level: float) -> Diagnosis:
    """Return a correct diagnosis of some examples, unless the whole batch contradicts it.

    An example without gradient alone may have one beside others: pairs, hard negatives. A function
    of a shard may be constant for a few examples: counts of classes, a clamp. Differences within
    the noise of those examples contradict nothing.

    Raises:
        StepError: Examples were left out, and whole updates cannot be judged.
    """
    still = bool((norms == 0).any())
    for runs in batches_to_confirm(settings, norms):
        few = whole_batches(runs.settings)
        both = [replace(own, known_noise=level) for own in (few, runs)]
        try:
            if both[-1].agree:
                continue
            for own in both:
                if (whole := judge(own)) is not None and not whole.correct:
                    return whole
        except StepError as error:
            if still and not isinstance(error, StepFailedError):
                raise
            more = (_NOT_COMPARED,) if still else ()  # as where it refuses other sizes
            return replace(found, notes=(*found.notes, *more))
    return replace(found, notes=(*found.notes, _COMPARED)) if still else found


class AloneError(Exception):
    """Raised if single examples are uninformative; its cause is the reason to report."""


def gather(settings: Settings) -> Sums:
    """Runs the step on single examples, on all of them, and on splits of them.

    Raises:
        AloneError: Single examples tell nothing.
        StepError: The step cannot be judged.
    """
    settings.check()
    rows = settings.rows
    chosen = np.linspace(0, rows - 1, min(rows, settings.max_examples)).astype(np.intp)
    chosen = chosen[: settings.usable(chosen)]
    recorder = Recorder(settings.of(chosen), width=max(256, 8 * len(chosen)))
    try:
        singles = [recorder.run(one_device([i])) for i in range(len(chosen))]
    except StepFailedError as error:  # statistics over one example, for instance
        raise AloneError from error
    _check_memory(recorder, singles[0])
    _refuse_adaptive(singles)

    def keep(free: list[int], least: int) -> None:
        nonlocal chosen, singles
        if not least <= len(free) < len(chosen):
            return
        try:
            free = free[: settings.usable(chosen[free])]
        except StepError as error:  # too few for equal shards
            raise AloneError from error
        chosen, singles = chosen[free], [singles[i] for i in free]
        recorder.batch = settings.of(chosen).batch

    recorder.norms, norms = np.full(rows, np.nan), np.array([single.norm for single in singles])
    recorder.norms[chosen] = norms
    lost = (
        ((norms == 0).sum(), "without gradient (their weight does not show)"),
        ((~np.isfinite(norms)).sum(), "whose update is NaN or inf (any step with them is broken)"),
    )
    recorder.notes = tuple(f"left out: {n} of {len(norms)} examples {why}" for n, why in lost if n)
    # The weight of an example without gradient is any; those of dependent ones cannot be told.
    keep([i for i, single in enumerate(singles) if single.sketch.any()], _FEWEST)
    keep(independent(singles, ENOUGH), ENOUGH)
    found = _together(recorder, settings, singles)
    found = replace(found, layouts=[*found.layouts, *settings.splits(len(chosen))])
    return found.weighed(settings.of(chosen).weights)


def _together(recorder: Recorder, settings: Settings, singles: list[Recorded]) -> Sums:
    """One device, if single examples tell what the whole batch does.

    Raises:
        AloneError: They do not, but the whole batch may tell something.
        StepError: Neither does.
    """
    count = len(singles)
    known = {one_device([i]): single for i, single in enumerate(singles)}
    found = Sums([one_device(range(count))], np.ones(count), False, recorder, settings, known)
    try:
        found = found.without_term()
        found.of_halves  # noqa: B018  # whether there is a basis
    except StepError as error:
        whole = recorder.run(one_device(range(count))).sketch
        rows = np.stack([single.sketch for single in singles])
        rows = rows[np.isfinite(rows).all(axis=1)]
        made = np.linalg.lstsq(rows.T, whole, rcond=None)[0] @ rows if len(rows) else 0.0
        left = np.linalg.norm(whole - made)
        bent = isinstance(error, DependentError) and np.ptp(rows, axis=0).any()
        limited = bent and limited_lengths([single.lengths for single in singles])
        # Few examples change something alone: others of the batch may, or these in company.
        more = left > NO_SUM * np.linalg.norm(whole) or not rows.any(axis=1).all()
        if np.isfinite(whole).all() and (limited or more):
            raise AloneError from error
        if isinstance(error, DependentError) and max(settings.micro_batches) > 1:
            raise DependentError(f"{error} {_LISTS}") from error
        raise
    return found


def _check_memory(recorder: Recorder, first: Recorded) -> None:
    """Runs the first example again; noise differs at random, a memory goes on from run to run.

    Raises:
        StepError: The step keeps state.
    """
    again = recorder.run(one_device([0]))
    size = float(np.linalg.norm(first.sketch))
    difference = float(np.linalg.norm(again.sketch - first.sketch))
    if not difference > EXACT * size:  # also where it is NaN, which others report
        return
    # What goes on has moved over all runs until now, but little from one run to the next.
    others = [again, *(recorder.run(one_device([0])) for _ in range(12))]
    steps = [np.linalg.norm(b.sketch - a.sketch) for a, b in itertools.pairwise(others)]
    if not (difference <= BEND * size and max(steps) >= 0.4 * difference):
        raise StepError(KEEPS_STATE)


def _refuse_adaptive(singles: list[Recorded]) -> None:
    """Adam's first update has one size for all elements, whatever the gradient is."""
    rows = np.abs([single.samples for single in singles])
    rows = rows[rows.max(axis=1) > 0]
    top = rows.max(axis=1, keepdims=True)
    alike = ((rows > (1 - NO_SUM) * top) | (rows <= SAME * top)).all()
    differ = any((single.samples != singles[0].samples).any() for single in singles)
    if rows.size and rows.shape[1] >= 8 and alike and differ:
        raise StepError(
            "[step] all elements of each update have the same size, as those of an adaptive "
            "optimizer (Adam) or of a sign: that hides the scaling; return the gradients, or use "
            "plain SGD."
        )


def whole_batches(settings: Settings, every: bool = False) -> Runs:
    """Runs of a batch, of which not every example is taken if it is large or cannot be even."""
    rows, multiple = settings.rows, settings.divisible
    most = min(rows, max(_MOST_WHOLE, multiple))
    count = most // multiple * multiple or most
    if every:
        count = rows // settings.multiple * settings.multiple
    settings = settings.of(range(count))
    recorder = Recorder(settings, width=512)
    weights = np.ones(count) if settings.weights is None else np.asarray(settings.weights) * 1.0
    layouts = [one_device(range(count)), *settings.splits(count)]
    return Runs(layouts, weights, False, recorder, settings, {})


def batches_to_confirm(settings: Settings, norms: Vector) -> list[Runs]:
    """Return runs of the whole batch in two orders: as given, and the largest gradients first.

    Args:
        settings: The settings.
        norms: The norm of each example's own update, NaN where it is unknown.
    """
    usual, found = np.nan_to_num(norms, nan=float(np.nanmedian(norms))), []
    orders = (np.arange(len(norms)), np.argsort(-usual, kind="stable"))
    for order in orders[: 1 + bool((orders[0] != orders[1]).any())]:
        runs = whole_batches(settings.of(order), every=True)
        one, *others = runs.layouts
        first = {(item.replicas, item.micro_batches): item for item in others[::-1]}
        found.append(replace(runs, layouts=[one, *first.values()]))
    return found
