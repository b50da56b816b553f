"""One process of DistributedDataParallel: takes jobs from a pipe until it is closed."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import inspect
import os
import pickle
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

from samegrad_doctor._tracebacks import keep_user_frames
from samegrad_doctor._updates import digest
from samegrad_doctor.adapters._torch import accumulate, array_of, parts_of, tensors_of

Ran = tuple[list[Any], "float | None"]  # gradients, and the loss that the rank reports
Runner = Callable[[Any, list[Any], dict[str, Any]], Ran]


@dataclass(frozen=True)
class Job:
    """The work of one rank for one run of the step.

    Args:
        who: The adapter that the user called, for messages.
        rank: Its number.
        world: How many ranks there are.
        store: The file through which a new group finds itself; None keeps the group.
        timeout: Seconds after which the group gives up.
        build: The user's function, pickled.
        module: Name and file of the module that has it.
        runner: Makes gradients of what build returns, of micro-batches, and of the options.
        options: Of the runner, and of the step.
        share: The replica's batch, or its list of micro-batches.
    """

    who: str
    rank: int
    world: int
    store: str | None
    timeout: float
    build: bytes
    runner: Runner
    module: tuple[str, str | None]
    options: dict[str, Any]
    share: Any


def work(pipe: Any, stack: str) -> None:
    """Answers each job with ("done", result) or ("failed", traceback).

    Args:
        pipe: Jobs come in, answers go out.
        stack: A file for the stack if the process hangs or crashes.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with Path(stack).open("w") as file:
        faulthandler.enable(file)
        if hasattr(faulthandler, "register"):
            faulthandler.register(signal.SIGUSR1, file)
        with contextlib.suppress(EOFError, BrokenPipeError):
            _answer_all(pipe)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _answer_all(pipe: Any) -> None:
    try:
        import torch

        # A wrapped model needs it: loaded here, all processes do that at once, before time runs.
        with contextlib.suppress(ImportError):
            importlib.import_module("torch._dynamo")
        torch.set_num_threads(1)
        pipe.send(("ready", None))
    except BaseException:
        pipe.send(("failed", traceback.format_exc()))
        return
    while True:
        job = pipe.recv()
        answer: tuple[str, Any]
        try:
            answer = ("done", _run(job))
        except BaseException as error:
            keep_user_frames(error)
            answer = ("failed", traceback.format_exc())
        pipe.send(answer)


def _run(job: Job) -> tuple[list[Any] | None, Any, float | None]:
    """Rank 0's gradients after the all-reduce, a digest of them, and the loss of the rank."""
    import torch

    _join(job)
    options = dict(job.options)
    build = _imported(job)
    torch.manual_seed(options.pop("seed"))  # after the import, which may draw numbers
    parts = [tensors_of(part) for part in parts_of(job.share)]
    gradients, loss = job.runner(_built(build, job.rank), parts, options)
    return gradients if job.rank == 0 else None, digest(gradients), loss


def run_ddp(built: Any, parts: list[Any], options: dict[str, Any]) -> Ran:
    """DistributedDataParallel around a module, and its loss (or run) on the micro-batches."""
    from torch.nn.parallel import DistributedDataParallel

    model, function = built
    whole, reported = options.pop("whole_shard"), options.pop("reported")
    parallel = DistributedDataParallel(model, **options)
    loss = accumulate("ddp_step", parallel, function, parts, whole, reported)
    return [array_of(p, p.grad) for p in model.parameters() if p.requires_grad], loss


def _imported(job: Job) -> Callable[..., Any]:
    """The user's function."""
    name, file = job.module
    if name not in sys.modules and file is not None:
        spec = None
        with contextlib.suppress(ModuleNotFoundError):
            spec = importlib.util.find_spec(name)
        if spec is None or spec.origin != file:  # a file that was not imported by its name
            spec = importlib.util.spec_from_file_location(name, file)
            assert spec is not None and spec.loader is not None
            sys.modules[name] = importlib.util.module_from_spec(spec)
            sys.path.insert(0, str(Path(file).parent))  # as `python FILE` does
            spec.loader.exec_module(sys.modules[name])
    return pickle.loads(job.build)  # type: ignore[no-any-return]


def _built(build: Callable[..., Any], rank: int) -> Any:
    """Return the result of the user's function."""
    takes = [
        p for p in inspect.signature(build).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    return build(rank) if takes else build()


def _join(job: Job) -> None:
    """Leaves the group of the run before and joins another, where there is one."""
    from torch import distributed

    # Each time: a loop may take its variables away at its end.
    os.environ.update(
        RANK=str(job.rank), LOCAL_RANK=str(job.rank), WORLD_SIZE=str(job.world),
        LOCAL_WORLD_SIZE=str(job.world),
    )  # fmt: skip
    if job.store is None:
        return
    if distributed.is_initialized():
        distributed.destroy_process_group()
    # Else gloo looks up the host's name, which need not lead to this machine.
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if loopback:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
    distributed.init_process_group(
        "gloo", store=distributed.FileStore(job.store, job.world), rank=job.rank,
        world_size=job.world, timeout=timedelta(seconds=job.timeout),
    )  # fmt: skip
