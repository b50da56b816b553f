"""Gradients of large filters, reduced and applied block by block: the bits of all other plans."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plans import Network, steps_of, train_classifier

import samegrad as tf
from samegrad._function import trace as _trace
from samegrad.testing import assert_same_bits

EXAMPLES, SIDE, CHANNELS, CLASSES = 8, 2, 160, 5


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.run_functions_eagerly(False)
    tf.config.threading.set_intra_op_parallelism_threads(0)
    _trace.OPTIONS.fuse_updates = _trace.OPTIONS.defer_products = True


def variables_of(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [tf.Variable(0.1 * rng.normal(size=shape).astype(np.float32)) for shape in shapes]


def classified(images: Any, head: Any) -> Any:
    return tf.reduce_mean(images, list(range(1, len(images.shape) - 1))) @ head


def plain() -> Network:
    """Taps that see different pixels, and a filter of single taps."""
    f, g, head = variables_of((3, 3, CHANNELS, 96), (1, 1, 96, 130), (130, CLASSES))

    def forward(x: Any) -> Any:
        y = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, f, 1, "SAME")), 2, 2, "SAME")
        return classified(tf.nn.conv2d(y, g, 1, "VALID"), head)

    return [f, g, head], forward


def strided() -> Network:
    f, g, head = variables_of((3, 2, CHANNELS, 96), (2, 3, 96, 64), (64, CLASSES))
    return [f, g, head], lambda x: classified(
        tf.nn.conv2d(tf.tanh(tf.nn.conv2d(x, f, (2, 1), "SAME")), g, 1, "SAME", dilations=(1, 2)),
        head,
    )


def grouped() -> Network:
    f, head = variables_of((3, 3, CHANNELS // 2, 400), (400, CLASSES))
    return [f, head], lambda x: classified(tf.nn.conv2d(x, f, 1, "SAME"), head)


def depthwise() -> Network:
    """Channels as lanes of registers; the filter is large where a threshold says so."""
    f, head = variables_of((SIDE, SIDE, 1, CHANNELS * 10), (CHANNELS * 10, CLASSES))
    return [f, head], lambda x: classified(tf.nn.conv2d(x, f, 1, "VALID"), head)


def volumes() -> Network:
    f, head = variables_of((2, 3, 3, CHANNELS // 2, 70), (70, CLASSES))
    return [f, head], lambda x: classified(
        tf.nn.conv3d(tf.reshape(x, [-1, 2, SIDE, SIDE, CHANNELS // 2]), f, 1, "SAME"), head
    )


def transposed() -> Network:
    f, head = variables_of((4, 4, 72, CHANNELS), (72, CLASSES))
    size = (2 * SIDE, 2 * SIDE, 72)
    return [f, head], lambda x: classified(
        tf.nn.conv2d_transpose(x, f, (x.shape[0], *size), 2, "SAME"), head
    )


def tied() -> Network:
    """A filter that is used twice."""
    f, head = variables_of((3, 3, CHANNELS, CHANNELS), (CHANNELS, CLASSES))
    return [f, head], lambda x: classified(
        tf.nn.conv2d(tf.tanh(tf.nn.conv2d(x, f, 1, "SAME")), f, 1, "SAME"), head
    )


LARGE = [plain, strided, grouped, volumes, transposed, tied]
NETWORKS = [*LARGE, depthwise]
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adam": lambda: tf.keras.optimizers.Adam(1e-2),
    "sgd": lambda: tf.keras.optimizers.SGD(1e-2),
    "momentum": lambda: tf.keras.optimizers.SGD(1e-2, momentum=0.9),
    "clip": lambda: tf.keras.optimizers.Adam(1e-2, global_clipnorm=0.5),
}


def train(
    network: Callable[[], Network] = plain,
    replicas: int = 1,
    optimizer: str = "adam",
    examples: int = EXAMPLES,
    steps: int = 2,
) -> tuple[list[np.ndarray], str]:
    """Weights, slots and losses afterwards, and the plan of a step."""
    rng = np.random.default_rng(1)
    images = rng.normal(size=(examples, SIDE, SIDE, CHANNELS)).astype(np.float32)
    labels = rng.integers(0, CLASSES, examples)
    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(examples).repeat(steps)
    return train_classifier(network, OPTIMIZERS[optimizer], batches, replicas)


def updates_of(plan: str) -> list[str]:
    return [step for step in steps_of(plan, "block by block") if "_filter_grad" in step]


@pytest.mark.parametrize("network", LARGE)
@pytest.mark.parametrize("replicas", [1, 2])
def test_large_filters_are_reduced_and_updated_block_by_block(network: Any, replicas: int) -> None:
    _, plan = train(network, replicas)
    blocks = updates_of(plan)
    assert len(blocks) == (1 if network not in (plain, strided) else 2), plan
    for block in blocks:
        assert "fused_elementwise" in block
        assert block.count("all_reduce") == (replicas > 1) * block.count("_filter_grad")
    assert ("_filter_grad" in "".join(steps_of(plan, "loop"))) is False


@pytest.mark.parametrize("network", NETWORKS)
def test_replicas_have_the_bits_of_one_device(network: Any) -> None:
    expected, _ = train(network, examples=32)
    for replicas in (2, 3, 8):
        assert_same_bits(train(network, replicas, examples=32)[0], expected)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_has_the_bits_of_one_device(optimizer: str) -> None:
    expected, _ = train(optimizer=optimizer, examples=8)
    found, plan = train(replicas=2, optimizer=optimizer, examples=8)
    assert_same_bits(found, expected)
    joined = ["fused" in block for block in updates_of(plan)]
    assert joined == [optimizer != "clip"] * 2


@pytest.mark.parametrize("network", LARGE)
@pytest.mark.parametrize("option", ["fuse_updates", "defer_products"])
def test_the_plan_without_it_has_the_same_bits(network: Any, option: str) -> None:
    expected, plan = train(network, replicas=2)
    setattr(_trace.OPTIONS, option, False)
    found, other = train(network, replicas=2)
    assert updates_of(plan) and not updates_of(other)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_no_bit(threads: int) -> None:
    expected, _ = train(replicas=2)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    assert_same_bits(train(replicas=2)[0], expected)


@pytest.mark.parametrize("network", NETWORKS)
def test_eager_steps_have_the_same_bits(network: Any) -> None:
    expected, _ = train(network, replicas=2)
    tf.config.run_functions_eagerly(True)
    assert_same_bits(train(network, replicas=2)[0], expected)


@pytest.mark.parametrize(
    ("replicas", "examples"), [(3, 23), (5, 23), (3, 8), (8, 13), (4, 3), (2, 1), (8, 1)]
)
def test_unequal_and_empty_batches_have_the_bits_of_one_device(
    replicas: int, examples: int
) -> None:
    one, _ = train(examples=examples)
    assert_same_bits(train(replicas=replicas, examples=examples)[0], one)


def test_a_gradient_whose_operands_are_large_is_reduced_early_and_stored_once() -> None:
    def wide() -> Network:
        f, g, head = variables_of((3, 3, CHANNELS, 64), (1, 1, 64, 256), (256, CLASSES))
        return [f, g, head], lambda x: classified(
            tf.nn.conv2d(tf.tanh(tf.nn.conv2d(x, f, 1, "SAME")), g, 1, "SAME"), head
        )

    _, plan = train(wide, replicas=2)
    blocks = updates_of(plan)
    assert ["fused" in block for block in blocks].count(False) == 1
    assert all("all_reduce" in block for block in blocks)


def test_the_operands_of_a_small_filter_are_reduced_in_their_loop() -> None:
    def small() -> Network:
        f, head = variables_of((2, 2, CHANNELS, 4), (4, CLASSES))
        return [f, head], lambda x: classified(tf.nn.conv2d(x, f, 1, "SAME"), head)

    _, plan = train(small, replicas=2)
    assert not updates_of(plan)
    assert "_filter_grad" in "".join(steps_of(plan, "loop"))


FORCED = """
import sys, zlib
sys.path.insert(0, sys.argv[1])
import test_filter_updates as filters
for network in filters.NETWORKS:
    found, plan = filters.train(network, replicas=2, examples=9)
    print([zlib.crc32(a.tobytes()) for a in found], len(filters.updates_of(plan)) > 0)
