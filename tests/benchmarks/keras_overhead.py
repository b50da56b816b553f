"""What tf.keras costs beside the same mathematics written by hand on variables.

    python tests/benchmarks/keras_overhead.py --pairs 20 --json keras.json

Both forms of a model (keras_pairs.py) run in one process, in blocks by turns, so that what disturbs
the machine disturbs both: quoted are medians, the best blocks, and the median of the differences
pair by pair. The plan's steps and the time of a first call are beside them, and for the smallest
model what `fit` adds to a step of the program's own loop.

A first call is tracing, compiling and one step. All variables are there before it, those of both
optimizers too: the written form makes its slots with its weights, and a slot costs the same in
either form, so that it would only hide what tracing costs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from keras_pairs import PAIRS, SMALL, Pair, Sizes

import samegrad as tf

Clock = Callable[[], float]


def examples(array: Any) -> Any:
    """The array, whose rows are examples, as a dataset would give them."""
    (batch,) = tf.data.Dataset.from_tensor_slices(array).batch(len(array))
    return batch


def plan_steps(step: Any, *batch: Any) -> int:
    """How many steps the plan of a compiled function has."""
    return len(step.explain(*batch).steps)


def by_turns(
    runs: tuple[Callable[[], Any], Callable[[], Any]], pairs: int, block: float, clock: Clock
) -> tuple[list[float], list[float]]:
    """Seconds a call of either function takes, in blocks of about `block` seconds by turns."""
    counts = []
    for run in runs:
        start = clock()
        run()
        counts.append(max(1, int(block / max(clock() - start, 1e-7))))
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(pairs):
        for k in (0, 1) if i % 2 else (1, 0):
            start = clock()
            for _ in range(counts[k]):
                runs[k]()
            times[k].append((clock() - start) / counts[k])
    return times


def compare_steps(pair: Pair, pairs: int, block: float, clock: Clock) -> dict[str, Any]:
    """A compiled step of Keras's beside that of the written form."""
    batch = examples(pair.inputs), examples(pair.labels)
    steps = [tf.function(model.step) for model in (pair.of_keras, pair.written)]
    for step in steps:
        step(*batch)
    keras, written = by_turns(
        (lambda: steps[0](*batch), lambda: steps[1](*batch)), pairs, block, clock
    )
    return summary(keras, written) | {
        "plan_steps": [plan_steps(step, *batch) for step in steps],
    }


def summary(keras: list[float], written: list[float]) -> dict[str, Any]:
    """Microseconds of both, and how they compare pair by pair."""
    both = list(zip(keras, written, strict=True))
    return {
        "keras_us": 1e6 * median(keras),
        "keras_best_us": 1e6 * min(keras),
        "written_us": 1e6 * median(written),
        "written_best_us": 1e6 * min(written),
        "ratio": median(k / w for k, w in both),
        "more_us": 1e6 * median(k - w for k, w in both),
    }


def compare_first_calls(name: str, sizes: Sizes, count: int, clock: Clock) -> dict[str, Any]:
    """Tracing, compiling and one step: of models of other widths, as equal programs are shared."""
    times: tuple[list[float], list[float]] = ([], [])
    for i in range(count + 1):  # the first one imports what is needed
        more = i * sizes.heads
        pair = PAIRS[name](tf, dataclasses.replace(sizes, units=sizes.units + more))
        batch = examples(pair.inputs), examples(pair.labels)
        for k, model in enumerate((pair.of_keras, pair.written)):
            step = tf.function(model.step)
            start = clock()
            step(*batch)
            if i:
                times[k].append(clock() - start)
    best = [1e3 * min(each) for each in times]
    middle = [1e3 * median(each) for each in times]
    return {
        "first_call_ms": middle,
        "best_first_call_ms": best,
        "first_call_ratio": best[0] / best[1],
    }


def compare_fit(steps: int, pairs: int, clock: Clock) -> dict[str, Any]:
    """`fit` beside a loop of the program's own over the same batches, per step."""
    pair = PAIRS["tiny"](tf, SMALL)
    rows = [array.repeat(steps, 0) for array in (pair.inputs, pair.labels)]
    dataset = tf.data.Dataset.from_tensor_slices(tuple(rows)).batch(len(pair.inputs))
    step = tf.function(pair.of_keras.step)

    def loop() -> None:
        for x, y in dataset:
            step(x, y)

    def fit() -> None:
        pair.of_keras.keras.fit(dataset, verbose=0)

    fitted, looped = by_turns((fit, loop), pairs, 0.0, clock)
    return summary([t / steps for t in fitted], [t / steps for t in looped])


def report(found: dict[str, Any]) -> str:
    """The figures as a table of Markdown."""
    lines = [
        "| model | Keras us (best) | written us (best) | ratio | us more | plan steps "
        "| first call ms (ratio of the best) |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, f in found.items():
        plan = "{} / {}".format(*f["plan_steps"]) if "plan_steps" in f else ""
        first = ""
        if "first_call_ms" in f:
            first = (
                "{:.1f} / {:.1f}".format(*f["first_call_ms"]) + f" ({f['first_call_ratio']:.2f})"
            )
        lines.append(
            f"| {name} | {f['keras_us']:.1f} ({f['keras_best_us']:.1f}) | {f['written_us']:.1f} "
            f"({f['written_best_us']:.1f}) | {f['ratio']:.3f} | {f['more_us']:+.1f} | {plan} "
            f"| {first} |"
        )
    return "\n".join(lines)


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=[*PAIRS, "fit"], default=[*PAIRS, "fit"])
    parser.add_argument("--pairs", type=int, default=20, help="blocks of either form")
    parser.add_argument("--block", type=float, default=0.1, help="seconds of a block")
    parser.add_argument("--first-calls", type=int, default=10, help="how many are timed")
    parser.add_argument("--fit-steps", type=int, default=1000, help="steps of an epoch of fit")
    parser.add_argument("--small", action="store_true", help="models of the sizes of the tests")
    parser.add_argument(
        "--cpu", action="store_true", help="CPU time of the process instead of the clock's"
    )
    parser.add_argument("--json", type=Path, help="a file for the figures")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Prints the table and returns its figures."""
    given = options(arguments)
    clock = time.process_time if given.cpu else time.perf_counter
    found: dict[str, Any] = {}
    for name in given.only:
        if name == "fit":
            found[name] = compare_fit(given.fit_steps, given.pairs, clock)
            continue
        pair = PAIRS[name](tf, SMALL if given.small else Sizes())
        found[name] = compare_steps(pair, given.pairs, given.block, clock)
        found[name] |= compare_first_calls(name, SMALL, given.first_calls, clock)
    print(report(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))
    return found


if __name__ == "__main__":
    main()
