"""Stretches of a loop over examples that run one example at a time, and what is reduced there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import samegrad as tf
from samegrad._function import trace as _trace

ONE_BY_ONE = re.compile(r"nodes (\d+)-(\d+) one example at a time")


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    _trace.OPTIONS.fuse_elementwise = False  # a reduction and what is around it, one by one
    yield
    _trace.OPTIONS.fuse_elementwise = True
    _trace.OPTIONS.inner_loops = True
    tf.config.threading.set_intra_op_parallelism_threads(0)
    tf.keras.backend.set_floatx("float32")


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def reduced_one_by_one(plan: str, op: str) -> bool:
    """Whether the plan has the op in a stretch that runs one example at a time."""
    loop: list[tuple[int, int]] = []
    position = 0
    for line in plan.splitlines():
        if line.startswith("  loop"):
            loop, position = [(int(a), int(b)) for a, b in ONE_BY_ONE.findall(line)], 0
        elif not line.startswith("    "):
            loop = []
        else:
            inside = any(first <= position <= last for first, last in loop)
            if inside and line.split()[1] == op:
                return True
            position += 1
    return False


def results(
    step: Callable[..., Any], operands: tuple[np.ndarray, ...], op: str | None, threads: int = 0
) -> list[np.ndarray]:
    """What the step makes of the operands' examples, with inner loops (which `op` is in)."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    given = [tf.constant(x)._as_examples(0, 1) for x in operands]
    function = tf.function(step)
    plan = str(function.explain(*given))
    if op is None:
        assert not ONE_BY_ONE.search(plan), plan
    else:
        assert reduced_one_by_one(plan, op), plan
    return [value.numpy() for value in tf.nest.flatten(function(*given))]


def check(
    step: Callable[..., Any], operands: tuple[np.ndarray, ...], op: str, expected: Any
) -> None:
    """Against NumPy (or eager code), and bit by bit without inner loops and in threads."""
    got = results(step, operands, op)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=5e-4, atol=5e-4)
    in_threads = results(step, operands, op, threads=3)
    _trace.OPTIONS.inner_loops = False
    at_once = results(step, operands, None)
    for mine, other, parallel in zip(got, at_once, in_threads, strict=True):
        np.testing.assert_array_equal(mine, other)
        np.testing.assert_array_equal(mine, parallel)


@pytest.mark.parametrize("examples", [1, 4, 7, 13])
@pytest.mark.parametrize("axes", [[1, 2], [1], [3], [2, 3], [1, 2, 3], [0, 1, 2], [0], [0, 3]])
@pytest.mark.parametrize("op", ["reduce_sum", "reduce_max", "reduce_prod"])
def test_a_reduction_of_a_big_value_is_the_one_of_each_example(op, axes, examples):
    x = 1 + numbers(examples, 32, 33, 8) / 64
    numpy = {"reduce_sum": np.sum, "reduce_max": np.max, "reduce_prod": np.prod}[op]
    check(
        lambda x: getattr(tf, op)(x * 1.001, axis=axes), (x,), op,
        [numpy((x * np.float32(1.001)).astype(np.float64), axis=tuple(axes))],
    )  # fmt: skip


@pytest.mark.parametrize("axes", [[1, 2], [0, 1, 2], [0], [0, 1, 2, 3]])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
def test_reductions_one_example_at_a_time_hold_for_every_dtype(dtype, axes):
    x = (numbers(9, 40, 41, 5) * 100).astype(dtype)
    two = tf.constant(2, dtype)
    check(lambda x: tf.reduce_sum(x * two, axis=axes), (x,), "reduce_sum",
          [np.sum(x * 2, axis=tuple(axes))])  # fmt: skip


def test_any_and_all_of_each_example_of_a_big_value():
    x = numbers(7, 150, 201)
    check(
        lambda x: (tf.reduce_any(x > 3.9, axis=[1, 2]), tf.reduce_all(x < 4.0, axis=[1, 2])),
        (x,), "reduce_any", [(x > 3.9).any((1, 2)), (x < 4.0).all((1, 2))],
    )  # fmt: skip


