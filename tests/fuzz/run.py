"""Draws programs and holds the engine against the interpreter, for as long as told.

    python tests/fuzz/run.py --time 3600 [--seed N] [--programs N] [--jobs N]

Prints what was drawn and on which paths of the plan operations ran; ends with 1 if there was a
difference, whose programs are shrunk and printed.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import multiprocessing
import os
import pathlib
import random
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fuzz.compare import check, plan_modes
from fuzz.coverage import paths_of
from fuzz.generate import generate
from fuzz.processes import PACKAGE, Workers
from fuzz.program import Program
from fuzz.shrink import shrink
from fuzz.source import text

INNER_LOOP = 24 << 10  # bytes of an example from which on the plan changes


@dataclasses.dataclass
class Report:
    """What many programs showed."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    paths: collections.Counter[tuple[str, str]] = dataclasses.field(
        default_factory=collections.Counter
    )
    failures: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Report) -> None:
        self.counts += other.counts
        self.paths += other.paths
        self.failures += other.failures


def kinds(program: Program) -> Iterator[str]:
    """By what programs are counted."""
    yield "programs"
    if program.largest() > INNER_LOOP:
        yield "over 24 KiB per example"
    if len(set(program.shares)) > 1:
        yield "unequal per-replica batches"
    if 0 in program.shares:
        yield "empty shares"
    if 1 in program.shares:
        yield "a share of one example"
    if max(program.uses_of_variables().values()) > 1:
        yield "a weight used more than once"
    if program.second:
        yield "second derivatives"
    if len(program.updates) > 1:
        yield "several writes"


def one(seed: int, workers: Workers, report: Report, patience: float) -> None:
    """Draws, runs and judges the program of a seed."""
    program = generate(seed, large=seed % 7 == 0)
    wanted = plan_modes(program, random.Random(seed))
    differences, outcomes = check(program, workers, wanted)
    report.counts.update(kinds(program))
    for (_, mode), outcome in outcomes.items():
        report.paths.update(paths_of(mode, outcome))
    if not differences:
        return
    report.counts["differences"] += 1
    small, modes, found = shrink(program, wanted, differences[0], workers, patience)
    kind = "eager" if any(m.kind == "eager" for ms in modes.values() for m in ms) else "run"
    report.failures.append(f"seed {seed}: {found}\n\n{text(small, kind)}")


def work(job: int, options: Any, results: Any) -> None:
    """One job: seeds job, job + jobs, …"""
    workers = Workers(options.package, options.limit)
    end = time.monotonic() + options.time
    seed, last = options.seed + job, options.seed + options.programs
    try:
        while time.monotonic() < end and seed < last:
            report = Report()
            try:
                if seed in options.skip:
                    continue
                one(seed, workers, report, options.shrink)
            except Exception:
                report.failures.append(f"seed {seed}: the fuzzer\n{traceback.format_exc()}")
            finally:
                seed += options.jobs
            results.put(report)
            if report.failures and options.first:
                break
    finally:
        workers.close()
        results.put(None)


def collect(options: Any) -> Report:
    """Runs all jobs to their ends."""
    results: Any = multiprocessing.Queue()
    jobs = [
        multiprocessing.Process(target=work, args=(job, options, results))
        for job in range(options.jobs)
    ]
    for job in jobs:
        job.start()
    total, running, told = Report(), len(jobs), time.monotonic()
    while running:
        report = results.get()
        if report is None:
            running -= 1
            continue
        total.add(report)
        for failure in report.failures:
            print(f"\n==== {failure}", flush=True)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(
                f"{total.counts['programs']} programs, {len(total.failures)} differences",
                flush=True,
            )
        if report.failures and options.first:
            break
    for job in jobs:
        if options.first:
            job.terminate()
        job.join()
    return total


def table(report: Report) -> str:
    """How often each row was drawn on each path."""
    columns = ["tile", "inner", "rows", "deferred", "update", "sparse", "whole", "reduced", "eager"]
    names = sorted({name for name, _ in report.paths})
    lines = [f"{'':32}" + "".join(f"{c:>10}" for c in columns)]
    for name in names:
        lines.append(f"{name:32}" + "".join(f"{report.paths[name, c] or '':>10}" for c in columns))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--time", type=float, default=60, help="seconds")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--programs", type=int, default=1 << 40, help="at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=120, help="seconds until a program hangs")
    parser.add_argument("--shrink", type=float, default=60, help="seconds for each difference")
    parser.add_argument("--skip", type=int, nargs="*", default=[], help="seeds that are known")
    parser.add_argument("--first", action="store_true", help="stop at the first difference")
    parser.add_argument("--package", type=pathlib.Path, default=PACKAGE, help="where samegrad is")
    options = parser.parse_args()
    report = collect(options)
    print("\n" + table(report))
    for kind, count in report.counts.most_common():
        print(f"{count:8} {kind}")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
