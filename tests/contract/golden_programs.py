"""Fingerprints of twelve training programs, which change only with a stated cause.

    python tests/contract/golden_programs.py                    print those of this processor
    python tests/contract/golden_programs.py --check            compare them with the recorded ones
    python tests/contract/golden_programs.py --write "CAUSE"    record them

A fingerprint is that of the losses, variables and optimizer slots after some steps. Kernels
with fused multiply-add (v3, v4, neon) have one value, `fma`; those without it (v2, generic) have
another, `v2`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
from golden_networks import BATCH, PROGRAMS

import samegrad as tf
from samegrad import _core
from samegrad._base.numerics import numerics

FILE = pathlib.Path(__file__).with_name("golden_fingerprints.json")
# Replicas and threads. Variants that are not this processor's best run the first and the last.
SETTINGS = ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (5, 1))
Found = dict[str, dict[str, str]]  # by setting and program


def run(name: str, replicas: int) -> str:
    """Return the fingerprint of a program."""
    tf.random.set_seed(5)
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        training = PROGRAMS[name]()
    dataset = tf.data.Dataset.from_tensor_slices(tuple(training.data)).batch(BATCH)

    @tf.function
    def train_step(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(training.step, args=batch), axis=None)

    batches = strategy.experimental_distribute_dataset(dataset)
    losses = [train_step(batch).numpy() for batch in batches]
    arrays = {"losses": np.array(losses)}
    for i, owner in enumerate(training.state):
        variables = owner if isinstance(owner, list) else owner.variables
        arrays |= {f"{i}/{j}": np.asarray(v.numpy()) for j, v in enumerate(variables)}
    assert all(np.isfinite(array).all() for array in arrays.values()), f"{name} diverges"
    return tf.fingerprint(arrays)


def setting_name(replicas: int, threads: int) -> str:
    return f"{replicas} replicas, {threads} threads"


def found_here(best: bool) -> Found:
    """Return the fingerprints of this process's kernels."""
    found: Found = {}
    for replicas, threads in SETTINGS if best else (SETTINGS[0], SETTINGS[-1]):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        found[setting_name(replicas, threads)] = {name: run(name, replicas) for name in PROGRAMS}
    return found


def found_with(isa: str) -> Found:
    """Return the fingerprints that another process finds with these kernels."""
    best = ["--best"] if isa == _core.isa_supported()[-1] else []
    done = subprocess.run(
        [sys.executable, __file__, *best],
        env=os.environ | {"SAMEGRAD_ISA": isa.removeprefix("x86-64-")},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: Found = json.loads(done.stdout)
    return found


def kind_of(isa: str) -> str:
    """Return the key of the fingerprints of a variant."""
    return "fma" if _core.isa_fused()[isa] else "v2"


def recorded() -> dict[str, Any]:
    """Return the contents of the file."""
    contents: dict[str, Any] = json.loads(FILE.read_text())
    return contents


def write(cause: str) -> None:
    """Record the fingerprints of all variants, and why they or the versions have changed.

    Raises:
        ValueError: Variants, replicas or threads disagree.
    """
    contents = recorded() if FILE.exists() else {"programs": {}, "log": []}
    programs = contents["programs"]
    before = json.loads(json.dumps(programs))
    new: dict[str, dict[str, str]] = {name: {} for name in PROGRAMS}
    for isa in _core.isa_supported():
        for setting, values in found_with(isa).items():
            for name, value in values.items():
                if new[name].setdefault(kind_of(isa), value) != value:
                    raise ValueError(f"{name}: {isa}, {setting} departs from the first setting")
    for name, values in new.items():
        programs[name] = programs.get(name, {}) | values
    changed = [name for name in PROGRAMS if programs[name] != before.get(name)]
    log = contents["log"]
    if not changed and numerics().items() <= log[-1].items():
        print("neither a fingerprint nor a version has changed")
        return
    today = datetime.date.today().isoformat()
    log.append({"date": today, "cause": cause, **numerics(), "changed": changed})
    FILE.write_text(json.dumps(contents, indent=1) + "\n")
    print(f"changed: {', '.join(changed) or 'a version only'}")


def departures(found: Found, isa: str) -> list[str]:
    """Return the programs and settings whose fingerprints are not those recorded for a variant."""
    programs = recorded()["programs"]
    return [
        f"{name}, {setting}: found {value}, recorded {golden}"
        for setting, values in found.items()
        for name, value in values.items()
        if value != (golden := programs[name][kind_of(isa)])
    ]


def main() -> None:
    """Print, compare or record the fingerprints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", metavar="CAUSE", help="record the fingerprints, and why")
    parser.add_argument("--check", action="store_true", help="compare with the recorded ones")
    parser.add_argument("--best", action="store_true", help="run all replicas and threads")
    options = parser.parse_args()
    if options.write:
        write(options.write)
    elif options.check:
        found = found_here(options.best)
        if departed := departures(found, _core.isa()):
            raise SystemExit("\n".join([f"{_core.isa()} departs:", *departed]))
        print(f"{_core.isa()}: {len(PROGRAMS)} programs on {'; '.join(found)} as recorded")
    else:
        print(json.dumps(found_here(options.best), indent=1))


if __name__ == "__main__":
    main()