def test_a_reduction_of_each_example_in_strategy_run():
    x = numbers(4, 32, 32, 8)
    strategy = tf.distribute.MirroredStrategy(replicas=1)

    @tf.function
    def step(v: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(v * 2.0, axis=[1, 2])

    data = tf.data.Dataset.from_tensor_slices(x).batch(4)
    for batch in strategy.experimental_distribute_dataset(data):
        got = strategy.run(step, args=(batch,))
        np.testing.assert_allclose(got.numpy(), (x * 2).sum((1, 2)), rtol=1e-4, atol=1e-4)


def images(examples: int, side: int = 32) -> np.ndarray:
    return numbers(examples, side, side, 3, seed=2)


def model() -> Any:
    tf.random.set_seed(1)
    net = tf.keras.Sequential([
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ])  # fmt: skip
    net.build((None, 32, 32, 3))
    return net


@pytest.mark.parametrize("examples", [1, 6, 13])
def test_pooling_after_a_convolution_at_inference(examples):
    net, x = model(), images(examples)
    expected = net(tf.constant(x)).numpy()
    check(lambda x: net(x), (x,), "reduce_sum", [expected])


@pytest.mark.parametrize("replicas", [1, 2])
def test_pooling_after_a_convolution_in_training(replicas):
    x, y = images(24), np.arange(24) % 10

    def trained() -> list[np.ndarray]:
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            net = model()
            optimizer = tf.keras.optimizers.SGD(0.1)
        losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

        def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.nn.compute_average_loss(losses(y, net(x)), global_batch_size=12)
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
            return loss

        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(12)
        plans = []
        for batch in strategy.experimental_distribute_dataset(data):
            plans.append(str(strategy.explain(step, args=batch)))
            strategy.run(step, args=batch)
        assert all(bool(ONE_BY_ONE.search(plan)) == _trace.OPTIONS.inner_loops for plan in plans)
        return [variable.numpy() for variable in net.trainable_variables]

    one_by_one = trained()
    _trace.OPTIONS.inner_loops = False
    at_once = trained()
    for a, b in zip(one_by_one, at_once, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_gradient_of_softmax_attention():
    tokens, width, heads = 96, 8, 2
    q, k, v = (numbers(5, heads, tokens, width, seed=s) for s in range(3))

    def step(q: tf.Tensor, k: tf.Tensor, v: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([q, k, v])
            weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
            loss = tf.reduce_sum(tf.square(tf.matmul(weights, v)))
        return tape.gradient(loss, [q, k, v])

    eager = [g.numpy() for g in step(*(tf.constant(x) for x in (q, k, v)))]
    check(step, (q, k, v), "reduce_sum", eager)


@pytest.mark.parametrize("axes", [[1, 2], [1, 2, 3], [3]])
def test_the_largest_of_a_convolution(axes):
    x, kernel = images(6, 30), numbers(3, 3, 3, 16, seed=5)
    conv = tf.nn.conv2d(tf.constant(x), tf.constant(kernel), 1, "SAME").numpy()
    check(lambda x: tf.reduce_max(tf.nn.conv2d(x, tf.constant(kernel), 1, "SAME"), axis=axes), (x,),
          "reduce_max", [conv.max(tuple(axes))])  # fmt: skip


def test_sums_by_index_inside_an_example():
    """The gradient of a lookup in each example's own big table."""
    x, rows = numbers(6, 100, 80), np.array([3, 3, 99, 0, 3], np.int32)

    def step(x: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.square(tf.gather(x * 2.0, rows, axis=1)))
        return tape.gradient(loss, x)

    expected = np.zeros_like(x)
    for row in rows:
        expected[:, row] += 8 * x[:, row]
    check(step, (x,), "segment_sum", [expected])


def test_no_examples_reduce_to_neutral_elements_in_a_loop():
    x = numbers(0, 32, 33, 8)
    check(lambda x: (tf.reduce_sum(x * 2.0, axis=[0, 1]), tf.reduce_max(x * 2.0, axis=0)), (x,),
          "reduce_sum", [np.zeros((33, 8)), np.full((32, 33, 8), -np.inf)])  # fmt: skip


def test_a_bias_after_a_contraction_over_examples_keeps_its_bits() -> None:
    x, y, bias = numbers(37, 6), numbers(37, 9, seed=1), numbers(9, seed=2)

    def step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(tf.matmul(tf.transpose(x), y) + tf.constant(bias))

    [fused] = results(step, (x, y), None)
    _trace.OPTIONS.fuse_epilogue = False
    try:
        [plain] = results(step, (x, y), None)
    finally:
        _trace.OPTIONS.fuse_epilogue = True
    np.testing.assert_array_equal(fused, plain)
    np.testing.assert_allclose(plain, np.maximum(x.T @ y + bias, 0), rtol=1e-4, atol=1e-4)
