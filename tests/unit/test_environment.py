"""Settings that are read from the environment once, each in a process of its own."""

import ctypes
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from samegrad import _core

PROGRAM = """
import numpy as np
import samegrad as tf

x = tf.constant(np.linspace(-1, 1, 7 * 40 * 30).reshape(7, 40, 30).astype(np.float32))
w = tf.Variable(np.linspace(-1, 1, 1800).reshape(30, 60).astype(np.float32))
strategy = tf.distribute.MirroredStrategy(replicas=2)

def step(x):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.reduce_mean(tf.nn.tanh(x @ w), axis=[1, 2]))
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

data = tf.data.Dataset.from_tensor_slices(x).batch(7)
(batch,) = strategy.experimental_distribute_dataset(data)
plan = strategy.explain(step, args=(batch,))
strategy.run(step, args=(batch,))
print(w.numpy().tobytes().hex())
print(plan)
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_thresholds_change_the_plan_and_no_bit() -> None:
    usual = run()
    forced = run(SAMEGRAD_THRESHOLDS="inner_loop_bytes=1,deferred_bytes=1,parallel_loop_work=1")
    all_of_them = run(SAMEGRAD_THRESHOLDS="1")
    assert usual.returncode == forced.returncode == all_of_them.returncode == 0, forced.stderr
    assert "one example at a time" in forced.stdout
    assert "one example at a time" not in usual.stdout
    bits = {done.stdout.splitlines()[0] for done in (usual, forced, all_of_them)}
    assert len(bits) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tile=3", "there is no threshold 'tile'"),
        ("tile_bytes=0", "values must be integers from 1"),
        ("tile_bytes=1e3", "values must be integers from 1"),
        ("tile_bytes", "values must be integers"),
        ("tile_bytes=1,tile_examples", "must be a number for all"),
    ],
)
def test_a_threshold_that_makes_no_sense_is_an_error(text: str, message: str) -> None:
    done = run(SAMEGRAD_THRESHOLDS=text)
    assert done.returncode != 0
    assert f"[SAMEGRAD_THRESHOLDS] {message}" in done.stderr


def test_plans_for_another_machine_have_the_same_bits() -> None:
    texts, bits = set(), set()
    for machine in ("", "l1=4k,l2=32k,l3=64k,threads=3", "l1=128k,l2=8m,threads=1"):
        done = run(SAMEGRAD_MACHINE=machine)
        assert done.returncode == 0, done.stderr
        bits.add(done.stdout.splitlines()[0])
        texts |= {line for line in done.stdout.splitlines() if line.startswith("machine: ")}
    assert len(bits) == 1
    assert {line for line in texts if "L1 4 KiB, L2 32 KiB, L3 64 KiB, 3 thread" in line}
    assert {line for line in texts if "L1 128 KiB, L2 8 MiB" in line and "1 thread" in line}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l4=1m", "must be name=number"),
        ("l2", "must be name=number"),
        ("l2=64", "'l2' must be an integer from 32768 to"),
        ("threads=0", "'threads' must be an integer from 1 to 4096"),
        ("l1=1e5", "'l1' must be an integer from 4096 to"),
    ],
)
def test_a_machine_that_makes_no_sense_is_an_error(text: str, message: str) -> None:
    done = run(SAMEGRAD_MACHINE=text)
    assert done.returncode != 0
    assert f"[SAMEGRAD_MACHINE] {message}" in done.stderr


def test_verification_takes_zero_or_one() -> None:
    assert run(SAMEGRAD_VERIFY="0").returncode == run(SAMEGRAD_VERIFY="1").returncode == 0
    assert "[SAMEGRAD_VERIFY] must be 0 or 1: got 'yes'" in run(SAMEGRAD_VERIFY="yes").stderr


def test_kernels_of_another_build_are_refused(tmp_path: Path) -> None:
    folder = Path(os.environ.get("SAMEGRAD_KERNEL_DIR") or Path(_core.__file__).parent)
    variant = _core.isa().removeprefix("x86-64-")
    library = folder / f"libsamegrad_kernels_{variant}.so"
    table = ctypes.CDLL(str(library)).samegrad_kernel_table
    table.restype = ctypes.POINTER(ctypes.c_uint64)
    interface = struct.pack("<Q", table()[0])
    content = library.read_bytes()
    assert content.count(interface) == 1
    other = tmp_path / library.name
    other.write_bytes(content.replace(interface, b"\1" * 8))
    result = run(SAMEGRAD_KERNEL_DIR=str(tmp_path), SAMEGRAD_ISA=variant)
    assert result.returncode == 1
    assert "it belongs to another build of the engine; reinstall the package" in result.stderr
    assert str(other) in result.stderr


def test_the_logger_is_pythons():
    import logging

    import samegrad as tf

    tf.get_logger().setLevel("ERROR")
    assert tf.get_logger() is logging.getLogger("samegrad")
    assert tf.get_logger().level == logging.ERROR
