"""Pooling of one, two and three dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import windows
from windows import check_derivatives, explicit, numbers, pooled

import samegrad as tf
from samegrad import nn

# Shape of the input, window, strides, dilations, padding.
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], Any]] = {
    "signals": ((3, 9, 2), (3,), (2,), (1,), "SAME"),
    "signals, valid": ((3, 9, 17), (4,), (1,), (1,), "VALID"),
    "signals, dilated": ((3, 9, 2), (3,), (1,), (3,), "VALID"),
    "one number": ((2, 1, 1), (1,), (1,), (1,), "VALID"),
    "one number, larger window": ((2, 1, 1), (4,), (1,), (1,), "SAME"),
    "images": ((3, 7, 5, 3), (3, 2), (2, 3), (1, 1), "SAME"),
    "images, dilated": ((3, 7, 5, 3), (3, 2), (1, 1), (2, 3), "SAME"),
    "images, two by two, dilated": ((2, 8, 8, 17), (2, 2), (2, 2), (2, 1), "VALID"),
    "images, given padding": ((2, 4, 5, 3), (3, 4), (2, 1), (1, 1), ((2, 1), (3, 0))),
    "volumes": ((2, 4, 3, 5, 2), (2, 3, 2), (2, 1, 2), (1, 1, 1), "SAME"),
    "volumes, valid": ((2, 4, 3, 5, 17), (3, 2, 2), (1, 1, 3), (1, 1, 1), "VALID"),
    "volumes, dilated": ((2, 5, 3, 5, 2), (2, 2, 3), (1, 1, 1), (3, 1, 2), "SAME"),
    "volumes, given padding": (
        (2, 4, 3, 5, 2), (3, 2, 2), (2, 1, 1), (1, 1, 1), ((2, 1), (1, 0), (0, 1)),
    ),
}  # fmt: skip
each_case = pytest.mark.parametrize("name", list(CASES))
both_kinds = pytest.mark.parametrize("kind", ["MAX", "AVG"])
NAMED = {
    ("MAX", 1): nn.max_pool1d, ("MAX", 2): nn.max_pool2d, ("MAX", 3): nn.max_pool3d,
    ("AVG", 1): nn.avg_pool1d, ("AVG", 2): nn.avg_pool2d, ("AVG", 3): nn.avg_pool3d,
}  # fmt: skip


def call(name: str, kind: str, x: Any) -> tf.Tensor:
    _, window, strides, dilations, padding = CASES[name]
    given = padding if isinstance(padding, str) else explicit(padding)
    return nn.pool(x, window, kind, strides, given, dilations=dilations)


@each_case
@both_kinds
def test_it_is_the_largest_or_the_mean_of_each_window(name, kind):
    shape, window, strides, dilations, padding = CASES[name]
    pads = padding
    if padding == "SAME":
        pads = windows.same_padding(shape[1:-1], window, strides, dilations)
    elif padding == "VALID":
        pads = [(0, 0)] * len(window)
    x = numbers(*shape)
    expected = pooled(x, window, strides, pads, dilations, kind)
    np.testing.assert_allclose(call(name, kind, x).numpy(), expected, rtol=1e-12)
    if set(dilations) == {1}:
        given = padding if isinstance(padding, str) else explicit(padding)
        named = NAMED[kind, len(window)](x, window, strides, given).numpy()
        np.testing.assert_array_equal(named, call(name, kind, x).numpy())
        general = {"MAX": nn.max_pool, "AVG": nn.avg_pool}[kind](x, window, strides, given)
        np.testing.assert_array_equal(named, general.numpy())


@each_case
@both_kinds
def test_derivatives_are_right_to_second_order(name, kind):
    x = numbers(*CASES[name][0])
    check_derivatives(lambda x: call(name, kind, x), [x], traced=name == "volumes")


def test_equal_elements_of_a_volume_give_the_gradient_to_the_first():
    x = tf.constant(np.ones((1, 2, 2, 2, 1), "float32"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nn.max_pool3d(x, 2, 1, "VALID")
    expected = np.zeros(8, "float32")
    expected[0] = 1
    np.testing.assert_array_equal(tape.gradient(y, x).numpy().ravel(), expected)


@both_kinds
def test_nan_is_what_its_windows_give(kind):
    x = np.zeros((1, 4, 2, 2, 1), "float32")
    x[0, 1, 0, 1, 0] = np.nan
    y = nn.pool(x, (2, 2, 2), kind).numpy().ravel()
    np.testing.assert_array_equal(np.isnan(y), [True, True, False])


@pytest.mark.parametrize("name", ["signals", "images, dilated", "volumes"])
@both_kinds
def test_replicas_have_the_bits_of_one_device(name, kind):
    images = numbers(13, *CASES[name][0][1:], dtype="float32")

    def results(replicas: int) -> np.ndarray:
        where = tf.distribute.MirroredStrategy(replicas=replicas)
        with where.scope():
            w = tf.Variable(np.float32(0.5))

        def step(x):
            with tf.GradientTape() as tape:
                y = call(name, kind, x * w)
                axes = list(range(1, len(y.shape)))
                loss = nn.compute_average_loss(tf.reduce_sum(y * y, axis=axes))
            g = tape.gradient(loss, w)
            w.assign_sub(1e-3 * tf.distribute.get_replica_context().all_reduce("SUM", g))

        (batch,) = where.experimental_distribute_dataset(
            tf.data.Dataset.from_tensor_slices(images).batch(13)
        )
        for _ in range(3):
            where.run(step, (batch,))
        return w.numpy()

    for replicas in (2, 3, 4):
        np.testing.assert_array_equal(results(1), results(replicas))


@pytest.mark.parametrize("n", [0, 1, 1000])
@both_kinds
def test_any_number_of_volumes_is_pooled(n, kind):
    x = numbers(n, 3, 4, 2, 5, dtype="float32")
    run = tf.function(lambda x: nn.pool(x, 2, kind, 2, "SAME"))
    eager = nn.pool(x, 2, kind, 2, "SAME").numpy()
    assert eager.shape == (n, 2, 2, 1, 5)
    np.testing.assert_array_equal(run(tf.constant(x)._as_examples(0, 1)).numpy(), eager)


X = np.zeros((2, 5, 4, 6), "float32")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.max_pool1d(X, 2, 1, "SAME"), r"\[max_pool1d\] signals must be"),
        (lambda: nn.avg_pool3d(X, 2, 1, "SAME"), r"\[avg_pool3d\] volumes must be"),
        (lambda: nn.max_pool(X[0, 0], 2, 1, "SAME"), r"\[max_pool\] the input must be"),
        (lambda: nn.max_pool3d(X[None], (2, 2), 1, "SAME"), "ksize must be one or three positive"),
        (lambda: nn.max_pool3d(X[None], 6, 1, "VALID"), "window must not be larger"),
        (lambda: nn.pool(X, 0, "MAX"), "window_shape must be one or two positive"),
        (lambda: nn.pool(X, 2, "SUM"), "pooling_type must be 'MAX' or 'AVG': got 'SUM'"),
        (lambda: nn.pool(X, 2, "MAX", dilations=0), "dilations must be one or two positive"),
        (lambda: nn.pool(X, 2, "MAX", padding="SAME", dilations=9), "sees the image"),
        (lambda: nn.pool(X, 2, "AVG", padding=explicit([(2, 0), (0, 0)])), "sees the image"),
        (lambda: nn.max_pool2d(np.zeros((1, 40, 40, 1)), 20, 1, "SAME"), "at most 256"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
