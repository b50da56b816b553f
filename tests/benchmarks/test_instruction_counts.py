"""Instruction counts of small steps, eager calls, first calls and a tile of the CNN do not grow.

Counts in the engine are compared for the compiler that made them, those of the whole process for
the same versions of Python, NumPy and Keras. Another machine has nothing to compare with until
`instruction_counts.py --record` has run there.
"""

from __future__ import annotations

import json
import shutil

import pytest
from instruction_counts import RECORDED, VARIANT, engine_key, measure, process_key, totals

from samegrad import _core

TOLERANCE = {"engine": 0.02, "process": 0.05}  # runs differ by 0.1 % and 4 %

DUMP = """\
events: Ir
ob=/usr/lib/libc.so.6
fn=malloc
10 7
ob=/site-packages/samegrad/_core.cpython-311-x86_64-linux-gnu.so
fn=step
13 5
cob=/usr/lib/libc.so.6
cfn=malloc
calls=2 10
14 7
14 4
ob=/site-packages/samegrad/libsamegrad_kernels_v3.so
fn=tile
12 100
"""


def changes(compared: dict[str, dict[str, int]]) -> dict[tuple[str, str], str]:
    """Measure, and return a text for each count that is not the recorded one."""
    found = measure()
    return {
        (what, name): f"{name}: {counts[what]:,.0f} instructions in the {what}, not {table[name]:,}"
        for what, table in compared.items()
        for name, counts in found.items()
        if abs(counts[what] / table[name] - 1) > TOLERANCE[what]
    }


def test_totals_count_each_instruction_once() -> None:
    assert totals(DUMP) == (109, 116)


def test_instruction_counts_are_those_recorded() -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    if f"x86-64-{VARIANT}" not in _core.isa_supported():
        pytest.skip(f"this processor has no kernels for {VARIANT}")
    recorded = json.loads(RECORDED.read_text())
    compared = {
        what: recorded[key]
        for what, key in (("engine", engine_key()), ("process", process_key()))
        if key in recorded
    }
    if not compared:
        pytest.skip(f"nothing is recorded for {engine_key()}")
    changed = changes(compared)
    if changed:  # a busy machine can disturb what Python executes, not the engine
        lasting = changes(compared)
        changed = {
            each: text for each, text in changed.items() if each[0] == "engine" or each in lasting
        }
    assert not changed, "\n".join(changed.values())
