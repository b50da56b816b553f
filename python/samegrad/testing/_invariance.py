"""`assert_replica_invariant`: the bits of a training on any replicas, threads and processes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from samegrad._base.launchers import launched
from samegrad._base.shown import shown
from samegrad.testing._jobs import States, run_job, why_no_job
from samegrad.testing._same_bits import compare
from samegrad.testing._training import OP, Division, Program, TrainingError, batches_of

_SAME, _DIFFERENT, _SKIPPED, _FAILED = "identical", "different", "skipped", "failed"
_REFERENCE = Division(1, 1, 1)
_NO_REASON = (
    "explain names no operation that depends on the division: if the program draws no numbers of "
    "its own, this is a fault of samegrad"
)
_NOT_REPEATABLE = (
    "two runs of one replica differ: draw numbers with the random state of samegrad, NumPy or "
    "Python, which are seeded before make is called, or with a given seed"
)


@dataclasses.dataclass(frozen=True)
class DivisionOutcome:
    """Outcome of one division.

    Attributes:
        replicas: The number of replicas.
        threads: The number of threads of each process.
        processes: The number of processes.
        outcome: "identical", "different", "skipped" or "failed".
        why: The reason of a skipped or failed one; the first step that differs of a different one.
    """

    replicas: int
    threads: int
    processes: int
    outcome: str
    why: str = ""


@dataclasses.dataclass(frozen=True)
class ReplicaInvariance:
    """Report of `assert_replica_invariant`.

    Attributes:
        outcomes: The outcome of each division.
        steps: The number of training steps.
        difference: How the first different division differs, as `assert_same_bits` describes it.
        reasons: The operations that `explain` names for it, and warnings of its checks.
    """

    outcomes: tuple[DivisionOutcome, ...]
    steps: int
    difference: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def invariant(self) -> bool:
        """True if all divisions that ran are bitwise identical, and none failed."""
        return not self._of(_DIFFERENT, _FAILED)

    @property
    def skipped(self) -> tuple[DivisionOutcome, ...]:
        """The divisions that did not run."""
        return self._of(_SKIPPED)

    def to_json(self) -> str:
        """Return the report as a JSON object."""
        return json.dumps({"invariant": self.invariant, **dataclasses.asdict(self)}, indent=2)

    def __str__(self) -> str:
        same, other = len(self._of(_SAME)), self._of(_DIFFERENT)
        ran = same + len(self._of(_DIFFERENT, _FAILED))
        lines = [
            f"replica-invariant: {'yes' if self.invariant else 'no'}: {same} of {ran} divisions "
            f"are bitwise identical to {_REFERENCE}, after each of {self.steps} steps"
        ]
        if other:
            lines += [
                f"first difference: {_division(other[0])}, {other[0].why}:",
                *(f"  {line}" for line in self.difference.splitlines()),
                "reasons:",
                *(f"  - {reason}" for reason in self.reasons or (_NO_REASON,)),
            ]
        for kind in (_DIFFERENT, _FAILED, _SKIPPED):
            lines += [f"{kind}: {line}" for line in _grouped(self._of(kind))]
        return "\n".join(lines)

    def _of(self, *kinds: str) -> tuple[DivisionOutcome, ...]:
        return tuple(one for one in self.outcomes if one.outcome in kinds)


def _grouped(outcomes: Sequence[DivisionOutcome]) -> list[str]:
    """Return a line for each reason and each number of threads and processes."""
    groups: dict[tuple[str, str], list[int]] = {}
    for one in outcomes:
        on = str(_division(one)).partition(", ")[2]
        groups.setdefault((one.why, on), []).append(one.replicas)
    return [
        f"{', '.join(map(str, replicas))} replica{'s' * (replicas != [1])} on {on}: {why}"
        for (why, on), replicas in groups.items()
    ]


def assert_replica_invariant(
    make: Callable[[], Any],
    data: Any,
    replicas: Sequence[int] = (1, 2, 3, 8),
    threads: Sequence[int] = (1, 2),
    processes: Sequence[int] = (1, 2),
    steps: int = 5,
    *,
    batch_size: int | None = None,
    seed: int = 0,
) -> ReplicaInvariance:
    """Check that a training has the same bits on any number of replicas, threads and processes.

    The program is trained for some steps on each combination. After each step all arrays are
    compared with those of one replica on one thread: weights, optimizer slots, metrics, random
    states, and the figures of `fit`.

    Several processes are an MPI job that `mpiexec` starts; each has at least one replica. Then
    `make` must be at the top level of a file, which the other processes import. Without MPI these
    combinations are skipped. In a job that runs already, all its processes call this function, and
    other numbers of processes are skipped.

    Args:
        make: Called without arguments in the strategy's scope, after the random seed is set.
            Returns a compiled Keras model, which `fit` trains. Or returns a pair: the function of a
            replica, which takes the parts of a batch and trains, and the state that it changes,
            in any form that `fingerprint` takes.
        data: Arrays of shape [examples, ...] in any structure; a `Dataset` of global batches; or a
            function that returns one of these. The batches are read once, for all combinations. If
            they end before the steps, they start again.
        replicas: Numbers of replicas.
        threads: Numbers of threads of each process.
        processes: Numbers of processes.
        steps: The number of training steps.
        batch_size: Number of examples of a global batch of arrays. None: two fifths of all
            examples, so that every third batch is short and replicas get unequal batches.
        seed: The random seed of each run.

    Returns:
        A `ReplicaInvariance`, which also names the combinations that were skipped, and why.

    Raises:
        AssertionError: A combination differs, or fails. The message names the first variable and
            element that differs, and the operations that `explain` blames.
        ValueError: `make` returns something else, the data are empty, or a number is below 1.

    Example:
        >>> import numpy as np, samegrad as tf
        >>> def make():
        ...     model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        ...     model.compile("sgd", "mse")
        ...     return model
        >>> x = np.random.default_rng(0).normal(size=(10, 3)).astype("float32")
        >>> print(assert_replica_invariant(make, (x, x.sum(1)), threads=[1], processes=[1]))
        replica-invariant: yes: 4 of 4 divisions are bitwise identical to 1 replica, ...
    """
    found = check(make, data, replicas, threads, processes, steps, batch_size, seed)
    if not found.invariant:
        raise AssertionError(f"[{OP}] all divisions must have the same bits: got\n{found}")
    return found


def check(
    make: Callable[[], Any],
    data: Any,
    replicas: Sequence[int],
    threads: Sequence[int],
    processes: Sequence[int],
    steps: int,
    batch_size: int | None,
    seed: int,
) -> ReplicaInvariance:
    """Return the report of `assert_replica_invariant`, whatever it says.

    Raises:
        ValueError: `make` returns something else, the data are empty, or a number is below 1.
    """
    for name, numbers in (("replicas", replicas), ("threads", threads), ("processes", processes)):
        _check_numbers(name, numbers)
    _check_numbers("steps", [steps])
    if batch_size is not None:
        _check_numbers("batch_size", [batch_size])
    if not callable(make):
        raise TrainingError(f"[{OP}] make must be a function: got {shown(make)}; pass one.")
    if min(processes) > max(replicas):
        raise ValueError(
            f"[{OP}] each process must have a replica: got at most {max(replicas)} for at least "
            f"{min(processes)} processes; use more replicas."
        )
    program = Program(make, batches_of(data, steps, batch_size), seed)
    expected = program.states(_REFERENCE)
    outcomes, differences = [], []
    for division, result in _results(program, replicas, threads, processes):
        if isinstance(result, DivisionOutcome):
            outcomes.append(result)
            continue
        step, difference = _first_difference(expected, result)
        if difference is None:
            outcomes.append(_outcome(division, _SAME))
            continue
        outcomes.append(_outcome(division, _DIFFERENT, f"from step {step} on"))
        differences.append((division, difference))
    if not differences:
        return ReplicaInvariance(tuple(outcomes), steps)
    division, difference = differences[0]
    repeated = _first_difference(expected, program.states(_REFERENCE))[1] is None
    reasons = program.reasons(division) if repeated else [_NOT_REPEATABLE]
    return ReplicaInvariance(tuple(outcomes), steps, difference, tuple(reasons))


def _check_numbers(name: str, numbers: Any) -> None:
    whole = isinstance(numbers, Iterable) and not isinstance(numbers, str)
    if not whole or not len(found := list(numbers)):
        raise ValueError(f"[{OP}] {name} must be a sequence of numbers: got {shown(numbers)}.")
    for number in found:
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ValueError(f"[{OP}] {name} must be integers >= 1: got {shown(number)}.")


def _results(
    program: Program, replicas: Sequence[int], threads: Sequence[int], processes: Sequence[int]
) -> Iterator[tuple[Division, States | DivisionOutcome]]:
    """Yield the states of each division, or the outcome of one that did not run to its end."""
    for count in processes:
        divisions = [Division(r, t, count) for t in threads for r in replicas if r >= count]
        if count == 1 or count == launched().size:
            yield from ((one, _result(program, one)) for one in divisions)
        else:
            yield from _results_of_job(program, divisions)


def _result(program: Program, division: Division) -> States | DivisionOutcome:
    try:
        return program.states(division)
    except Exception as error:
        why = f"it raised {type(error).__name__}: {error}; {_REFERENCE} did not"
        return _outcome(division, _FAILED, why)


def _results_of_job(
    program: Program, divisions: Sequence[Division]
) -> Iterator[tuple[Division, States | DivisionOutcome]]:
    if not divisions:
        return
    if why := why_no_job(program):
        yield from ((one, _outcome(one, _SKIPPED, why)) for one in divisions)
        return
    try:
        yield from zip(divisions, run_job(program, divisions), strict=True)
    except TrainingError as error:
        yield from ((one, _outcome(one, _FAILED, str(error))) for one in divisions)


def _first_difference(expected: States, found: States) -> tuple[int, str | None]:
    """Return the first step after which the states differ, from 1, and how they do."""
    for step, (a, b) in enumerate(zip(expected, found, strict=True), start=1):
        difference = compare(a, b)
        if difference is not None:
            return step, difference
    return 0, None


def _outcome(division: Division, outcome: str, why: str = "") -> DivisionOutcome:
    return DivisionOutcome(division.replicas, division.threads, division.processes, outcome, why)


def _division(outcome: DivisionOutcome) -> Division:
    return Division(outcome.replicas, outcome.threads, outcome.processes)


__all__ = ["DivisionOutcome", "ReplicaInvariance", "assert_replica_invariant", "check"]
