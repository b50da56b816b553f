"""TensorFlow's own test files on samegrad: a search by hand, no part of the test suite.

    python run.py CHECKOUT ours.jsonl                      # every test, on samegrad
    python run.py CHECKOUT theirs.jsonl --module tensorflow --failed ours.jsonl
    python run.py CHECKOUT --table ours.jsonl theirs.jsonl

CHECKOUT holds `tensorflow/python` of a checkout of TensorFlow. Each file runs in a process of its
own, eagerly. Its imports of `tensorflow.python` give the public names that `@tf_export` states.
The second command runs what did not pass on TensorFlow with the same stand-ins, as the control. A
test that fails there needs internal names, graph mode, a session or a GPU: it counts as internal.
The others that do not pass are counted by cause:

    lacks       a public name of TensorFlow that samegrad lacks
    refused     one that samegrad leaves out, with a hint what to write instead
    attribute   an attribute of an object, or of a module, that samegrad lacks
    keyword     an argument that samegrad's function does not take
    value       other values, shapes or dtypes
    accepts     no error where TensorFlow raises one
    message     an error of the expected type with other words
    error       an error where TensorFlow gives a value, or an error of another type
    time        more than 20 seconds
    crash       the process ended before the test did
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import child

FOLDERS = (
    "data/kernel_tests", "kernel_tests", "module", "ops", "util", "framework", "eager",
)  # fmt: skip
# Internals of TensorFlow by their folder or name.
_NOT_ASKED = (
    "/distributions/", "/custom_ops/", "/proto/", "/v1_compat_tests/", "/benchmarks/",
    "_benchmark", "parallel_for", "/structured/", "sharding", "/integration_test/", "xla",
)  # fmt: skip
_SECONDS_PER_FILE = 150
# What the control is not asked for.
_SETTLED = ("passed", "skipped", "internal")


def files(checkout: Path, only: Iterable[str]) -> list[str]:
    """Return the test files below folders of tensorflow/python."""
    found = set()
    for name in only:
        base = checkout / "tensorflow" / "python" / name
        found |= {base} if base.is_file() else set(base.rglob("*_test.py"))
    paths = sorted(x.relative_to(checkout).as_posix() for x in found)
    return [x for x in paths if not any(part in x for part in _NOT_ASKED)]


def read(path: Path) -> dict[str, dict[str, Any]]:
    """Return the outcome of each test."""
    lines = [json.loads(x) for x in path.read_text(encoding="utf-8").splitlines()]
    return {x["test"]: x for x in lines}


def run(
    checkout: Path, paths: list[str], results: Path, module: str, only: set[str] | None
) -> None:
    """Run each file in a fork of this process, which has imported the module under test."""
    tf = importlib.import_module(module)
    if module == "samegrad":
        tf.install_as_tensorflow()
        tf = importlib.import_module("tensorflow")
    for path in paths:
        asked = None if only is None else {x for x in only if x.startswith(f"{path}::")}
        if asked is not None and not asked:
            continue
        process = os.fork()
        if process == 0:
            _quiet()
            os.setsid()
            child.run_file(checkout, path, results, tf, asked)
            os._exit(0)
        _wait(process, path, results)


def _quiet() -> None:
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)


def _wait(process: int, path: str, results: Path) -> None:
    """Wait for a fork; end it after its time, and write that."""
    deadline = time.monotonic() + _SECONDS_PER_FILE
    outcome = "crash"
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > deadline:
            os.killpg(process, signal.SIGKILL)
            outcome = "time"
        time.sleep(0.02)
    if status:
        line = {"test": f"{path}::*", "outcome": outcome, "reason": f"status {status}", "at": ""}
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def table(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Return the counts of outcomes by folder, judged by the control."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for test, line in ours.items():
        outcome = judged(line, theirs.get(test))
        if outcome != "skipped":
            folder = test.partition("::")[0].removeprefix("tensorflow/python/").rpartition("/")[0]
            counts[folder][outcome] += 1
            counts["all"][outcome] += 1
    kinds = [x for x, _ in counts["all"].most_common()]
    width = max(len(x) for x in counts) + 2
    lines = ["".ljust(width) + "".join(x.rjust(11) for x in kinds)]
    for folder in sorted(counts, key=lambda x: (x == "all", x)):
        lines.append(folder.ljust(width) + "".join(str(counts[folder][x]).rjust(11) for x in kinds))
    return "\n".join(lines)


def judged(line: dict[str, Any], control: dict[str, Any] | None) -> str:
    """Return the outcome of a test; internal where the control did not pass it."""
    outcome: str = line["outcome"]
    passes = control is not None and control["outcome"] == "passed"
    return outcome if passes or outcome in _SETTLED else "internal"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--module", default="samegrad", help="samegrad or tensorflow")
    parser.add_argument("--failed", type=Path, help="run what did not pass there")
    parser.add_argument("--only", nargs="+", default=FOLDERS, help="folders of tensorflow/python")
    parser.add_argument("--table", nargs=2, type=Path, help="print the table of two results")
    options = parser.parse_args()
    if options.table:
        print(table(*(read(x) for x in options.table)))
        return
    only = None
    if options.failed:
        lines = read(options.failed)
        only = {x for x, y in lines.items() if y["outcome"] not in _SETTLED}
    options.results.write_text("")
    paths = files(options.checkout, options.only)
    run(options.checkout, paths, options.results, options.module, only)


if __name__ == "__main__":
    main()
