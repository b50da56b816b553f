"""Sizes that a signature leaves open and that weights, loops or branches decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import samegrad as tf

WEIGHTS = np.linspace(-1.0, 1.0, 9).reshape(3, 3)


def both(step: Callable[[Any], Any], x: np.ndarray) -> tuple[Any, Any]:
    """What a function with every size open gives, and one that is traced for these sizes."""
    opened = tf.function(step, input_signature=[tf.TensorSpec([None] * x.ndim, x.dtype)])
    examples = tf.constant(x)._as_examples(0, 1)
    return opened(examples), tf.function(step)(examples)


def assert_equal_bits(found: Any, wanted: Any) -> None:
    for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(wanted), strict=True):
        assert a.shape == b.shape
        assert a.numpy().tobytes() == b.numpy().tobytes()


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [1, 0], [0, 1], [0, 0]]])
def test_a_convolution_takes_images_whose_every_size_is_open(padding: Any) -> None:
    filters = tf.Variable(np.linspace(-1.0, 1.0, 54).reshape(3, 3, 3, 2))

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.nn.conv2d(x, filters, strides=2, padding=padding)
            loss = tf.nn.compute_average_loss(tf.reduce_mean(y, axis=[1, 2, 3]))
        return y, tape.gradient(loss, filters)

    for size in (5, 8):
        x = np.random.default_rng(size).normal(size=(4, size, size + 1, 3))
        assert_equal_bits(*both(step, x))


def test_a_loop_variable_takes_the_length_that_a_weight_decides() -> None:
    weights = tf.Variable(WEIGHTS)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            _, y = tf.while_loop(
                lambda i, a: i < 3,
                lambda i, a: (i + 1, tf.tanh(tf.matmul(a, weights))),
                (tf.constant(0), x),
            )
            loss = tf.nn.compute_average_loss(tf.reduce_sum(y * y, axis=[1, 2]))
        return y, tape.gradient(loss, weights)

    assert_equal_bits(*both(step, np.random.default_rng(0).normal(size=(5, 4, 3))))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_branches_may_agree_by_the_length_that_a_weight_decides(sign: float) -> None:
    weights = tf.Variable(WEIGHTS)

    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            y = tf.cond(
                tf.reduce_sum(weights) * 0.0 + sign > 0.0,
                lambda: tf.matmul(x, weights),
                lambda: x * tf.reduce_sum(weights * weights),
            )
            loss = tf.nn.compute_average_loss(tf.reduce_sum(y * y, axis=[1, 2]))
        return y, tape.gradient(loss, weights)

    assert_equal_bits(*both(step, np.random.default_rng(1).normal(size=(5, 4, 3))))


def test_branches_of_other_lengths_are_refused() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def step(x: Any) -> Any:
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x, lambda: x[:, 1:])

    with pytest.raises(ValueError, match="must have"):
        step(np.ones((2, 3), np.float32))


def test_squeeze_leaves_out_an_open_axis_of_one_element() -> None:
    traces = []

    @tf.function(input_signature=[tf.TensorSpec([None, None, 2])])
    def step(x: Any) -> Any:
        traces.append(None)
        return tf.squeeze(x)

    shapes = [step(np.zeros((4, n, 2), np.float32)).shape for n in (1, 3, 5)]
    assert shapes == [(4, 2), (4, 3, 2), (4, 5, 2)]
    assert len(traces) == 2  # of one element, and of more


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.pad(x, [[0, 0], [1, 2], [0, 0]], mode="REFLECT"),
        lambda x: tf.math.cumulative_logsumexp(x, axis=1),
        lambda x: tf.image.flip_left_right(x[..., None]),
        lambda x: tf.image.resize(x[..., None], [3, 5]),
        lambda x: tf.math.in_top_k(tf.zeros([4], "int32"), x[:, 0], 1),
        lambda x: tf.gather_nd(x, tf.zeros([4, 1], "int32") + tf.cast(x[:, 0, :1] * 0.0, "int32")),
        lambda x: tf.image.central_crop(x[..., None], 0.5),
    ],
)
def test_functions_that_need_a_size_take_open_ones(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(2).normal(size=(4, 6, 4)).astype(np.float32)
    assert_equal_bits(*both(function, x))


@pytest.mark.parametrize("splits", [False, True])
def test_reshape_of_open_lengths_keeps_the_examples_through_a_loop(splits):
    @tf.function(input_signature=[tf.TensorSpec([None, None, None])])
    def step(x):
        if splits:
            tf.split(x, 2, axis=2)
        rows = tf.reshape(x, [-1, 44])
        return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, tf.tanh(a)), (0, rows))[1]

    for examples in (7, 1, 3):
        x = np.linspace(-1, 1, examples * 44, dtype=np.float32).reshape(examples, 11, 4)
        found = step(tf.constant(x))
        np.testing.assert_allclose(found, np.tanh(np.tanh(x.reshape(-1, 44))), rtol=1e-6)
    assert step.experimental_get_tracing_count() == 1
