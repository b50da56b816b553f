"""Random calls of every public name: none ends the process, and every refusal is ours.

As a command: `python random_calls.py --count 100000 --seed 0 --jobs 1`. A finding is repeated with
`--seed S --only INDEX` (and the same `--names`).
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

BATCH = 500
SECONDS = 20.0  # that one call may take
MEMORY = 6 << 30  # address space, of which threads and libraries take the first gigabytes


def arguments(parameters: Any, random: Random) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of a call: mostly right with one wrong, all wrong, or too many and unknown ones."""
    from hostile import right, wrong
    from surface import LOOK, SPEC

    if parameters is LOOK:
        return [], {}
    if parameters is None:
        return [wrong(random) for _ in range(random.randrange(4))], {}
    mode = random.random()
    rate = 0.0 if mode < 0.45 else 0.5 if mode < 0.8 else 1.0
    args: list[Any] = []
    options: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args += [wrong(random) for _ in range(random.choice((0, 0, 1, 2)))]
            continue
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        needed = parameter.default is inspect.Parameter.empty
        if not needed and random.random() < 0.5:
            continue
        value = wrong(random) if random.random() < rate else right(parameter, random)
        if needed and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            args.append(value)
        else:
            options[parameter.name] = value
    if mode < 0.35 and (args or options):
        place = random.randrange(len(args) + len(options))
        if place < len(args):
            args[place] = wrong(random)
        else:
            options[sorted(options)[place - len(args)]] = wrong(random)
    extra = random.random()
    if parameters is SPEC:
        return [str(args[0]) if isinstance(args[0], str) else "x"], {}
    if extra < 0.04:
        options["unknown_option"] = 1
    elif extra < 0.07 and args:
        args.pop()
    elif extra < 0.10:
        args += [wrong(random) for _ in range(random.choice((1, 3, 10)))]
    return args, options


def shown(value: Any) -> str:
    try:
        return repr(value)[:60]
    except BaseException as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"


def end(value: Any, random: Random) -> None:
    """Uses a result a little: an iterator is asked, a context manager entered."""
    if inspect.isgenerator(value) or hasattr(value, "__next__"):
        with contextlib.suppress(StopIteration):
            next(value)


def one_call(target: Any, random: Random) -> dict[str, Any] | None:
    """Makes one call; says what is wrong with its refusal, if anything is."""
    from hostile import OwnError
    from judge import fault_of

    args: list[Any] = []
    options: dict[str, Any] = {}
    try:
        function = target.get()
    except Exception:
        return {"count": f"no receiver of {target.path.rpartition('.')[0]}"}
    args, options = arguments(target.signature, random)
    try:
        end(function(*args, **options), random)
    except OwnError:
        return {"count": "user's own"}
    except BaseException as error:
        if comes_from_program(error):
            return {"count": "user's own"}
        if isinstance(error, StopIteration) and target.path.endswith("__next__"):
            return {"count": "accepted"}
        fault = fault_of(error)
        if fault is None:
            return {"count": "refused"}
        call = ", ".join([*map(shown, args), *(f"{k}={shown(v)}" for k, v in options.items())])
        last = [f for f in traceback.extract_tb(error.__traceback__) if "samegrad" in f.filename]
        at = (
            f"{os.path.basename(last[-1].filename)}:{last[-1].name}:{last[-1].lineno}"
            if last
            else "?"
        )
        return {
            "count": "faulty", "fault": fault, "target": target.path, "call": call[:300],
            "error": f"{type(error).__name__}: {str(error)[:300]}", "at": at,
        }  # fmt: skip
    return {"count": "accepted"}


def comes_from_program(error: BaseException) -> bool:
    """Whether a function of the calling program raised it: its last frame is in hostile.py."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and os.path.basename(frames[-1].filename) == "hostile.py"


def reset() -> None:
    """The settings of the process as they were: each call stands for itself."""
    import samegrad as tf

    tf.config.run_functions_eagerly(False)
    tf.debugging.disable_check_numerics()
    tf.keras.backend.set_floatx("float32")
    tf.debugging.disable_traceback_filtering()  # "at" names a line of samegrad


def work(seed: int, names: str, first: int, last: int, progress: str) -> None:
    """The calls [first, last), a line of JSON for each faulty one and a summary."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    from surface import targets

    every = targets(names)
    out = os.fdopen(os.dup(1), "w")
    counts: Counter[str] = Counter()
    silent = io.StringIO()
    with open(progress, "r+b", buffering=0) as place:
        for index in range(first, last):
            place.seek(0)
            place.write(f"{index:12d}".encode())
            random = Random(f"{seed}/{index}")
            target = every[index % len(every)]
            with contextlib.redirect_stdout(silent):
                result = one_call(target, random)
            silent.seek(0)
            silent.truncate()
            reset()
            if result is None:
                continue
            counts[result.pop("count")] += 1
            if result:
                out.write(json.dumps({"index": index, **result}) + "\n")
                out.flush()
    out.write(json.dumps({"counts": counts}) + "\n")
    out.flush()
    os._exit(0)


