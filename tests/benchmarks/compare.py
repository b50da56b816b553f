"""Run samegrad and its peers in turns and print how the times and the memory compare.

    python compare.py --peer-python PEERS/bin/python [--only cnn tiny] [--json FILE]
    python compare.py --peer-python PEERS/bin/python --only models --explain 10

Each contestant of a duel is a process, which lives through all pairs. A pair is one turn of each,
while all others are stopped. The steps of a turn take about `--turn` seconds. Each process has a
scheduling group of its own at raised priority, where Linux and the user's rights allow that. The
markdown goes to the standard output, progress to the standard error, every turn to the JSON file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import table
from duels import DUELS, Duel, Side
from models import MODELS
from workloads import DENSE, GIVEN

HERE = Path(__file__).resolve().parent
WARM_SECONDS = 0.3  # of steps before the first pair
Report = dict[str, Any]


class RunError(Exception):
    """A process of the comparison failed."""


class Contestant:
    """A process of peers.py, which is stopped between its turns.

    Args:
        duel: The workload.
        side: The backend.
        options: Of the command line.
    """

    def __init__(self, duel: Duel, side: Side, options: argparse.Namespace) -> None:
        python = options.python if side.backend == "samegrad" else options.peer_python
        command = [python, str(HERE / "peers.py"), duel.workload, side.backend]
        command += ["--replicas", str(side.replicas), "--batch", str(side.batch)]
        # A DDP replica is a process: its threads are its share of them.
        processes = side.replicas if side.backend == "ddp" else 1
        if threads := side.threads or options.threads:
            command += ["--threads", str(max(1, threads // processes))]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
        )
        raise_priority(self._process.pid, options.priority)
        self.report = self._read() | {"turns": []}
        self._steps = self._warm(options.turn)
        self._signal(signal.SIGSTOP)

    def _warm(self, seconds: float) -> int:
        """Run until the steps have their usual time; return how many make a turn."""
        steps, spent = 1, 0.0
        while True:
            turn = self._turn(steps)
            spent += turn["step_ms"] * steps / 1e3
            if (spent > WARM_SECONDS and steps > 1) or spent > 4 * WARM_SECONDS:
                return max(1, round(1e3 * seconds / turn["step_ms"]))
            steps *= 2

    def explain(self, runs: int) -> Report:
        """Return samegrad's predicted and measured times by kind of step."""
        self._signal(signal.SIGCONT)
        return self._ask(f"explain {runs}")

    def take_turn(self) -> Report:
        """Run the steps of a turn while this process alone goes on."""
        self._signal(signal.SIGCONT)
        turn = self._turn(self._steps) | {"load": round(os.getloadavg()[0], 2)}
        self._signal(signal.SIGSTOP)
        self.report["turns"].append(turn)
        return turn

    def _turn(self, steps: int) -> Report:
        return self._ask(str(steps))

    def _ask(self, line: str) -> Report:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # which _read() reports
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        return self._read()

    def _read(self) -> Report:
        """Return the next line of the process, or raise its last words."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("{"):
            self.end()
            self._errors.seek(0)
            words = self._errors.read().strip() or f"exit status {self._process.returncode}"
            raise RunError(f"{self._process.args[2:4]}: {words[-2000:]}")  # type: ignore[index]
        report: Report = json.loads(line)
        return report

    def _signal(self, number: signal.Signals) -> None:
        os.killpg(self._process.pid, number)

    def end(self) -> None:
        """End the process and its children."""
        with contextlib.suppress(ProcessLookupError):
            self._signal(signal.SIGKILL)
        self._process.wait()


def raise_priority(process: int, nice: int) -> None:
    """Give a new session a priority beside other sessions, which Linux groups by session."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{process}/autogroup").write_text(str(nice))


def main() -> int:
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends stopped contestants, too
    results: dict[str, Report] = {}
    with tempfile.TemporaryDirectory() as folder:
        meters = build_meters(Path(folder))
        for duel in DUELS:
            if duel.name in options.only:
                results[duel.name] = run_duel(duel, options, meters.get(meter_of(duel)))
    if "import" in options.only:
        results["import"] = compare_imports(options)
    found = machine() | {"pairs": options.pairs, "duels": results}
    print(table.markdown(found))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    missed = [line for line in table.verdicts(found) if "MISSED" in line or "failed" in line]
    failed = any("error" in result for result in results.values())
    return 1 if failed or (options.check and missed) else 0


