"""Steps of PyTorch with DistributedDataParallel, over processes of this machine."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection
from pathlib import Path
from typing import Any

from samegrad_doctor._layouts import StepError, StepFailedError
from samegrad_doctor._updates import Outcome, Step
from samegrad_doctor.adapters._ddp_worker import Job, Runner, run_ddp, work

_COLLECTIVE = re.compile(r'distributed_c10d\.py", line \d+ in (?!wrapper\b)([a-z]\w+)')
_WATCHES = "_end_with_parent"  # in the thread of each process that is the doctor's own
_START = 600.0  # seconds for a process to import PyTorch on a machine with much to do


def ddp_step(
    build: Callable[..., tuple[Any, Callable[[Any, Any], Any]]],
    *,
    whole_shard: bool = False,
    reported: bool = False,
    seed: int = 0,
    timeout: float = 60.0,
    **options: Any,
) -> Step:
    """Create a PyTorch step with DistributedDataParallel: one process per replica, over gloo.

    The processes are started once and serve all steps; they end with the program, or with
    `ddp_workers`. Each rank wraps the model, runs its share, and gives back what its parameters
    hold after the all-reduce (ranks above 0 a digest of it): `diagnose` compares the copies.

    Args:
        build: build() or build(rank), called in each process for each run; returns a module and
            loss(model, batch) of a replica's batch (tensors), a tensor without axes. A function of
            a module or script, which the processes import: scripts need the guard
            `if __name__ == "__main__":`.
        whole_shard: Instead of a loss, build returns run(model, share), which calls `backward`
            itself, is given the list of micro-batches where there are several, and returns the
            loss that the rank reports, or None. Otherwise micro-batches are accumulated under
            `no_sync`.
        reported: Treat the loss that build returns also as the reported loss. Default: it is for
            `backward` alone, may be scaled for that, and is not judged by itself.
        seed: The seed of PyTorch, set in each process before each run.
        timeout: The seconds for one run.
        **options: Options of DistributedDataParallel, such as find_unused_parameters=True.

    Returns:
        A step whose update is the gradient of rank 0, and whose loss is the mean of those that
        ranks report, if any. Replicas without examples are tried only where `diagnose` is asked to.

    Raises:
        StepError: build cannot be sent to other processes. When the step runs: a process raised,
            died, or did not answer in time; its stack is in the message.

    Example:
        >>> step = ddp_step(build, timeout=30)  # doctest: +SKIP
        >>> diagnose(step, batch).cause.name  # doctest: +SKIP
        "mean of the replicas' means"
    """
    given = {**options, "whole_shard": whole_shard, "reported": reported, "seed": seed}
    return step_of_ranks("ddp_step", build, run_ddp, given, timeout)


def step_of_ranks(
    who: str, build: Callable[..., Any], runner: Runner, options: dict[str, Any], timeout: float
) -> Step:
    """A step of one process per replica.

    Args:
        who: The adapter, for messages.
        build: The user's function, which the processes import.
        runner: What a process does with what it returns.
        options: Of the runner, and `seed`.
        timeout: Seconds for one run.

    Raises:
        StepError: build cannot be sent to other processes.
    """
    if timeout <= 0:
        raise StepError(f"[{who}] timeout must be more than 0 seconds: got {timeout}.")
    function = getattr(build, "func", build)  # of functools.partial
    module = getattr(function, "__module__", "__main__")
    file = getattr(sys.modules.get(module), "__file__", None)
    try:
        pickled = pickle.dumps(build)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise StepError(_NOT_SENT.format(who, f"{build!r:.80} ({error})")) from error
    if module == "__main__" and file is None:
        raise StepError(_NOT_SENT.format(who, f"{build!r:.80} of a notebook or a prompt"))

    def step(shares: list[Any]) -> Outcome:
        jobs = [
            Job(who, rank, len(shares), None, 2 * timeout, pickled, runner, (module, file),
                options, share)
            for rank, share in enumerate(shares)
        ]  # fmt: skip
        answers = _WORKERS.run(jobs, timeout)
        known = [loss for _, _, loss in answers if loss is not None]  # of one rank, often
        mean = sum(known) / len(known) if known else None
        return Outcome(answers[0][0], mean, [digest for _, digest, _ in answers])

    # Ranks without examples may leave a collective out, for which the others would wait.
    step.takes_empty_shards = False  # type: ignore[attr-defined]
    step.framework, step.source = "pytorch", function  # type: ignore[attr-defined]
    return step


_NOT_SENT = (
    "[{}] build must be a function that other processes can import: got {}; write it at the top of "
    "a module."
)


@contextlib.contextmanager
def ddp_workers() -> Iterator[None]:
    """End the processes of `ddp_step` with a block, instead of with the program.

    Example:
        >>> with ddp_workers():  # doctest: +SKIP
        ...     assert_replica_equivalent(ddp_step(build), batch)
    """
    try:
        yield
    finally:
        _WORKERS.close()


class _Workers:
    """Processes that live on between runs; the first R of them are the ranks of a run."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew, as a forked child must: the workers are its parent's."""
        self._lock = threading.RLock()
        self._processes: list[Any] = []
        self._pipes: list[Any] = []
        self._ready = 0  # so many have imported PyTorch
        self._folder: Path | None = None
        self._group: tuple[int, float] | None = None  # ranks and time-out of the present group
        self._groups = 0
        self._who = "ddp_step"  # the adapter of the present run

    def run(self, jobs: list[Job], timeout: float) -> list[Any]:
        """The answers of all ranks.

        Raises:
            StepError: One of them has none.
        """
        with self._lock:
            self._who = jobs[0].who
            try:
                self._start(len(jobs))
                for pipe, job in zip(self._pipes, self._with_group(jobs), strict=False):
                    pipe.send(job)
                return self._answers(len(jobs), timeout)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Ends all processes; the next run starts others."""
        with self._lock:
            for pipe in self._pipes:
                pipe.close()
            for process in self._processes:
                process.terminate()
            for process in self._processes:
                process.join(2)
                if process.is_alive():
                    process.kill()
                    process.join()
            self._processes, self._pipes, self._ready, self._group = [], [], 0, None
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def _start(self, count: int) -> None:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ddp_step-"))
        context = multiprocessing.get_context("spawn")
        # The second one imports PyTorch beside the first: hardly a step has one replica only.
        for place in range(len(self._processes), max(count, 2)):
            ours, theirs = context.Pipe()
            stack = str(self._folder / f"stack-{place}")
            process = context.Process(target=work, args=(theirs, stack), daemon=True)
            self._pipes.append(ours)
            self._processes.append(process)
            process.start()
            theirs.close()
        if self._ready < count:
            self._answers(count, _START, first=self._ready)
            self._ready = count

    def _with_group(self, jobs: list[Job]) -> list[Job]:
        """The jobs, with a file for a new group where the present one is another."""
        group = (len(jobs), jobs[0].timeout)
        if group == self._group:
            return jobs
        self._group = group
        self._groups += 1
        store = str(self._folder / f"group-{self._groups}")  # type: ignore[operator]
        return [Job(**{**vars(job), "store": store}) for job in jobs]

    def _answers(self, count: int, timeout: float, first: int = 0) -> list[Any]:
        found: dict[int, Any] = {}
        end = time.monotonic() + timeout
        while len(found) < count - first:
            waiting = {self._pipes[r]: r for r in range(first, count) if r not in found}
            ready = connection.wait(list(waiting), max(0.0, end - time.monotonic()))
            if not ready:
                self._timed_out(sorted(waiting.values()), count, timeout)
            answers = {waiting[pipe]: _received(pipe) for pipe in ready}
            if any(kind != "done" and kind != "ready" for kind, _ in answers.values()):
                self._failed(answers, waiting, count)
            found.update({rank: value for rank, (_, value) in answers.items()})
        return [found[rank] for rank in range(first, count)]

    def _failed(
        self, answers: dict[int, tuple[str, Any]], waiting: dict[Any, int], count: int
    ) -> None:
        # A rank that dies makes the others raise: a moment shows which was the first cause.
        rest = [pipe for pipe, rank in waiting.items() if rank not in answers]
        for pipe in connection.wait(rest, 0.5) if rest else []:
            answers[waiting[pipe]] = _received(pipe)
        for rank, (kind, _) in sorted(answers.items()):
            if kind == "died":
                process = self._processes[rank]
                process.join(2)
                stack = self._stack(rank) or (
                    'A script needs the guard `if __name__ == "__main__":`.'
                )
                # Gloo ends a rank whose collective meets another one.
                why = _disagreement({rank: stack}, count)
                more = f" {why[0].upper()}{why[1:]}" if _COLLECTIVE.search(stack) else ""
                raise StepError(
                    f"[{self._who}] rank {rank} died with exit code {process.exitcode}.{more}\n"
                    f"{stack}"
                )
        rank, (_, trace) = next((r, a) for r, a in sorted(answers.items()) if a[0] == "failed")
        raise StepFailedError(f"[{self._who}] rank {rank} raised:\n{trace}")

    def _timed_out(self, ranks: list[int], count: int, timeout: float) -> None:
        for rank in ranks:
            with contextlib.suppress(OSError, TypeError):
                os.kill(self._processes[rank].pid, signal.SIGUSR1)
        time.sleep(0.5)
        stacks = {rank: self._stack(rank) for rank in ranks}
        if self._ready < count:
            what, why = "import PyTorch", "the machine may have too much to do; try again."
        else:
            what, why = "answer", _disagreement(stacks, count)
        raise StepError(
            f"[{self._who}] ranks {ranks} must {what} within {timeout:g} s: they did not; {why}\n"
            + "\n".join(f"rank {rank}:\n{stack}" for rank, stack in stacks.items())
        )

    def _stack(self, rank: int) -> str:
        try:
            text = (self._folder / f"stack-{rank}").read_text()  # type: ignore[operator]
        except OSError:
            return ""
        # The innermost calls come first, and say where the rank waits.
        return "\n\n".join(part for part in text.split("\n\n") if _WATCHES not in part)[:4000]


def _disagreement(stacks: dict[int, str], count: int) -> str:
    """Describe the collectives in which the ranks wait, as far as their stacks show."""
    called = {
        rank: found[1]
        for rank, stack in stacks.items()
        if (found := _COLLECTIVE.search(stack)) is not None
    }
    others = [rank for rank in range(count) if rank not in called]
    if count == 1:
        return "give a larger timeout if the step is slow."
    if not called or (not others and len(set(called.values())) == 1):
        return (
            "a collective that some ranks alone call waits forever; give a larger timeout if the "
            "step is slow."
        )
    told = ", ".join(f"rank {rank} called {name}" for rank, name in called.items())
    rest = f" where ranks {others} did not" if others else ""
    return f"ranks disagree: {told}{rest}; every rank must call the same collectives."


def _received(pipe: Any) -> tuple[str, Any]:
    try:
        answer: tuple[str, Any] = pipe.recv()
    except (EOFError, OSError):
        return "died", None
    return answer


_WORKERS = _Workers()
atexit.register(_WORKERS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKERS.forget)