"""


ALL = "deferred_bytes=1,deferred_examples=1,joined_examples=1,"


@pytest.mark.parametrize(
    ("thresholds", "joins"),
    [
        ("1", None),
        ("deferred_bytes=1000000000", False),
        (f"{ALL}product_block_bytes=2000,product_block_columns=1", True),
        (f"{ALL}product_subtree_rows=11,tree_block_bytes=1,parallel_tree_work=1", True),
        (f"{ALL}product_subtree_rows=100000,product_block_bytes=1", True),
    ],
)
def test_forced_thresholds_change_no_bit(thresholds: str, joins: bool | None) -> None:
    def run(**extra: str) -> list[list[str]]:
        command = [sys.executable, "-c", FORCED, __file__.rpartition("/")[0]]
        out = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **extra}
        )
        return [line.rsplit(" ", 1) for line in out.stdout.splitlines()]

    usual, forced = run(), run(SAMEGRAD_THRESHOLDS=thresholds)
    assert [bits for bits, _ in forced] == [bits for bits, _ in usual]
    assert joins is None or {found for _, found in forced} == {str(joins)}


def test_eight_replicas_need_the_memory_of_one() -> None:
    def deep() -> Network:
        shapes = [(3, 3, CHANNELS, 256), (3, 3, 256, 256), (3, 3, 256, 256), (256, CLASSES)]
        *layers, head = variables = variables_of(*shapes)

        def forward(x: Any) -> Any:
            for f in layers:
                x = tf.nn.relu(tf.nn.conv2d(x, f, 1, "SAME"))
            return classified(x, head)

        return variables, forward

    def kilobytes(replicas: int) -> float:
        _, plan = train(deep, replicas=replicas, examples=32)
        found = re.search(r"memory between steps: ([0-9.]+) (.)iB", plan)
        assert found is not None
        return float(found[1]) * {"K": 1, "M": 1024}[found[2]]

    assert kilobytes(8) <= 1.02 * kilobytes(1)