def parse_arguments() -> argparse.Namespace:
    names = [duel.name for duel in DUELS] + ["import"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer-python", default=sys.executable, help="has requirements.txt")
    parser.add_argument("--python", default=sys.executable, help="has samegrad")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--turn", type=float, default=0.4, help="seconds of a turn")
    parser.add_argument("--threads", type=int, help="of each side (default: each one's own)")
    parser.add_argument("--priority", type=int, default=-10, help="of the scheduling groups")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*names, "models"],
        default=names,
        metavar="NAME",
        help="`models` are those of models.py",
    )
    parser.add_argument(
        "--explain", type=int, default=0, metavar="RUNS", help="measure samegrad's plans too"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="fail when a goal is missed")
    options = parser.parse_args()
    if options.pairs < 1:
        parser.error(f"--pairs must be at least 1: got {options.pairs}")
    if "models" in options.only:
        options.only += MODELS
    return options


def build_meters(folder: Path) -> dict[str, Path]:
    """Compile what measures this machine; without a compiler there are no shares of its peak."""
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
    """Return the reports of all sides and of the meter, or the error that ended the duel.

    A peer that fails is left out where there are others.
    """
    contestants: list[Contestant] = []
    peaks: list[Report] = []
    result: Report = {"sides": [], "peaks": peaks, "failed": {}}
    try:
        for side in duel.sides:
            try:
                contestants.append(Contestant(duel, side, options))
                progress(f"{duel.name} {side.label}: ready")
            except RunError as error:
                is_last = side == duel.sides[-1] and len(contestants) < 2
                if side == duel.ours or is_last:
                    raise
                result["failed"][side.label] = str(error).splitlines()[-1]
        for pair in range(options.pairs):
            if meter:
                threads = str(options.threads or cores())
                peaks.append(json.loads(execute([str(meter), threads])))
            for each in contestants[:: -1 if pair % 2 else 1]:
                each.take_turn()
        result["sides"] = [each.report for each in contestants]
        if options.explain and duel.name in MODELS and not MODELS[duel.name].eager:
            result["explained"] = contestants[0].explain(options.explain)
        progress(f"{duel.name}: {table.verdict(duel, result)}")
    except RunError as error:
        progress(f"{duel.name}: {error}")
        return result | {"error": str(error).splitlines()[-1]}
    finally:
        for each in contestants:
            each.end()
    return result


def meter_of(duel: Duel) -> str:
    """Name the program that measures what the time goes to: arithmetic or memory."""
    if duel.workload in GIVEN:
        return "bandwidth"
    return "fma_peak" if duel.workload == "cnn" or duel.workload in DENSE else ""


def compare_imports(options: argparse.Namespace) -> Report:
    """Return the time of NumPy's import and what samegrad's adds, processes in turns."""
    times: dict[str, list[float]] = {
        "pass": [],
        "import numpy": [],
        "import samegrad; samegrad.Tensor": [],  # the engine is loaded with the first name
    }
    try:
        for i in range(2 * options.pairs + 1):
            for code, seconds in times.items():
                begin = time.perf_counter()
                execute([options.python, "-c", code])
                if i:  # the first turn fills the page cache
                    seconds.append(round(time.perf_counter() - begin, 4))
    except RunError as error:
        progress(f"import: {error}")
        return {"error": str(error).splitlines()[-1]}
    empty, numpy, samegrad = times.values()
    return {
        "numpy_s": median(b - a for a, b in zip(empty, numpy, strict=True)),
        "added_s": median(b - a for a, b in zip(numpy, samegrad, strict=True)),
    }


def execute(command: list[str]) -> str:
    """Return the standard output of a process, or raise RunError with its last words."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
    except subprocess.CalledProcessError as error:
        words = error.stderr.strip() or f"exit status {error.returncode}"
        raise RunError(f"{' '.join(command)}\n{words}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(str(error)) from error
    return done.stdout


def machine() -> Report:
    """Return where, when and how the figures were made."""
    names = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    return {
        "processor": processor(),
        "cores": cores(),
        "platform": platform.platform(),
        "date": time.strftime("%Y-%m-%d"),
        "command": shlex.join(["python", "tests/benchmarks/compare.py", *names]),
    }


def processor() -> str:
    """Return the processor's name, and its widest vector unit where Linux tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    fields = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
    flags = fields.get("flags", "").split()
    widest = next((name for name in ("avx512f", "avx2", "avx") if name in flags), "")
    return f"{fields.get('model name', platform.machine())} ({widest or platform.machine()})"


def cores() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
