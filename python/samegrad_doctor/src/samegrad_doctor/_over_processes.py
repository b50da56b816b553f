"""A diagnosis by all processes of a job together: each makes the same runs, one speaks.

The package that has joined a job registers it; the doctor alone knows of none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from samegrad_doctor._layouts import StepError, StepFailedError, T
from samegrad_doctor._tree import flatten
from samegrad_doctor._updates import Outcome, Step, digest


class Job(NamedTuple):
    """A job of several processes.

    Args:
        rank: The rank of this process, from 0.
        size: The number of processes.
        met: met(name, value) returns the values of all processes, and waits for them.
    """

    rank: int
    size: int
    met: Callable[[str, Any], list[Any]]

    def all_of(self, what: str, work: Callable[[], T]) -> T:
        """Return work() of each process; where it raises on one, raise on all.

        Raises:
            StepFailedError: Another process has raised.
        """
        error: Exception | None = None
        try:
            found = work()
        except Exception as raised:
            error = raised
        told = self.met(what, error and f"{type(error).__name__}: {error}".rstrip("."))
        said = [f"rank {rank} raised {one}" for rank, one in enumerate(told) if one]
        if error is not None and len(said) == len(told):
            raise error  # as in one process
        if said:
            others = ", ".join(str(rank) for rank, one in enumerate(told) if not one)
            rest = f"; rank {others} did not" if others else ""
            raise StepFailedError(
                "[step] all processes must make the same calls, also the same collectives: got "
                f"{'; '.join(said)}{rest}."
            )
        return found


_finders: list[Callable[[], Job | None]] = []


def register_job(find: Callable[[], Job | None]) -> None:
    """Let `diagnose` run on all processes of the jobs of a package.

    Args:
        find: Returns the job that this process has joined, or None.
    """
    _finders.append(find)


def current_job() -> Job:
    """Return the job that this process has joined, or one of this process alone."""
    jobs = (job for find in _finders if (job := find()) is not None)
    return next(jobs, Job(0, 1, lambda name, value: [value]))


def check_batch(batch: Any, job: Job) -> None:
    """StepError where processes have other batches."""
    arrays = [np.asarray(leaf) for leaf in flatten(batch)]
    everything = b"".join(f"{a.dtype}{a.shape}".encode() + a.tobytes() for a in arrays)
    found = job.met("the doctor's batch", hashlib.sha256(everything).hexdigest()[:16])
    if len(set(found)) > 1:
        told = ", ".join(f"{one} on rank {rank}" for rank, one in enumerate(found))
        raise StepError(
            f"[batch] all processes must have the same batch: got hashes {told}; draw it with a "
            "seed that is given."
        )


class StepOfAll:
    """A step that all processes run; each is told what came out of it on all.

    The update is that of rank 0, and those of the others are its copies.

    Args:
        step: Of the user.
        job: Of the processes.
    """

    def __init__(self, step: Step, job: Job) -> None:
        self._step, self._job, self._runs = step, job, 0
        vars(self).update(getattr(step, "__dict__", {}))  # attributes that adapters set

    def __call__(self, shares: list[Any]) -> Outcome:
        self._runs += 1

        def run() -> Outcome:
            result = self._step(shares)
            own = result if isinstance(result, Outcome) else Outcome(result)
            flatten(own.update)
            return own

        what = f"the end of the step (run {self._runs} of the doctor)"
        return self._joined(self._job.all_of(what, run))

    def _joined(self, own: Outcome) -> Outcome:
        arrays = [np.asarray(leaf) for leaf in flatten(own.update)]
        numbers = all(array.dtype.kind in "fiub" for array in arrays)
        first = self._job.rank == 0
        brought = (
            own._replace(update=arrays, replicas=own.replicas and list(map(_plain, own.replicas)),
                         statistics=_plain(own.statistics)) if first else None,
            digest(arrays) if numbers and arrays else None,
            None if own.loss is None else np.asarray(own.loss),
        )  # fmt: skip
        found = self._job.met("what the step returned", brought)
        outcome: Outcome = found[0][0]
        known = [loss for _, _, loss in found if loss is not None]  # of one rank, often
        if known:
            same = all(np.array_equal(loss, known[0], equal_nan=True) for loss in known)
            mean = known[0] if same else np.mean([loss.reshape(()) for loss in known])
            outcome = outcome._replace(loss=mean)
        if outcome.replicas is None:
            copies = [one for _, one, _ in found if one is not None]
            outcome = outcome._replace(replicas=copies if len(copies) == len(found) else None)
        return outcome


def _plain(structure: Any) -> Any:
    return None if structure is None else [np.asarray(leaf) for leaf in flatten(structure)]


def spread(counts: Sequence[int], size: int) -> tuple[tuple[int, ...], str]:
    """The numbers of replicas that can be spread over processes, and what is to be said of it.

    Args:
        counts: Those that were asked for.
        size: How many processes there are.
    """
    kept = tuple(count for count in counts if count >= size) or (size, size + 1)
    fewer = [count for count in counts if count < size]
    note = f"{' and '.join(map(str, kept))} replicas were spread over {size} processes"
    if fewer:
        note += (
            f"; of splits with fewer replicas than processes, {' and '.join(map(str, fewer))}, "
            "none was run"
        )
    return kept, note + "; each process ran those of one device by itself"
