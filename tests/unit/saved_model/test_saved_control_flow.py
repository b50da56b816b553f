"""Branches, loops, their gradients and custom gradients in saved models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import samegrad as tf

INPUTS = np.random.default_rng(0).normal(size=(7, 6, 4)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)


def branch(x: Any, w: Any) -> Any:
    return x + 1.0 if tf.reduce_sum(w) > 100.0 else tf.tanh(x @ w)


def own_branch(x: Any, w: Any) -> Any:
    """A branch that each example takes for itself."""
    y = x @ w
    return tf.where(y > 0, tf.exp(y), y * y)


def loop(x: Any, w: Any) -> Any:
    y, rounds = x, 0
    while rounds < 3 and tf.reduce_max(w) < 50.0:
        y = tf.tanh(y @ w)
        rounds += 1
    return y


def nested(x: Any, w: Any) -> Any:
    y = x
    for _ in tf.range(2):
        y = tf.tanh(y @ w) if tf.reduce_sum(w) > 0.0 else y * 0.5
    return y


def scanned(x: Any, w: Any) -> Any:
    """A recurrent layer over the time steps."""
    steps = tf.transpose(x, [1, 0, 2])
    start = tf.zeros_like(steps[0])
    return tf.scan(lambda state, row: tf.tanh(state @ w + row), steps, start)[-1]


def accumulated(x: Any, w: Any) -> Any:
    found = tf.TensorArray(tf.float32, size=3)
    y = x
    for i in tf.range(3):
        y = tf.tanh(y @ w)
        found = found.write(i, tf.reduce_mean(y, [1, 2]))
    return tf.transpose(found.stack())


@tf.custom_gradient
def clipped(x: Any) -> Any:
    return x * 2.0, lambda dy: tf.clip_by_value(dy, -0.1, 0.1)


def custom(x: Any, w: Any) -> Any:
    return clipped(x @ w)


def recomputed(x: Any, w: Any) -> Any:
    return tf.recompute_grad(lambda y: tf.tanh(y @ w) @ w)(x)


def inner_gradient(x: Any, w: Any) -> Any:
    """The gradient of a loop, as a part of the function that is saved."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(loop(x, w) ** 2)
    return tape.gradient(total, x)


def inner_gradient_of_scan(x: Any, w: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(scanned(x, w) ** 2)
    return tape.gradient(total, x)


PROGRAMS = [
    branch, own_branch, loop, nested, scanned, accumulated, custom, recomputed, inner_gradient,
    inner_gradient_of_scan,
]  # fmt: skip


def module_of(program: Callable[..., Any], replicas: int) -> Any:
    module = tf.Module()
    with tf.distribute.MirroredStrategy(replicas=replicas).scope():
        module.w = tf.Variable(WEIGHTS)
    module.f = tf.function(
        lambda x: program(x, module.w),
        input_signature=[tf.TensorSpec([None, None, 4], tf.float32)],
    )
    return module


def trained(model: Any, strategy: Any) -> list[bytes]:
    """The weights after two steps, and the results."""
    data = tf.data.Dataset.from_tensor_slices(INPUTS).batch(len(INPUTS)).repeat(2)

    @tf.function
    def run(batch: Any) -> Any:
        def step(x: Any) -> Any:
            with tf.GradientTape() as tape:
                y = model.f(x)
                flat = tf.reshape(y, [tf.shape(y)[0], -1])
                loss = tf.nn.compute_average_loss(tf.reduce_sum(flat**2, axis=1))
            gradient = tape.gradient(loss, model.w)
            context = tf.distribute.get_replica_context()
            model.w.assign_sub(0.05 * context.all_reduce("sum", gradient))
            return loss

        return strategy.reduce("sum", strategy.run(step, (batch,)), axis=None)

    losses = [run(batch) for batch in strategy.experimental_distribute_dataset(data)]
    return [part.numpy().tobytes() for part in (*losses, model.w)]


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_control_flow_trains_with_the_bits_of_the_original(
    tmp_path: Path, program: Callable[..., Any], replicas: int
) -> None:
    module = module_of(program, 1)
    tf.saved_model.save(module, tmp_path / "m")
    strategy = tf.distribute.MirroredStrategy(replicas=replicas)
    with strategy.scope():
        loaded, original = tf.saved_model.load(tmp_path / "m"), tf.Module()
        original.w = tf.Variable(WEIGHTS)
    original.f = tf.function(
        lambda x: program(x, original.w),
        input_signature=[tf.TensorSpec([None, None, 4], tf.float32)],
    )
    assert trained(loaded, strategy) == trained(original, strategy)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_control_flow_serves_open_sizes(tmp_path: Path, program: Callable[..., Any]) -> None:
    module = module_of(program, 1)
    tf.saved_model.save(module, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    for rows, length in ((7, 6), (1, 1), (3, 5)):
        x = tf.constant(INPUTS[:rows, :length])
        assert loaded.f(x).numpy().tobytes() == module.f(x).numpy().tobytes()


def test_a_failing_gradient_is_refused_by_name(tmp_path: Path) -> None:
    @tf.custom_gradient
    def failing(x: Any) -> Any:
        def gradient(dy: Any) -> Any:
            raise RuntimeError("no gradient")

        return x * 2.0, gradient

    module = tf.Module()
    module.f = tf.function(failing, input_signature=[tf.TensorSpec([2])])
    with pytest.raises((NotImplementedError, RuntimeError), match=r"no gradient|gradient_by_call"):
        tf.saved_model.save(module, tmp_path / "m")
    assert not (tmp_path / "m").exists()
