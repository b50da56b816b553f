"""How many instructions a first call takes with Keras, and written by hand.

    python tests/benchmarks/keras_instructions.py cnn tiny

Needs valgrind. Each form runs under callgrind, which counts from the second model's first call on.
Other programs on the machine do not change the counts, and two runs differ by less than 1 %.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from keras_overhead import examples
from keras_pairs import PAIRS, SMALL

import samegrad as tf

_FORMS = ("of_keras", "written")


def count(on: bool) -> None:
    """Has callgrind begin or end counting in this process."""
    switch = "on" if on else "off"
    command = ["callgrind_control", f"--instr={switch}", str(os.getpid())]
    subprocess.run(command, check=True, capture_output=True)


def trace(name: str, form: str, calls: int) -> None:
    """Makes models of different widths, and calls a step of each for the first time."""
    steps = []
    for i in range(calls + 1):
        sizes = dataclasses.replace(SMALL, units=SMALL.units + i * SMALL.heads)
        pair = PAIRS[name](tf, sizes)
        batch = examples(pair.inputs), examples(pair.labels)
        steps.append((tf.function(getattr(pair, form).step), batch))
    (step, batch), *others = steps
    step(*batch)  # imports what is needed
    gc.disable()  # it would begin at other places
    count(True)
    for step, batch in others:
        step(*batch)
    count(False)


def instructions(name: str, form: str, calls: int) -> int:
    """Of so many first calls, and of beginning and ending to count."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        subprocess.run(
            [
                "valgrind", "--tool=callgrind", "--instr-atstart=no",
                f"--callgrind-out-file={out}", sys.executable, __file__, name,
                "--form", form, "--calls", str(calls),
            ],
            env=os.environ | {"PYTHONHASHSEED": "0"}, check=True, capture_output=True,
        )  # fmt: skip
        found = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
    assert found is not None, "callgrind wrote no sum"
    return int(found[1])


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Prints a line for each model, and returns the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="model", help=", ".join(PAIRS))
    parser.add_argument("--calls", type=int, default=3, help="how many are counted")
    parser.add_argument("--form", choices=_FORMS, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    names = given.names or list(PAIRS)
    if given.form:
        trace(names[0], given.form, given.calls)
        return {}
    ratios = {}
    around = instructions(names[0], "written", 0)
    for name in names:
        keras, written = (
            (instructions(name, form, given.calls) - around) / given.calls / 1e6 for form in _FORMS
        )
        ratios[name] = keras / written
        print(f"{name}: {keras:.2f} / {written:.2f} million, ratio {ratios[name]:.3f}", flush=True)
    return ratios


if __name__ == "__main__":
    main()
