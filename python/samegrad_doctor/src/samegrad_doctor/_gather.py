"""Chooses examples that tell something, and runs a step on them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from samegrad_doctor._basis import (
    BEND,
    EXACT,
    NO_SUM,
    SAME,
    DependentError,
    checked_rows,
    halves,
    independent,
    term_of,
)
from samegrad_doctor._layouts import (
    ENOUGH,
    Settings,
    StepError,
    StepFailedError,
    layout,
    one_device,
    rows_of,
    splits_of,
    take,
)
from samegrad_doctor._measure import KEEPS_STATE, Runs, Sums
from samegrad_doctor._updates import Recorded, Recorder, Vector, limited_lengths

_FEWEST = 3  # examples
_LISTS = (
    "Is one micro-batch taken for a list? A replica is given a list of micro-batches where there "
    "are several, and the batch itself where there is one."
)
_MOST_WHOLE = 24  # of a batch that is judged as a whole


class AloneError(Exception):
    """Raised if single examples are uninformative; its cause is the reason to report."""


def gather(settings: Settings) -> Sums:
    """Runs the step on single examples, on all of them, and on splits of them.

    Raises:
        AloneError: Single examples tell nothing.
        StepError: The step cannot be judged.
    """
    settings.check()
    rows = rows_of(settings.batch)
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
        recorder.batch = take(settings.batch, chosen)

    recorder.notes = tuple(_left_out(singles))
    recorder.norms = np.full(rows, np.nan)
    recorder.norms[chosen] = [single.norm for single in singles]
    # The weight of an example without gradient is any; those of dependent ones cannot be told.
    keep([i for i, single in enumerate(singles) if single.sketch.any()], _FEWEST)
    keep(independent(singles, ENOUGH), ENOUGH)
    found = _together(recorder, settings, singles)
    found = replace(found, layouts=[*found.layouts, *splits_of(len(chosen), settings)])
    return found.weighed(settings.of(chosen).weights)


def _left_out(singles: list[Recorded]) -> list[str]:
    """Return notes on examples whose weights cannot be determined."""
    norms = np.array([single.norm for single in singles])
    found = (
        ((norms == 0).sum(), "without gradient (their weight does not show)"),
        ((~np.isfinite(norms)).sum(), "whose update is NaN or inf (any step with them is broken)"),
    )
    return [f"left out: {n} of {len(norms)} examples {what}" for n, what in found if n]


def _together(recorder: Recorder, settings: Settings, singles: list[Recorded]) -> Sums:
    """One device, if single examples tell what the whole batch does.

    Raises:
        AloneError: They do not, but the whole batch may tell something.
        StepError: Neither does.
    """
    count = len(singles)
    known = {one_device([i]): single for i, single in enumerate(singles)}
    found = Sums([layout([count])], np.ones(count), False, recorder, settings, known)
    try:
        checked_rows(singles)
        found = _without_term(found)
        found.of_halves  # noqa: B018  # whether there is a basis
    except StepError as error:
        whole = recorder.run(layout([count])).sketch
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


def _without_term(found: Sums) -> Sums:
    """The same without what belongs to no example.

    Raises:
        StepError: The examples change nothing then.
    """
    first = halves(found.examples)[0]
    term = term_of(found.singles, found.runs[0], found.alone(first), len(first))
    if term is None:
        return found
    known = {item: run.without(term) for item, run in found.known.items()}
    if not all(run.sketch.any() for run in known.values()):
        raise StepError(
            "[step] rounding hides the weights: beside a term that belongs to no example "
            "(regularisation) an example changes nothing; make that term smaller, or use float64."
        )
    return replace(found, known=known, term=term)


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
    rows, multiple = rows_of(settings.batch), settings.divisible
    most = min(rows, max(_MOST_WHOLE, multiple))
    count = most // multiple * multiple or most
    if every:
        count = rows // settings.multiple * settings.multiple
    settings = settings.of(range(count))
    recorder = Recorder(settings, width=512)
    weights = np.ones(count) if settings.weights is None else np.asarray(settings.weights) * 1.0
    layouts = [layout([count]), *splits_of(count, settings)]
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
