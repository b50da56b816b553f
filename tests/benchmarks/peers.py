"""Train one workload on one framework; print a JSON line after each turn.

    python peers.py WORKLOAD BACKEND [--replicas R] [--batch B] [--threads T]
    python peers.py WORKLOAD BACKEND --steps 2 10
    mpiexec -n P python peers.py WORKLOAD mpi --replicas R --steps 2 10
    torchrun ... peers.py WORKLOAD ddp --replicas R --steps 2 10

The first line has the conditions, the loss of the first step, and the time from importing the
framework to the end of that step (`start_s`). Then each number on the standard input, or of
`--steps`, is a turn of so many steps. `explain N` measures the steps of samegrad's plan N times.
All frameworks get the same model, data, batch per replica and optimizer.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from models import MODELS
from workloads import BATCH, Arrays, Job, Program, load, peak_memory_mib

BACKENDS = {
    "samegrad": "tf_programs",
    "mpi": "tf_programs",
    "tf": "tf_programs",
    "torch": "torch_programs",
    "ddp": "torch_programs",
    "jax": "jax_programs",
}
MODEL_BACKENDS = {
    "samegrad": "keras_models",
    "tf": "keras_models",
    "xla": "keras_models",
    "torch": "torch_models",
    "inductor": "torch_models",
}
Report = dict[str, Any]


def main() -> None:
    options = parse_arguments()
    job = Job(
        options.workload,
        options.backend,
        options.replicas,
        options.batch or batches()[options.workload],
        options.threads,
    )
    turns = sys.stdin if options.steps is None else options.steps
    if job.backend != "ddp":
        reports = run(job, turns)
    elif "RANK" in os.environ:
        reports = run_rank(job, turns)
    else:
        reports = run_processes(job, turns)
    speaks = job.backend != "mpi" or importlib.import_module("samegrad.distribute.mpi").rank() == 0
    for report in reports:
        if speaks:
            print(json.dumps(report), flush=True)


def batches() -> dict[str, int]:
    """Return the batch of a replica for each workload."""
    return BATCH | {name: model.batch for name, model in MODELS.items()}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", choices=batches())
    parser.add_argument("backend", choices=BACKENDS | MODEL_BACKENDS)
    parser.add_argument("--replicas", type=positive, default=1)
    parser.add_argument("--batch", type=positive, help="examples per replica")
    parser.add_argument("--threads", type=positive, help="intra-op threads of a process")
    parser.add_argument("--steps", nargs="*", help="of each turn (default: from stdin)")
    options = parser.parse_args()
    if options.backend == "torch" and options.replicas > 1:
        parser.error("torch is one process with one model: use ddp for several replicas")
    if options.backend not in (MODEL_BACKENDS if options.workload in MODELS else BACKENDS):
        parser.error(f"{options.workload} is not written for {options.backend}")
    return options


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1: got {number}")
    return number


def run(job: Job, turns: Iterable[str]) -> Iterator[Report]:
    """Build the program in this process and report its turns."""
    if job.workload in MODELS:
        data, module = MODELS[job.workload].arrays(job.global_batch), MODEL_BACKENDS[job.backend]
    else:
        data, module = load(job.workload), BACKENDS[job.backend]
    build = importlib.import_module(module).build
    return measure(job, turns, lambda: build(job, data))


def measure(job: Job, turns: Iterable[str], build: Callable[[], Program]) -> Iterator[Report]:
    """Report the conditions and the first step, then each turn.

    Reading the loss at the end of a turn waits for frameworks that return before they finish.
    """
    data_memory, begin = peak_memory_mib(), time.perf_counter()
    program = build()
    loss = program.value(program.step(0))
    yield {
        "workload": job.workload,
        "backend": job.backend,
        "version": program.version,
        "replicas": job.replicas,
        "batch": job.batch,
        "threads": job.threads,
        "parameters": program.parameters,
        "start_s": round(time.perf_counter() - begin, 3),
        "loss": round(loss, 5),
        "base_memory_mib": round(program.import_memory_mib or data_memory, 1),
        "peak_memory_mib": round(peak_memory_mib(), 1),
    }
    done = 1
    for turn in turns:
        if turn.startswith("explain"):
            assert program.explain is not None
            yield by_kind(program.explain(int(turn.split()[1])))
            continue
        steps = int(turn)
        begin, cpu = time.perf_counter(), time.process_time()
        for i in range(done, done + steps):
            loss = program.step(i)
        value = program.value(loss)
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        done += steps
        yield {
            "steps": steps,
            "step_ms": round(1e3 * seconds / steps, 5),
            "cpu_ms": round(1e3 * cpu / steps, 5),  # of this process, on all its threads
            "loss": round(value, 5),
            "peak_memory_mib": round(peak_memory_mib(), 1),
        }


def by_kind(plan: Any) -> Report:
    """Return what a plan's steps take and what threads share, summed by kind and in all."""
    sums = ("predicted", "least", "parallel_loops", "pieces")
    found: Report = {}
    for step in plan.steps:
        kind = step.operations[0].name if step.kind == "once" else step.kind
        total = found.setdefault(kind, dict.fromkeys(("steps", *sums), 0))
        total["steps"] += 1
        for name in sums:
            total[name] += getattr(step, name)
    found["whole step"] = {n: sum(kind[n] for kind in found.values()) for n in ("steps", *sums)}
    return found


def run_processes(job: Job, turns: Iterable[str]) -> Iterator[Report]:
    """Run a DDP job, one process per replica; memory is the sum over the processes."""
    context = multiprocessing.get_context("spawn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pipes = [context.Pipe() for _ in range(job.replicas)]
    workers = [
        context.Process(target=run_ddp_worker, args=(rank, job, port, theirs), daemon=True)
        for rank, (_, theirs) in enumerate(pipes)
    ]
    for worker in workers:
        worker.start()
    for _, theirs in pipes:
        theirs.close()  # so that the end of a worker ends recv()
    yield receive([ours for ours, _ in pipes])
    for turn in turns:
        for ours, _ in pipes:
            ours.send(turn)
        yield receive([ours for ours, _ in pipes])


def receive(pipes: list[Any]) -> Report:
    """Return the report of rank 0 with the memory of all, or end where a process has died."""
    try:
        reports = [pipe.recv() for pipe in pipes]
    except EOFError:
        sys.exit("ddp: a process failed, see its messages above")
    memory = [name for name in reports[0] if name.endswith("_memory_mib")]
    return reports[0] | {name: round(sum(r[name] for r in reports), 1) for name in memory}


def run_ddp_worker(rank: int, job: Job, port: int, pipe: Any) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(job.replicas))
    for report in run_rank(job, iter(pipe.recv, None)):
        pipe.send(report)


def run_rank(job: Job, turns: Iterable[str]) -> Iterator[Report]:
    """Run a process of a DDP job, whose variables of the environment are those of torchrun."""
    data: Arrays = load(job.workload)

    def build() -> Program:
        distributed: Any = importlib.import_module("torch.distributed")
        distributed.init_process_group("gloo")
        rank = int(os.environ["RANK"])
        program: Program = importlib.import_module("torch_programs").build(job, data, rank)
        return program

    return measure(job, turns, build)


if __name__ == "__main__":
    main()
