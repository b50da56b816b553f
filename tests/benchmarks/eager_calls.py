"""What small operations outside of any function take: microseconds and instructions of a call.

    python tests/benchmarks/eager_calls.py
    python tests/benchmarks/eager_calls.py --instructions add number

Times are the shortest of many rounds. Instructions need valgrind: each form runs under callgrind,
so that other programs on the machine do not change the counts.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from keras_instructions import count

import samegrad as tf

_ROUNDS = 40


def _layer() -> Callable[[], Any]:
    dense = tf.keras.layers.Dense(4)
    x = _matrix()
    return lambda: dense(x)


def _tape() -> Callable[[], Any]:
    x = _matrix()

    def call() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(10):
                y = y * x
        return tape

    return call


def _matrix() -> tf.Tensor:
    return tf.constant(np.linspace(0, 1, 16, dtype="float32").reshape(4, 4))


def forms() -> dict[str, Callable[[], Any]]:
    """The calls by their names."""
    x, v = _matrix(), tf.Variable(np.ones((4, 4), "float32"))
    return {
        "add": lambda: x + x,
        "number": lambda: x + 1.0,
        "row": lambda: x[0],
        "slice": lambda: x[1:3, 0],
        "layer": _layer(),
        "matmul": lambda: tf.matmul(x, x),
        "mean": lambda: tf.reduce_mean(x, axis=1),
        "variable": lambda: v + x,
        "tape": _tape(),
    }


def microseconds(call: Callable[[], Any], times: int) -> float:
    """The shortest mean of a round of so many calls."""
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, time.perf_counter() - start)
    return best / times * 1e6


def counted(name: str, times: int) -> int:
    """The instructions of so many calls, and of beginning and ending to count."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        subprocess.run(
            [
                "valgrind", "--tool=callgrind", "--instr-atstart=no",
                f"--callgrind-out-file={out}", sys.executable, __file__, name,
                "--count", str(times),
            ],
            env=os.environ | {"PYTHONHASHSEED": "0"}, check=True, capture_output=True,
        )  # fmt: skip
        found = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
    assert found is not None, "callgrind wrote no sum"
    return int(found[1])


def _run(call: Callable[[], Any], times: int) -> None:
    """What callgrind counts: so many calls after the first ones."""
    for _ in range(10):
        call()
    count(True)
    for _ in range(times):
        call()
    count(False)


def main(arguments: list[str] | None = None) -> None:
    """Prints a line for each form."""
    known = forms()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="form", help=", ".join(known))
    parser.add_argument("--times", type=int, default=2000, help="calls of a round")
    parser.add_argument("--instructions", action="store_true", help="count them, too")
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.count is not None:
        _run(known[given.names[0]], given.count)
        return
    around = counted("add", 0) if given.instructions else 0
    for name in given.names or known:
        call = known[name]
        call()
        text = f"{name}: {microseconds(call, given.times):.2f} µs"
        if given.instructions:
            each = (counted(name, given.times) - around) / given.times
            text += f", {each:,.0f} instructions"
        print(text, flush=True)


if __name__ == "__main__":
    main()
