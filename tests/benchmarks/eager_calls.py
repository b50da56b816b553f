"""Time small operations outside of functions: microseconds of a call, the shortest of many rounds.

python tests/benchmarks/eager_calls.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

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


def main(arguments: list[str] | None = None) -> None:
    """Prints a line for each form."""
    known = forms()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="form", help=", ".join(known))
    parser.add_argument("--times", type=int, default=2000, help="calls of a round")
    given = parser.parse_args(arguments)
    for name in given.names or known:
        call = known[name]
        call()
        print(f"{name}: {microseconds(call, given.times):.2f} µs", flush=True)


if __name__ == "__main__":
    main()
