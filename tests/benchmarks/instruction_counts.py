"""Count the instructions of small steps, eager calls, first calls and one tile of the CNN.

    python tests/benchmarks/instruction_counts.py
    python tests/benchmarks/instruction_counts.py --record

Needs valgrind. One process runs all forms under callgrind, on one thread and without AVX-512,
which valgrind lacks. Other programs on the machine do not change the counts, so that a change of
2 % shows, where times of pairs spread by 10 %. A form has two figures: `engine` counts in
samegrad's own objects, and depends on the compiler; `process` counts everything, and depends on
Python, NumPy and Keras. `--record` writes both to instruction_counts.json, which
test_instruction_counts.py reads.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import numpy as np
from eager_calls import forms as eager_forms
from keras_overhead import examples
from keras_pairs import PAIRS, SMALL, Sizes

import samegrad as tf

Call = Callable[[], Any]
Counts = dict[str, float]

RECORDED = Path(__file__).with_name("instruction_counts.json")
VARIANT = "v3"
_NOTHING = "nothing"  # no calls: the cost of starting and ending to count
_TRIGGER = re.compile(r"^desc: Trigger: dump (.+)$", re.MULTILINE)
_TILE = Sizes(batch=4)


def _step(name: str, form: str, sizes: Sizes) -> Call:
    pair = PAIRS[name](tf, sizes)
    batch = examples(pair.inputs), examples(pair.labels)
    step = tf.function(getattr(pair, form).step)
    return lambda: step(*batch)


def _step_of_replicas(replicas: int) -> Call:
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        weights = tf.Variable(np.ones((4, 4), np.float32))

    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(tf.square(x @ weights), -1))
        context = tf.distribute.get_replica_context()
        gradient = context.all_reduce("SUM", tape.gradient(loss, weights))
        weights.assign_sub(0.01 * gradient)

    data = tf.data.Dataset.from_tensor_slices(np.ones((4 * replicas, 4), np.float32))
    (batch,) = strategy.experimental_distribute_dataset(data.batch(4 * replicas))
    run = tf.function(lambda x: strategy.run(step, args=(x,)))
    return lambda: run(batch)


@dataclasses.dataclass(frozen=True)
class Form:
    """Calls that are counted, and those before them that import, trace and fill caches."""

    first: list[Call]
    counted: list[Call]


def _repeated(call: Call, times: int) -> Form:
    return Form([call] * 10, [call] * times)


def _first_calls(name: str, form: str) -> Form:
    """Return first calls of models of different widths: equal programs would share their plan."""
    sizes = (dataclasses.replace(SMALL, units=SMALL.units + i * SMALL.heads) for i in range(3))
    first, *counted = (_step(name, form, each) for each in sizes)
    return Form([first], counted)


def forms() -> dict[str, Form]:
    """Return what is counted, by name."""
    found = {f"eager {name}": _repeated(call, 200) for name, call in eager_forms().items()}
    found["step tiny"] = _repeated(_step("tiny", "written", SMALL), 200)
    found["step tiny keras"] = _repeated(_step("tiny", "of_keras", SMALL), 200)
    found["step 8 replicas"] = _repeated(_step_of_replicas(8), 200)
    found["step cnn tile"] = _repeated(_step("cnn", "written", _TILE), 2)
    for name in ("tiny", "cnn"):
        for form in ("written", "of_keras"):
            found[f"first call {name} {form}"] = _first_calls(name, form)
    return found


def _callgrind(*options: str) -> None:
    command = ["callgrind_control", *options, str(os.getpid())]
    subprocess.run(command, check=True, capture_output=True)


def _run() -> None:
    """Run all forms in this process, which callgrind observes: one dump for each."""
    gc.disable()  # collections would begin at other places
    for name, form in {_NOTHING: Form([], []), **forms()}.items():
        for call in form.first:
            call()
        _callgrind("--zero")
        _callgrind("--instr=on")
        for call in form.counted:
            call()
        _callgrind("--instr=off")
        _callgrind(f"--dump={name}")
        gc.collect()


def totals(dump: str) -> tuple[int, int]:
    """Return the instructions in samegrad's objects, and all of them, of a callgrind file.

    Costs of functions are lines of two numbers, positions and counts. The line after `calls=` has
    the costs of the callee, which are counted where it is defined.
    """
    ours, engine, process, of_callee = False, 0, 0, False
    for line in dump.splitlines():
        if line.startswith("ob="):
            ours = re.search(r"/(_core|libsamegrad_)[^/]*$", line) is not None
        elif line.startswith("calls="):
            of_callee = True
        elif re.match(r"\d+ \d+$", line):
            count = 0 if of_callee else int(line.split()[1])
            engine, process, of_callee = engine + count * ours, process + count, False
    return engine, process


def measure() -> dict[str, Counts]:
    """Return the counts of a call of each form."""
    # Nothing else: the environment's strings are among Python's objects, whose addresses decide
    # how often its cache of attributes misses.
    valgrind = Path(shutil.which("valgrind") or "valgrind")
    environment = {
        "PATH": str(valgrind.parent),
        "PYTHONHASHSEED": "0",
        "SAMEGRAD_NUM_THREADS": "1",
        "SAMEGRAD_ISA": VARIANT,
        "SAMEGRAD_VERIFY": "0",
        "SAMEGRAD_MACHINE": "l1=32k,l2=1m,l3=32m",
    }
    with tempfile.TemporaryDirectory() as folder:
        callgrind = [str(valgrind), "--tool=callgrind", "--instr-atstart=no",
                     "--compress-strings=no", "--compress-pos=no",
                     f"--callgrind-out-file={folder}/out"]  # fmt: skip
        command = [*callgrind, sys.executable, __file__, "--count"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"valgrind failed: {done.stderr[-2000:]}")
        dumps = [file.read_text() for file in Path(folder).glob("out.*")]
    found = {match[1]: totals(dump) for dump in dumps if (match := _TRIGGER.search(dump))}
    around = found[_NOTHING]
    counts: dict[str, Counts] = {}
    for name, form in forms().items():
        engine, process = (found[name][i] - around[i] for i in (0, 1))
        calls = len(form.counted)
        counts[name] = {"engine": engine / calls, "process": process / calls}
    return counts


def engine_key() -> str:
    """Name what the engine's counts depend on: wheels join files, builds with ccache do not."""
    try:
        wheel = distribution("samegrad").read_text("WHEEL")
    except PackageNotFoundError:
        wheel = None
    build = "wheel" if wheel else "development build"
    return f"GCC {tf.sysconfig()['compiler']}, {VARIANT}, {build}"


def process_key() -> str:
    """Name what counts of the whole process depend on."""
    python = f"{platform.python_version()}, {platform.python_compiler()}"
    return f"{engine_key()}; Python {python}; NumPy {np.__version__}; Keras {version('keras')}"


def main(arguments: list[str] | None = None) -> None:
    """Print the counts of each form, and record them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name}")
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.count:
        _run()
        return
    found = measure()
    for name, counts in found.items():
        print(f"{name:24} {counts['engine']:14,.0f} engine {counts['process']:14,.0f} process")
    if given.record:
        table = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        for key, what in ((engine_key(), "engine"), (process_key(), "process")):
            table[key] = {name: round(counts[what]) for name, counts in found.items()}
        RECORDED.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
