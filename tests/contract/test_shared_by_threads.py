"""Large operations on tensors without examples run on all threads, with the bits of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import numpy as np
import samegrad as tf

tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))
rng = np.random.default_rng(1)
x = tf.constant(rng.standard_normal((600, 1030), dtype=np.float32))
tall = tf.reshape(x, [-1, 5])
indices = tf.constant(rng.integers(0, 600, 700))
inner = tf.constant(rng.integers(0, 1030, (600, 1030)).astype(np.int32))
v = tf.Variable(x)
OPERATIONS = {
    "sum": lambda: tf.reduce_sum(x),
    "sum of columns": lambda: tf.reduce_sum(x, 0),
    "sum of rows": lambda: tf.reduce_sum(x, 1),
    "sum of few columns": lambda: tf.reduce_sum(tall, 0),
    "mean of a variable": lambda: tf.reduce_mean(v, 0),
    "sums of two axes": lambda: tf.reduce_sum(tf.reshape(x, [20, 30, 1030]), [0, 2]),
    "largest": lambda: tf.reduce_max(x),
    "norm": lambda: tf.norm(x),
    "argmax": lambda: tf.argmax(x, 0),
    "argmax of rows": lambda: tf.argmax(x, 1),
    "argmin of all": lambda: tf.argmin(tf.reshape(x, [-1]), 0),
    "transpose": lambda: tf.transpose(x),
    "reverse": lambda: tf.reverse(x, [1]),
    "cumsum": lambda: tf.cumsum(x, 0),
    "cumsum of rows": lambda: tf.cumsum(x, 1),
    "concat": lambda: tf.concat([x, x + 1.0], 1),
    "pad": lambda: tf.pad(x, [[1, 2], [3, 4]]),
    "slice": lambda: x[1:-1, ::-2],
    "tile": lambda: tf.tile(x, [2, 3]),
    "repeat": lambda: tf.repeat(x, 3, axis=0),
    "broadcast": lambda: tf.broadcast_to(x[:1], [600, 1030]),
    "gather": lambda: tf.gather(x, indices),
    "gather by row": lambda: tf.gather(x, inner, batch_dims=1, axis=1),
    "sort": lambda: tf.sort(x, axis=0),
    "top_k": lambda: tf.math.top_k(x, 7)[1],
    "softmax": lambda: tf.nn.softmax(x),
    "add": lambda: x + x[:1],
}


shared = []
results = {}
for name, operation in OPERATIONS.items():
    function = tf.function(operation)
    results[name] = tf.fingerprint(operation())
    assert tf.fingerprint(function()) == results[name], name
    if any(op.parallel for step in function.explain().steps for op in step.operations):
        shared.append(name)
print(json.dumps([results, shared]))
"""


def run(threads: int, thresholds: str = "") -> tuple[dict[str, str], list[str]]:
    environment = {**os.environ, "SAMEGRAD_THRESHOLDS": thresholds}
    command = [sys.executable, "-c", PROGRAM, str(threads)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    results, shared = json.loads(done.stdout.splitlines()[-1])
    return results, shared


@pytest.fixture(scope="module")
def alone() -> dict[str, str]:
    results, shared = run(1)
    assert not shared
    return results


@pytest.mark.parametrize("threads", [2, 4])
def test_several_threads_give_the_bits_of_one_and_share_what_is_large(
    alone: dict[str, str], threads: int
) -> None:
    results, shared = run(threads)
    assert results == alone
    assert set(shared) == set(results)


def test_forced_thresholds_change_no_bit(alone: dict[str, str]) -> None:
    assert run(3, "parallel_operation_bytes=1,parts_per_thread=7")[0] == alone
