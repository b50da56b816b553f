"""Branches, loops and scans in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx_runs import flat_arrays, results_of, session_of

import samegrad as tf

INPUTS = np.random.default_rng(0).normal(size=(7, 6, 4)).astype(np.float32)
WEIGHTS = tf.Variable(np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32))


def branch(x: Any) -> Any:
    return x + 1.0 if tf.reduce_sum(x) > 0.0 else tf.tanh(x @ WEIGHTS)


def branch_of_a_branch(x: Any) -> Any:
    y = -x
    if tf.reduce_sum(x) > 0.0:
        y = x * 2.0 if tf.reduce_max(x) > 2.0 else x
    return y, tf.shape(y)


def loop(x: Any) -> Any:
    y, rounds = x, 0
    while rounds < 3 and tf.reduce_max(y) < 50.0:
        y = tf.tanh(y @ WEIGHTS) + 1.0
        rounds += 1
    return y, rounds


def loop_with_a_break(x: Any) -> Any:
    total = tf.constant(0.0)
    for i in tf.range(tf.shape(x)[1]):
        if total > 4.0:
            break
        total += tf.reduce_mean(tf.abs(x[:, i]))
    return total


def branch_in_a_loop(x: Any) -> Any:
    y = x
    for _ in tf.range(3):
        y = tf.tanh(y @ WEIGHTS) if tf.reduce_sum(y) > 0.0 else y * 0.5 + 1.0
    return y


def limited(x: Any) -> Any:
    return tf.while_loop(lambda y: True, lambda y: (y * 0.5 + 1.0,), (x,), maximum_iterations=4)


def scanned(x: Any) -> Any:
    steps = tf.transpose(x, [1, 0, 2])
    start = tf.zeros_like(steps[0])
    return tf.scan(lambda state, row: tf.tanh(state @ WEIGHTS + row), steps, start)


def mapped(x: Any) -> Any:
    return tf.map_fn(lambda row: tf.reduce_sum(row * row), x)


def array_of_rounds(x: Any) -> Any:
    found = tf.TensorArray(tf.float32, size=3)
    y = x
    for i in tf.range(3):
        y = tf.tanh(y @ WEIGHTS)
        found = found.write(i, tf.reduce_mean(y, [1, 2]))
    return tf.transpose(found.stack())


@tf.custom_gradient
def clipped(x: Any) -> Any:
    return x * 2.0, lambda dy: tf.clip_by_value(dy, -0.1, 0.1)


def own_gradient(x: Any) -> Any:
    return clipped(x @ WEIGHTS)


def recomputed(x: Any) -> Any:
    return tf.recompute_grad(lambda y: tf.tanh(y @ WEIGHTS) @ WEIGHTS)(x)


def sizes(x: Any) -> Any:
    shape = tf.shape(x)
    pairs = tf.reshape(tf.concat([x, x], 0), [2 * shape[0] * shape[1], 2, 2])
    return pairs, tf.ones([shape[1], shape[0]]), tf.range(shape[1]), x[:, 1::2], x[::-1, -1]


PROGRAMS = [
    branch, branch_of_a_branch, loop, loop_with_a_break, branch_in_a_loop, limited, scanned, mapped,
    array_of_rounds, own_gradient, recomputed, sizes,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_control_flow_runs_with_open_sizes(program: Callable[..., Any]) -> None:
    function = tf.function(program)
    spec = tf.TensorSpec([None, None, 4], tf.float32, name="x")
    session = session_of(tf.export.to_onnx(function, [spec]))
    for rows, length, factor in ((7, 6, 1.0), (7, 6, -1.0), (1, 1, 1.0), (3, 5, 3.0)):
        x = INPUTS[:rows, :length] * np.float32(factor)
        own = flat_arrays(function(tf.constant(x)))
        found = results_of(session, [x])
        assert len(found) == len(own)
        for one, ours in zip(found, own, strict=True):
            assert one.dtype == ours.dtype
            np.testing.assert_allclose(one, ours, rtol=1e-5, atol=1e-6)


def test_a_relation_that_the_trace_took_for_granted_is_checked_at_the_run() -> None:
    def pairs(x: Any) -> Any:
        if x.shape[1] > 3:
            return x[:, 0] + x[:, 1]
        return tf.reduce_sum(x, 1)

    spec = tf.TensorSpec([2, None], tf.float32, name="x")
    session = session_of(tf.export.to_onnx(tf.function(pairs), [spec]))
    x = np.arange(18, dtype=np.float32).reshape(2, 9)
    np.testing.assert_array_equal(results_of(session, [x])[0], x[:, 0] + x[:, 1])
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument) as failed:
        results_of(session, [x[:, :3]])
    assert "sizes must meet: > 0 at test_onnx_control_flow.py" in str(failed.value)


def test_lengths_that_must_be_equal_are_checked_at_the_run() -> None:
    specs = [tf.TensorSpec([2, None], tf.float32, name=name) for name in "xy"]
    session = session_of(tf.export.to_onnx(lambda x, y: x + y, specs))
    ones = np.ones((2, 5), np.float32)
    assert results_of(session, [ones, ones])[0].shape == (2, 5)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument):
        results_of(session, [ones, ones[:, :1]])


def test_an_open_size_that_an_operation_needs_is_refused() -> None:
    spec = tf.TensorSpec([None, None, None, 3], tf.float32)
    with pytest.raises(ValueError, match=r"got an open size \(test_onnx_control_flow.py:\d+\)"):
        tf.export.to_onnx(lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), [spec])


def convolved_words() -> Any:
    layers = tf.keras.layers
    inputs = tf.keras.Input((None,), dtype="int32")
    x = layers.Embedding(9, 4)(inputs)
    x = layers.Conv1D(5, 3, padding="same", activation="relu")(x)
    x = layers.Conv1D(5, 3, padding="causal", dilation_rate=2)(x)
    x = layers.AveragePooling1D(2)(layers.MaxPooling1D(3, strides=1)(x))
    return tf.keras.Model(inputs, [x, layers.GlobalMaxPooling1D()(x)])


def convolved_images() -> Any:
    layers = tf.keras.layers
    inputs = tf.keras.Input((None, None, 1))
    x = layers.Conv2D(3, 3, strides=2, activation="relu")(inputs)
    x = layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x))
    return tf.keras.Model(inputs, [x, layers.GlobalAveragePooling2D()(x)])


@pytest.mark.parametrize("create", [convolved_words, convolved_images])
def test_convolutions_go_over_open_sizes(create: Callable[[], Any]) -> None:
    model = create()
    words = create is convolved_words
    spec = tf.TensorSpec([None, None] if words else [None, None, None, 1],
                         tf.int32 if words else tf.float32)  # fmt: skip
    session = session_of(tf.export.to_onnx(model, [spec]))
    rng = np.random.default_rng(0)
    for shape in ((2, 9), (1, 24), (3, 150)):
        x = rng.integers(0, 9, shape).astype(np.int32)
        if not words:
            x = rng.normal(size=(*shape, shape[1] + 3, 1)).astype(np.float32)
        for one, ours in zip(results_of(session, [x]), flat_arrays(model(x)), strict=True):
            np.testing.assert_allclose(one, ours, rtol=1e-5, atol=1e-6)
