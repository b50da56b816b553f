"""Planted differences between real runs, each found and named by `diff_runs`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_program import train

import samegrad as tf
from samegrad import _core
from samegrad.train._record_file import encode_line

PROGRAM = Path(__file__).with_name("recorded_program.py")


def recorded(path: Path, detail: int | None = None, **changes: Any) -> Path:
    with tf.record_run(path, detail):
        train(**changes)
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("plain") / "a", detail=3)


@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("threads", [1, 2])
def test_equal_runs_on_any_replicas_and_threads_are_the_same(
    plain: Path, tmp_path: Path, replicas: int, threads: int
) -> None:
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    try:
        found = tf.diff_runs(plain, recorded(tmp_path / "b", detail=3, replicas=replicas))
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(0)
    assert found.same and found.compared == 6, str(found)


def test_last_bit_of_a_weight_is_found_at_step_700(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", steps=1_000)
    b = recorded(tmp_path / "b", steps=1_000, flip=700)
    begin = time.monotonic()
    found = tf.diff_runs(a, b)
    assert time.monotonic() - begin < 60
    assert (found.step, found.cause) == (700, "assignment")
    assert re.fullmatch(
        r"kernel \(number 1\) was assigned between steps 699 and 700 in b, outside of .*",
        found.differences[0].text,
    )
    assert found.by_step[699] == () and "before" in found.by_step[700]


def test_saved_values_name_the_flipped_bit(plain: Path, tmp_path: Path) -> None:
    found = tf.diff_runs(plain, recorded(tmp_path / "b", detail=3, flip=3))
    assert found.cause == "assignment"
    assert "First is kernel (number 1)[3, 2], float32, 1 unit in the last place" in found.values


def test_swapped_rows_are_named(plain: Path, tmp_path: Path) -> None:
    found = tf.diff_runs(plain, recorded(tmp_path / "b", swap=(20, 29)))
    assert (found.step, found.cause) == (1, "data")
    assert found.differences[0].text == "arguments 0 and 1: examples 4 and 13 are swapped"


def test_other_seed_is_named_with_the_weights(plain: Path, tmp_path: Path) -> None:
    found = tf.diff_runs(plain, recorded(tmp_path / "b", seed=7, steps=3))
    assert (found.step, found.cause) == (0, "weights")
    assert found.differences[0].text.endswith("(so do the seeds, 0 and 7)")
    assert "note: a has 6 steps and b has 3" in str(found)


def test_other_draws_are_named(tmp_path: Path) -> None:
    w = tf.Variable(tf.zeros(3), name="w")
    step = tf.function(lambda: w.assign_add(tf.random.normal([3])))
    for name, seed in (("a", 1), ("b", 2)):
        w.assign(tf.zeros(3))
        tf.random.set_seed(seed)
        with tf.record_run(tmp_path / name):
            step()
    found = tf.diff_runs(tmp_path / "a", tmp_path / "b")
    assert (found.step, found.cause) == (0, "draws")
    assert found.differences[0].text == "the seeds are 1 and 2"


def test_other_line_is_named(plain: Path, tmp_path: Path) -> None:
    found = tf.diff_runs(plain, recorded(tmp_path / "b", activation="tanh"))
    assert (found.step, found.cause) == (0, "program")
    assert re.search(
        r"is relu at recorded_program.py:\d+ .* in a and tanh at recorded_program.py:\d+ ",
        found.differences[0].text,
    )


@pytest.mark.filterwarnings("ignore::samegrad.errors.LossNormalizationWarning")
@pytest.mark.filterwarnings("ignore::samegrad.errors.ReplicaDependenceWarning")
def test_loss_that_a_replica_averages_is_named(tmp_path: Path) -> None:
    a = recorded(tmp_path / "a", own_mean=True, detail=0)
    found = tf.diff_runs(a, recorded(tmp_path / "b", own_mean=True, replicas=2, detail=0))
    assert (found.step, found.cause) == (0, "replicas")
    assert "1 in a and 2 in b" in found.differences[0].text
    assert found.environment == {"replicas": (1, 2)}


def test_other_numerics_version_is_named(plain: Path, tmp_path: Path) -> None:
    flipped = recorded(tmp_path / "b", flip=2)
    content, crc = b"", 0
    for line in flipped.read_bytes().splitlines():
        fields = {name: value for name, value in json.loads(line).items() if name != "crc"}
        if fields["kind"] == "header":
            fields["reduction_order"] += 1
        line, crc = encode_line(fields.pop("kind"), fields, crc)
        content += line
    flipped.write_bytes(content)
    found = tf.diff_runs(plain, flipped)
    assert (found.step, found.cause) == (2, "numerics")
    order = _core.reduction_order()
    assert found.differences[0].text == f"reduction order {order} and {order + 1}"
    assert found.differences[1].cause == "assignment"


def test_altered_header_is_refused(plain: Path, tmp_path: Path) -> None:
    altered = tmp_path / "b"
    altered.write_bytes(plain.read_bytes().replace(b'"threads":', b'"threads":1', 1))
    with pytest.raises(tf.errors.DataLossError, match="line 1 must have the checksum"):
        tf.diff_runs(plain, altered)


def test_evaluation_after_training_is_recorded(tmp_path: Path) -> None:
    x = np.ones((8, 3), np.float32)
    paths = tmp_path / "a", tmp_path / "b"
    for path in paths:
        tf.keras.utils.set_random_seed(0)
        model = tf.keras.Sequential([tf.keras.Input([3]), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        with tf.record_run(path):
            model.fit(x, x[:, :1], batch_size=4, verbose=0)
            if path.name == "b":
                model.layers[0].bias.assign([2.0])
            model.evaluate(x, x[:, :1], batch_size=4, verbose=0)
    found = tf.diff_runs(*paths)
    assert (found.compared, found.step, found.cause) == (4, 2, "assignment")
    assert "bias was assigned between steps 1 and 2 in b" in found.differences[0].text


MODELS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "lstm": ([lambda: tf.keras.layers.LSTM(4)], {}),
    "normalized": ([tf.keras.layers.BatchNormalization, tf.keras.layers.Flatten], {}),
    "several steps at once": ([tf.keras.layers.Flatten], {"steps_per_execution": 3}),
    "eager": ([tf.keras.layers.Flatten], {"run_eagerly": True}),
    "bfloat16": (
        [tf.keras.layers.Flatten, lambda: tf.keras.layers.Dense(4, dtype="mixed_bfloat16")],
        {},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_methods_of_models_are_recorded_on_any_replicas(name: str, tmp_path: Path) -> None:
    layers, options = MODELS[name]
    x = np.random.default_rng(0).normal(size=(24, 5, 3)).astype("float32")
    y = x.sum(axis=(1, 2))
    for replicas in (1, 3):
        tf.keras.utils.set_random_seed(0)
        with tf.distribute.MirroredStrategy(replicas=replicas).scope():
            model = tf.keras.Sequential([*(make() for make in layers), tf.keras.layers.Dense(1)])
            model.compile("adam", "mse", **options)
        with tf.record_run(tmp_path / str(replicas), detail=1):
            model.fit(x, y, batch_size=7, verbose=0)
            model.evaluate(x, y, batch_size=7, verbose=0)
            model.predict(x, batch_size=7, verbose=0)
            model.train_on_batch(x[:4], y[:4])
    found = tf.diff_runs(tmp_path / "1", tmp_path / "3")
    assert found.same and found.compared == 13, str(found)


def test_other_constant_is_named_by_its_operation(tmp_path: Path) -> None:
    for name, factor in (("a", 2.0), ("b", 3.0)):
        w = tf.Variable(tf.ones(3))
        step = tf.function(lambda x, w=w, factor=factor: w.assign_add(tf.exp(x) * factor))
        with tf.record_run(tmp_path / name, detail=0):
            step(tf.ones(3))
    found = tf.diff_runs(tmp_path / "a", tmp_path / "b")
    assert (found.step, found.cause) == (0, "program")
    assert "a constant or an attribute differs" in found.differences[0].text
    assert [one.op for one in found.frontier] == ["mul"]


def run(*words: Any, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, words)]
    environment = os.environ | variables
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.skipif(
    not {"x86-64-v2", "x86-64-v3"} <= set(_core.isa_supported()), reason="the processor has one"
)
def test_kernels_without_fused_multiply_add_differ_in_a_product(tmp_path: Path) -> None:
    paths = tmp_path / "a", tmp_path / "b"
    for path, isa in zip(paths, ("v2", "v3"), strict=True):
        command = ["-m", "samegrad", "record", "-o", path, "--detail", 0, PROGRAM, "steps=2"]
        done = run(*command, SAMEGRAD_ISA=f"x86-64-{isa}")
        assert done.returncode == 0, done.stderr
    found = tf.diff_runs(*paths)
    assert found.cause == "numerics" and "fused multiply-add" in found.differences[0].text
    assert {"matmul"} <= {one.op for one in found.frontier}, str(found)


def test_record_command_of_a_failing_program_keeps_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "a"
    done = run("-m", "samegrad", "record", "-o", path, PROGRAM, "fail=2")
    assert done.returncode == 1
    assert "RuntimeError: as asked" in done.stderr and "samegrad/cli" not in done.stderr
    found = tf.diff_runs(path, path)
    assert found.same and found.compared == 2 and "a ended with RuntimeError" in found.notes


def test_killed_run_leaves_all_steps_before(tmp_path: Path) -> None:
    killed = tmp_path / "killed.py"
    killed.write_text(
        f"import os, sys; sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "from recorded_program import train\n"
        "train(steps=4)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = run("-m", "samegrad", "record", "-o", tmp_path / "a", killed)
    assert done.returncode == -9
    found = tf.diff_runs(tmp_path / "a", recorded(tmp_path / "b"))
    assert found.same and found.compared == 4
    assert "a has no end line: the run was killed, or is still running" in found.notes


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk")
def test_full_disk_is_an_error_of_the_step() -> None:
    with (
        pytest.raises(
            OSError, match=r"^\[Errno 28\] \[record_run\] cannot write /dev/full: No space"
        ),
        tf.record_run("/dev/full", overwrite=True),
    ):
        train(steps=1)
    train(steps=1)


def test_threads_that_train_together_are_recorded_one_by_one(tmp_path: Path) -> None:
    variables = [tf.Variable(tf.zeros(3)) for _ in range(4)]
    steps = [tf.function(lambda x, w=w: w.assign_add(x)) for w in variables]

    def loop(step: Any) -> None:
        for _ in range(20):
            step(tf.ones(3))

    with tf.record_run(tmp_path / "a"), ThreadPoolExecutor(4) as pool:
        list(pool.map(loop, steps))
    found = tf.diff_runs(tmp_path / "a", tmp_path / "a")
    assert found.same and found.compared == 80


def hash_of(array: np.ndarray) -> int:
    """The hash of docs/two-runs.md, written from that page."""
    total, low = 0, (1 << 32) - 1
    for index, word in enumerate(np.ascontiguousarray(array).reshape(-1).view(np.uint32).tolist()):
        key = (index * 0x9E3779B1 + (index >> 32) * 0x85EBCA77) & low
        h = ((word ^ key) * 0xC2B2AE3D) & low
        h ^= h >> 15
        total += h * ((2 * h + 1) & low)
    return total & ((1 << 64) - 1)


def test_hashes_are_the_documented_ones(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    w = tf.Variable(np.zeros((5, 3), np.float32))
    step = tf.function(lambda x: w.assign_add(x))
    with tf.record_run(tmp_path / "a"):
        step(x)
    fields = json.loads((tmp_path / "a").read_bytes().splitlines()[2])
    assert fields["hashes"] == f"{hash_of(x):016x}" * 3  # argument, output, variable
    assert fields["before"] == [[0, f"{hash_of(np.zeros(15, np.float32)):016x}"]]
