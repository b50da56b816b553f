"""Layers whose weights do not fit into the caches: plans of their own, the bits of all others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plans import steps_of, train_classifier

import samegrad as tf
from samegrad._function import trace as _trace
from samegrad.testing import assert_same_bits

EXAMPLES, WIDTH, HIDDEN, CLASSES = 96, 301, 530, 7


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    yield
    tf.config.run_functions_eagerly(False)
    tf.config.threading.set_intra_op_parallelism_threads(0)
    _trace.OPTIONS.cut_products = _trace.OPTIONS.fuse_updates = True


def data(examples: int = EXAMPLES) -> Any:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(examples, WIDTH)) * np.exp(rng.normal(size=(examples, 1)))
    labels = rng.integers(0, CLASSES, examples)
    return tf.data.Dataset.from_tensor_slices((rows.astype(np.float32), labels))


def dense() -> tuple[list[Any], Callable[[Any], Any]]:
    """Two wide layers, one bias without and one with a relu behind it."""
    rng = np.random.default_rng(0)
    shapes = [(WIDTH, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN, CLASSES)]
    w1, b1, w2, w3 = (tf.Variable(0.1 * rng.normal(size=s).astype(np.float32)) for s in shapes)
    return [w1, b1, w2, w3], lambda x: tf.nn.relu(tf.nn.relu(x @ w1 + b1) @ w2) @ w3


def tied() -> tuple[list[Any], Callable[[Any], Any]]:
    """A weight that is used twice, once transposed."""
    rng = np.random.default_rng(0)
    w = tf.Variable(0.1 * rng.normal(size=(WIDTH, HIDDEN)).astype(np.float32))
    v = tf.Variable(0.1 * rng.normal(size=(WIDTH, CLASSES)).astype(np.float32))
    return [w, v], lambda x: tf.matmul(tf.tanh(x @ w), w, transpose_b=True) @ v


def train(
    network: Callable[[], Any] = dense,
    replicas: int = 1,
    examples: int = EXAMPLES,
    clip: bool = False,
    steps: int = 3,
) -> tuple[list[np.ndarray], str]:
    """Weights, slots and losses afterwards, and the plan of a step."""
    return train_classifier(
        network,
        lambda: tf.keras.optimizers.Adam(1e-2, global_clipnorm=0.5 if clip else None),
        data(examples).batch(examples).repeat(steps),
        replicas,
    )


def test_wide_products_run_over_the_rows_of_all_replicas() -> None:
    _, plan = train(replicas=2)
    # Of the second layer, forwards and back; what is left fits.
    assert len(steps_of(plan, "rows of all replicas")) == 2


@pytest.mark.parametrize("replicas", [1, 4])
def test_gradients_of_wide_layers_are_reduced_and_applied_block_by_block(replicas: int) -> None:
    _, plan = train(replicas=replicas)
    blocks = steps_of(plan, "block by block")
    assert len(blocks) == 2
    for block in blocks:
        assert "matmul" in block and "'sub mul flushed_sum" in block
        assert ("all_reduce" in block) == (replicas > 1)


def test_a_weight_that_is_used_twice_is_updated_in_one_step() -> None:
    _, plan = train(tied, replicas=2)
    (block,) = [b for b in steps_of(plan, "block by block") if f"({WIDTH}, {HIDDEN})" in b]
    assert block.count("all_reduce") == 2


def test_a_clipped_gradient_is_in_memory_once() -> None:
    _, plan = train(replicas=4, clip=True)
    blocks = steps_of(plan, "block by block")
    assert len(blocks) == 2
    assert all("all_reduce" in block and "fused" not in block for block in blocks)


@pytest.mark.parametrize("network", [dense, tied])
@pytest.mark.parametrize("clip", [False, True])
def test_wide_layers_have_the_bits_of_one_device(network: Any, clip: bool) -> None:
    expected, _ = train(network, clip=clip)
    for replicas in (2, 3, 8):
        assert_same_bits(train(network, replicas, clip=clip)[0], expected)


@pytest.mark.parametrize("option", ["cut_products", "fuse_updates"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_the_plan_without_it_has_the_same_bits(option: str, replicas: int) -> None:
    expected, plan = train(replicas=replicas)
    setattr(_trace.OPTIONS, option, False)
    found, other = train(replicas=replicas)
    title = "rows of all replicas" if option == "cut_products" else "block by block"
    assert steps_of(plan, title) and not steps_of(other, title)
    assert_same_bits(found, expected)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_threads_change_no_bit(threads: int) -> None:
    expected, _ = train(replicas=2)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    assert_same_bits(train(replicas=2)[0], expected)


@pytest.mark.parametrize("network", [dense, tied])
def test_eager_steps_have_the_same_bits(network: Any) -> None:
    expected, _ = train(network, replicas=2)
    tf.config.run_functions_eagerly(True)
    assert_same_bits(train(network, replicas=2)[0], expected)


@pytest.mark.parametrize(
    ("replicas", "examples"), [(3, 97), (5, 97), (8, 13), (4, 3), (2, 1), (8, 1)]
)
def test_unequal_and_empty_batches_have_the_bits_of_one_device(
    replicas: int, examples: int
) -> None:
    one, many = train(examples=examples), train(replicas=replicas, examples=examples)
    assert_same_bits(many[0], one[0])


def test_a_step_that_finds_no_number_leaves_wide_weights_as_they_were() -> None:
    tf.debugging.enable_check_numerics()
    try:
        weight = tf.Variable(np.full((WIDTH, HIDDEN), 1e-3, np.float32))
        other = tf.Variable(np.zeros((HIDDEN, HIDDEN), np.float32))
        optimizer = tf.keras.optimizers.SGD(1.0)

        @tf.function
        def step(x: Any) -> None:
            with tf.GradientTape() as tape:
                y = tf.math.log(x @ weight) @ other
                loss = tf.reduce_sum(y)
            variables = [other, weight]
            gradients = tape.gradient(loss, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))

        x = np.ones((EXAMPLES, WIDTH), np.float32)
        x[5] = 0.0
        with pytest.raises(tf.errors.NonFiniteError, match="log"):
            step(tf.constant(x))
        assert (weight.numpy() == np.float32(1e-3)).all() and not other.numpy().any()
    finally:
        tf.debugging.disable_check_numerics()


MEMORY = """
import resource, sys
sys.path.insert(0, sys.argv[1])
import test_wide_layers as wide
wide.WIDTH = wide.HIDDEN = 1500
wide.train(replicas=int(sys.argv[2]), steps=2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_eight_replicas_need_the_memory_of_one() -> None:
    def peak(replicas: int) -> int:
        folder = __file__.rpartition("/")[0]
        command = [sys.executable, "-c", MEMORY, folder, str(replicas)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert peak(8) <= 1.1 * peak(1)
