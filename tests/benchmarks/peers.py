"""Trains one workload on one framework and prints one JSON line.

    python peers.py WORKLOAD BACKEND [--replicas R] [--batch B] [--threads T] [--steps S]
    python peers.py WORKLOAD BACKEND --start     stops after the first step
    mpiexec -n P python peers.py WORKLOAD mpi --replicas R ...   samegrad on P processes

Everyone gets the same model, data, batch per replica and optimizer, and cuts its batches
inside the timed loop. `start_s` is the time from importing the framework to the end of the
first step, NumPy and the data already loaded; `per_second` and `step_ms` are the mean over
all timed steps, `best_per_second` that of the best fifth.
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
from typing import Any

from workloads import BATCH, STEPS, WARMUP, Arrays, Job, Program, load, peak_memory_mib

BACKENDS = {
    "samegrad": "tf_programs",
    "mpi": "tf_programs",
    "tf": "tf_programs",
    "torch": "torch_programs",
    "ddp": "torch_programs",
    "jax": "jax_programs",
}
BLOCKS = 5
Report = dict[str, Any]


def main() -> None:
    options = parse_arguments()
    job = Job(
        options.workload,
        options.backend,
        options.replicas,
        options.batch or BATCH[options.workload],
        options.threads,
    )
    steps = 0 if options.start else options.steps or STEPS[job.workload]
    report = run_processes(job, steps) if job.backend == "ddp" else run(job, steps)
    if job.backend != "mpi" or importlib.import_module("samegrad.distribute.mpi").rank() == 0:
        print(json.dumps(report), flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workload", choices=BATCH)
    parser.add_argument("backend", choices=BACKENDS)
    parser.add_argument("--replicas", type=positive, default=1)
    parser.add_argument("--batch", type=positive, help="examples per replica")
    parser.add_argument("--threads", type=positive, help="intra-op threads of a process")
    parser.add_argument("--steps", type=positive, help="timed steps")
    parser.add_argument("--start", action="store_true", help="measure the first step only")
    options = parser.parse_args()
    if options.backend == "torch" and options.replicas > 1:
        parser.error("torch is one process with one model: use ddp for several replicas")
    return options


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1: got {number}")
    return number


def run(job: Job, steps: int) -> Report:
    """Builds the program in this process, trains it and returns what was measured."""
    data = load(job.workload)
    data_memory = peak_memory_mib()
    begin = time.perf_counter()
    build = importlib.import_module(BACKENDS[job.backend]).build
    return measure(job, steps, begin, data_memory, build(job, data))


def measure(job: Job, steps: int, begin: float, data_memory: float, program: Program) -> Report:
    loss = program.value(program.step(0))
    start_s = time.perf_counter() - begin
    report: Report = {
        "workload": job.workload,
        "backend": job.backend,
        "version": program.version,
        "replicas": job.replicas,
        "batch": job.batch,
        "global_batch": job.global_batch,
        "threads": job.threads,
        "start_s": round(start_s, 3),
    }
    if steps:
        cpu = -time.process_time()
        times, loss = time_blocks(program, steps, WARMUP[job.workload])
        cpu += time.process_time()
        seconds = [block_seconds / block_steps for block_steps, block_seconds in times]
        mean = sum(block_seconds for _, block_seconds in times) / steps
        report |= {
            "unit": job.unit,
            "steps": steps,
            "per_second": round(job.units_per_step / mean, 1),
            "best_per_second": round(job.units_per_step / min(seconds), 1),
            "step_ms": round(mean * 1e3, 5),
            "best_step_ms": round(min(seconds) * 1e3, 5),
            # Of this process, on all its threads; the steps before the timed ones included.
            "cpu_ms": round(cpu / (steps + WARMUP[job.workload]) * 1e3, 5),
        }
    report["loss"] = round(loss, 5)
    report["data_memory_mib"] = round(data_memory, 1)
    report["peak_memory_mib"] = round(peak_memory_mib(), 1)
    return report


def time_blocks(program: Program, steps: int, warmup: int) -> tuple[list[tuple[int, float]], float]:
    """Returns (steps, seconds) of each block and the last loss.

    Reading the loss at the end of a block waits for frameworks that return before they finish.
    """
    for i in range(1, warmup + 1):
        loss = program.step(i)
    program.value(loss)
    times, done = [], 0
    for block in range(1, min(BLOCKS, steps) + 1):
        target = steps * block // min(BLOCKS, steps)
        begin = time.perf_counter()
        for i in range(done, target):
            loss = program.step(warmup + 1 + i)
        last = program.value(loss)
        times.append((target - done, time.perf_counter() - begin))
        done = target
    return times, last


def run_processes(job: Job, steps: int) -> Report:
    """Runs a DDP job, one process per replica; memory is the sum over the processes."""
    context = multiprocessing.get_context("spawn")
    reports = context.Queue()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    workers = [
        context.Process(target=run_ddp_worker, args=(rank, job, steps, port, reports))
        for rank in range(job.replicas)
    ]
    for worker in workers:
        worker.start()
    try:
        results = dict(receive(reports, workers) for _ in workers)
    finally:
        for worker in workers:
            worker.join(timeout=10)
            worker.terminate()
    for name in ("data_memory_mib", "peak_memory_mib"):
        results[0][name] = round(sum(report[name] for report in results.values()), 1)
    return results[0]


def receive(reports: Any, workers: list[Any]) -> tuple[int, Report]:
    """Returns the next (rank, report), or gives up when a worker has died."""
    while reports.empty():
        if any(worker.exitcode for worker in workers):
            sys.exit("ddp: a process failed, see its messages above")
        time.sleep(0.1)
    rank, report = reports.get()
    return rank, report


def run_ddp_worker(rank: int, job: Job, steps: int, port: int, reports: Any) -> None:
    data: Arrays = load(job.workload)
    data_memory = peak_memory_mib()
    begin = time.perf_counter()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed: Any = importlib.import_module("torch.distributed")
    distributed.init_process_group("gloo", rank=rank, world_size=job.replicas)
    program = importlib.import_module("torch_programs").build(job, data, rank)
    reports.put((rank, measure(job, steps, begin, data_memory, program)))
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
