"""Finds out what a step does to the weights of the examples, and which mistake that is."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

from samegrad._base.tracebacks import user_frames_only
from samegrad.testing._diagnosis import Diagnosis
from samegrad.testing._gather import AloneError, gather, whole_batches
from samegrad.testing._judge import judge, judge_empty
from samegrad.testing._layouts import Settings, StepError
from samegrad.testing._over_processes import Processes, check_batch, of_all, spread
from samegrad.testing._updates import Step
from samegrad.testing._words import FRAMEWORKS

# In whose words a step is told whose function names the module.
_MODULES = {"samegrad": "samegrad", "torch": "pytorch", "jax": "jax", "tensorflow": "tensorflow"}


@user_frames_only
def diagnose(
    step: Step,
    batch: Any,
    *,
    weights: Sequence[float] | None = None,
    replicas: Sequence[int] = (2, 3),
    micro_batches: Sequence[int] = (1,),
    examples: int = 12,
    empty_share: bool | None = None,
    even: bool = False,
    seed: int = 0,
    framework: str | None = None,
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
    Factors in front of a limit on the gradient do not show, and a random number that all examples
    of all replicas share (drawn once, outside of the replicas' function) is another loss on one
    device as well, and no matter of replicas. Dropout must draw the same numbers in each call;
    numbers that are independent on each replica hide the scaling, and are an error here.

    In an MPI job (`mpirun -n 2 samegrad doctor ...`, or a program whose processes have a
    `MultiWorkerMirroredStrategy` or `samegrad_step`) all processes call it alike, with one batch,
    and get one verdict. The step is called by all with the shares of all replicas; each process
    runs those of its own. What processes return is compared; layouts with fewer replicas than
    processes are left out, which a note says.

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
        even: Whether all shares are of one size, for steps that take no others; what can then not
            be told apart is noted.
        seed: Of the projection of the updates.
        framework: In whose words the remedy is told: "samegrad", "pytorch", "jax" or "tensorflow".
            Default: that of the adapter that made the step, which says it by an attribute
            `framework`; that of the module that the step's function names; else samegrad's.

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
    processes, note = Processes(), ""
    words = framework or getattr(step, "framework", None) or _framework_of(step)
    if words not in FRAMEWORKS:
        raise StepError(
            f"[diagnose] framework must be one of {', '.join(FRAMEWORKS)}: got {words!r}."
        )
    if empty_share is not None and not isinstance(empty_share, bool):
        raise StepError(
            f"[diagnose] empty_share must be True, False or None: got {empty_share!r:.80}."
        )
    if processes.size > 1:
        check_batch(batch, processes)
        replicas, note = spread(replicas, processes.size)
        step = of_all(step, processes)
    settings = Settings(weights, replicas, micro_batches, examples, even, seed)
    found = _judged(step, batch, settings, empty_share)
    return replace(found, framework=words, notes=(*found.notes, note) if note else found.notes)


def _framework_of(step: Step) -> str:
    """The framework that the function of a step names, by whatever name; samegrad if none."""
    names = getattr(inspect.unwrap(step), "__globals__", {}).values()
    modules = {value.__name__ for value in names if isinstance(value, ModuleType)}
    return next((words for module, words in _MODULES.items() if module in modules), "samegrad")


def _judged(step: Step, batch: Any, settings: Settings, empty_share: bool | None) -> Diagnosis:
    """The verdict, by single examples if they tell enough, and by whole updates else."""
    reason: StepError = StepError("[step] the update of the batch is 0 or no number.")
    evidence, found = None, None
    try:
        evidence = gather(step, batch, settings)
        found = judge(evidence)
        if (found is None or not (found.correct or found.cause)) and evidence.power:
            evidence = evidence.per_mean()
            found = judge(evidence)
    except AloneError as error:
        reason = error.reason
    if found is None or evidence is None:
        if (found := judge(whole_batches(step, batch, settings))) is None:
            raise reason
        return found
    if empty_share is None and (settings.even or not getattr(step, "takes_empty_shares", True)):
        return found
    return found if empty_share is False else judge_empty(evidence, found, bool(empty_share))


@user_frames_only
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
