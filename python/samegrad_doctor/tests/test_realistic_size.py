"""Ten million parameters: few steps, and little memory beside what a step takes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, resource, sys
import numpy as np
from samegrad_doctor import Outcome, diagnose

SIZE, COPIES = 10_000_000, int(sys.argv[1])
BASE = np.random.default_rng(0).standard_normal(SIZE, dtype=np.float32)


def gradient(examples):
    total = np.zeros(SIZE, np.float32)
    for number in examples:
        total += np.roll(BASE, int(number) * 7919)
    return total


steps = 0


def step(shares):
    global steps
    steps += 1
    update = sum(gradient(share) / np.float32(len(share)) for share in shares)
    parts = [update[: SIZE // 2], update[SIZE // 2 :]]
    return Outcome(parts, 0.5, [parts] * COPIES if COPIES else None)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


batch = np.arange(12)
step([batch])
before, steps = peak(), 0
found = diagnose(step, batch)
taken = {"steps": steps, "megabytes": peak() - before}
print(json.dumps({"cause": found.cause.name, **taken}))
"""


@pytest.mark.parametrize("copies", [0, 8])
def test_ten_million_parameters_take_few_steps_and_less_than_a_gigabyte(copies) -> None:
    pytest.importorskip("resource", reason="this system does not tell the memory used")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(copies)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["cause"] == "mean per replica, then sum"
    assert found["steps"] <= 25, found
    assert found["megabytes"] < 1000, found
