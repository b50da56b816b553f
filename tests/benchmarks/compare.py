"""Runs samegrad and its peers by turns and prints who is faster, by how much.

    python compare.py --peer-python PEERS/bin/python [--only cnn-tf tiny-1] [--json FILE]

Every run is a process of its own, and the two sides of a duel alternate (peer, samegrad, peer,
samegrad, …), so that a machine that slows down slows both. The markdown goes to the standard
output, progress to the standard error, every report and figure to the JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import table
from duels import DUELS, IMPORT_GOAL, Duel, Side, work_per_unit
from workloads import DENSE, GIVEN

HERE = Path(__file__).resolve().parent
Report = dict[str, Any]


class RunError(Exception):
    """A process of the comparison failed."""


def main() -> int:
    options = parse_arguments()
    results: dict[str, Report] = {}
    with tempfile.TemporaryDirectory() as folder:
        meters = build_meters(Path(folder))
        for duel in DUELS:
            if duel.name in options.only:
                results[duel.name] = run_duel(duel, options, meters.get(meter_of(duel)))
    if "import" in options.only:
        results["import"] = compare_imports(options)
    print(markdown(results, options.pairs))
    if options.json:
        text = json.dumps(
            {"machine": machine(), "pairs": options.pairs, "duels": results}, indent=1
        )
        options.json.write_text(text + "\n")
    failed = any("error" in result for result in results.values())
    missed = any(not goal["met"] for result in results.values() for goal in result["goals"])
    return 1 if failed or (options.check and missed) else 0


def parse_arguments() -> argparse.Namespace:
    names = [duel.name for duel in DUELS] + ["import"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer-python", default=sys.executable, help="has requirements.txt")
    parser.add_argument("--python", default=sys.executable, help="has samegrad")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of each side (default: each one's own)")
    parser.add_argument("--steps", type=int, help="timed steps of a run")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="fail when a goal is missed")
    options = parser.parse_args()
    if options.pairs < 1:
        parser.error(f"--pairs must be at least 1: got {options.pairs}")
    return options


def build_meters(folder: Path) -> dict[str, Path]:
    """Compiles what measures this machine; without a compiler there are no shares of its peak."""
    compiler = [os.environ.get("CXX", "g++"), "-std=c++20", "-O3", "-march=native", "-pthread"]
    meters = {name: folder / name for name in ("fma_peak", "bandwidth")}
    try:
        for name, program in meters.items():
            execute([*compiler, str(HERE / f"{name}.cpp"), "-o", str(program)])
    except RunError as error:
        progress(f"no FMA peak and no bandwidth: {error}")
        return {}
    return meters


def run_duel(duel: Duel, options: argparse.Namespace, meter: Path | None) -> Report:
    """Returns all reports of a duel, its summary and its goals; or the error that ended it."""
    ours: list[Report] = []
    other: list[Report] = []
    peaks: list[Report] = []
    result: Report = {"ours": ours, "other": other, "peaks": peaks, "goals": []}
    try:
        for pair in range(1, options.pairs + 1):
            if meter:
                threads = str(options.threads or cores())
                peaks.append(json.loads(execute([str(meter), threads])))
            other.append(run_side(duel.workload, duel.other, options))
            ours.append(run_side(duel.workload, duel.ours, options))
            speeds = f"{ours[-1]['per_second']:,.0f} against {other[-1]['per_second']:,.0f} per s"
            progress(f"{duel.name} {pair}/{options.pairs}: {speeds}")
    except RunError as error:
        progress(f"{duel.name}: {error}")
        return result | {"error": str(error).splitlines()[-1]}
    result["summary"] = table.summarize(ours, other, peaks, work_per_unit(duel) if peaks else 0)
    result["goals"] = table.judge(duel.goals, result["summary"])
    return result


def meter_of(duel: Duel) -> str:
    """The program that measures what the time goes to: arithmetic, memory, or "" for neither."""
    if duel.workload in GIVEN:
        return "bandwidth"
    return "fma_peak" if duel.workload == "cnn" or duel.workload in DENSE else ""


def run_side(workload: str, side: Side, options: argparse.Namespace) -> Report:
    python = options.python if side.backend == "samegrad" else options.peer_python
    command = [python, str(HERE / "peers.py"), workload, side.backend]
    command += ["--replicas", str(side.replicas), "--batch", str(side.batch)]
    if options.threads:
        # A DDP replica is a process: its threads are its share of them.
        processes = side.replicas if side.backend == "ddp" else 1
        command += ["--threads", str(max(1, options.threads // processes))]
    if options.steps:
        command += ["--steps", str(options.steps)]
    report: Report = json.loads(execute(command).splitlines()[-1])
    return report


def compare_imports(options: argparse.Namespace) -> Report:
    """Returns the time NumPy's import takes and what samegrad's adds, processes by turns."""
    times: dict[str, list[float]] = {
        "pass": [],
        "import numpy": [],
        "import samegrad; samegrad.Tensor": [],  # the engine is loaded with the first name
    }
    result: Report = {"times": times, "goals": []}
    try:
        for i in range(2 * options.pairs + 1):
            for code, seconds in times.items():
                begin = time.perf_counter()
                execute([options.python, "-c", code])
                if i:  # the first turn fills the page cache
                    seconds.append(time.perf_counter() - begin)
    except RunError as error:
        progress(f"import: {error}")
        return result | {"error": str(error).splitlines()[-1]}
    empty, numpy, samegrad = times.values()
    result["numpy_s"] = median(b - a for a, b in zip(empty, numpy, strict=True))
    result["added_s"] = median(b - a for a, b in zip(numpy, samegrad, strict=True))
    return result | {"goals": table.judge((IMPORT_GOAL,), result)}


def execute(command: list[str]) -> str:
    """Returns the standard output of a process, or raises RunError with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
    except subprocess.CalledProcessError as error:
        words = error.stderr.strip() or f"exit status {error.returncode}"
        raise RunError(f"{' '.join(command)}\n{words}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(str(error)) from error
    return done.stdout


def markdown(results: dict[str, Report], pairs: int) -> str:
    """Returns the whole report: the machine, a row per duel, the peak and the import."""
    lines = [f"{processor()}, {cores()} cores; {pairs} pairs each.", "", table.HEADER]
    for duel in DUELS:
        if duel.name in results:
            lines.append(table.row(duel, results[duel.name]))
    lines.append("")
    for name, result in results.items():
        if "peak_share" in result.get("summary", {}):
            lines.append(f"- {name}: {table.peak_line(result['summary'])}")
    if "import" in results:
        lines.append(f"- {table.import_line(results['import'])}")
    return "\n".join(lines)


def machine() -> Report:
    """Returns what a reader of the figures must know about where and when they were made."""
    return {
        "processor": processor(),
        "cores": cores(),
        "platform": platform.platform(),
        "date": time.strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """Returns the processor's name, and its widest vector unit where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    flags = fields.get("flags", "").split()
    widest = next((name for name in ("avx512f", "avx2", "avx") if name in flags), "")
    return f"{fields.get('model name', platform.machine())} ({widest or platform.machine()})"


def cores() -> int:
    """Returns the CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