class Run:
    """Children that make the calls, one after the other."""

    def __init__(self, seed: int, names: str = "") -> None:
        self.seed, self.names = seed, names
        self.counts: Counter[str] = Counter()
        self.faulty: list[dict[str, Any]] = []

    def batch(self, first: int, last: int) -> None:
        """The calls [first, last), in as many processes as it takes."""
        while first < last:
            with tempfile.TemporaryDirectory() as folder:
                ended, at = self.child(first, last, folder)
            if ended == 0:
                return
            if at < first:
                raise RuntimeError(f"no call was made: the process ended with {ended}")
            self.faulty.append({
                "index": at, "target": "?", "fault": f"process ended: {ended}", "call": "",
                "error": "", "at": "?",
            })  # fmt: skip
            self.counts["hang" if ended == "hang" else "signal"] += 1
            first = at + 1

    def child(self, first: int, last: int, folder: str) -> tuple[Any, int]:
        progress = os.path.join(folder, "progress")
        Path(progress).write_bytes(b"%12d" % -1)
        command = [sys.executable, __file__, "--work", str(first), str(last), progress]
        output = Path(folder) / "output"
        with output.open("wb") as out:
            process = subprocess.Popen(
                [*command, "--seed", str(self.seed), "--names", self.names],
                stdout=out, stderr=subprocess.DEVNULL,
                cwd=folder, env={**os.environ, "PYTHONHASHSEED": "0", "SAMEGRAD_NUM_THREADS": "2"},
            )  # fmt: skip
            ended = self.wait(process, progress)
        for line in output.read_text().splitlines():
            entry = json.loads(line)
            if "counts" in entry:
                self.counts.update(entry["counts"])
            else:
                self.faulty.append(entry)
        return ended, int(Path(progress).read_bytes())

    @staticmethod
    def wait(process: Any, progress: str) -> Any:
        before, since = b"", time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            now = Path(progress).read_bytes()
            if now != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > SECONDS + 100 * (before.strip() in (b"", b"-1")):
                process.kill()
                process.wait()
                return "hang"
        return process.returncode


def report(run: Run, most: int) -> str:
    """The counts, and the faulty refusals by cause, most frequent first."""
    lines = [", ".join(f"{name} {count}" for name, count in sorted(run.counts.items()))]
    causes: dict[str, list[dict[str, Any]]] = {}
    for entry in run.faulty:
        causes.setdefault(f"{entry['fault']} | {entry['at']}", []).append(entry)
    for cause, entries in sorted(causes.items(), key=lambda item: -len(item[1]))[:most]:
        first = entries[0]
        lines.append(f"{len(entries):6d}  {cause}")
        lines.append(f"        {first['index']}: {first['target']}({first['call']})")
        lines.append(f"        {first['error']}")
    return "\n".join(lines)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--only", type=int)
    options.add_argument("--names", default="", help="beginnings of names, separated by commas")
    options.add_argument("--most", type=int, default=40, help="causes that are printed")
    options.add_argument("--json", type=Path, help="where to write the faulty refusals")
    options.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.work:
        work(given.seed, given.names, int(given.work[0]), int(given.work[1]), given.work[2])
    if given.only is not None:
        return repeat(given.seed, given.names, given.only)
    from concurrent.futures import ThreadPoolExecutor

    run = Run(given.seed, given.names)
    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(
            lambda first: run.batch(first, min(first + BATCH, given.count)),
            range(0, given.count, BATCH),
        ))  # fmt: skip
    print(report(run, given.most))
    if given.json:
        given.json.write_text("\n".join(map(json.dumps, run.faulty)))
    return 1 if run.faulty else 0


def repeat(seed: int, names: str, index: int) -> int:
    """One call again, with its whole traceback."""
    from surface import targets

    every = targets(names)
    target = every[index % len(every)]
    random = Random(f"{seed}/{index}")
    function = target.get()
    args, options = arguments(target.signature, random)
    print(target.path, *map(shown, args), {k: shown(v) for k, v in options.items()})
    end(function(*args, **options), random)
    return 0


if __name__ == "__main__":
    sys.exit(main())
